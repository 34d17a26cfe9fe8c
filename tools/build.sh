# ./dev build [LUA]: builds the C modules for one Lua (5.4, 5.3, 5.1 or luajit; 5.4 by default).
. tools/common.sh
lua=${1:-5.4}
interpreter "$lua" >/dev/null
# shellcheck disable=SC2086
need $build_packages
# shellcheck disable=SC2086
[ "$lua" = 5.4 ] || need $test_packages
build_preset "$lua"
