. tools/common.sh
lua=${1:-5.4}
interpreter "$lua" >/dev/null
# shellcheck disable=SC2086
need $build_packages
# shellcheck disable=SC2086
[ "$lua" = 5.4 ] || need $test_packages
build_preset "$lua"
