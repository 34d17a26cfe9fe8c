# So many screenings, 100,000 by default, against a sandbox that fails one request in twenty: nothing is lost, nothing
# grows, nothing is left open. Under one Lua (RISKSCREEN_LUA, 5.4 by default).
. tools/common.sh
lua=${RISKSCREEN_LUA:-5.4}
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset "$lua"
use_build "$lua"
exec "$(interpreter "$lua")" tools/soak.lua "${1:-100000}" "$(interpreter "$lua")"
