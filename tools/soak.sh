# So many screenings, 100,000 by default, against a sandbox that fails one request in twenty: nothing is lost, nothing
# grows, nothing is left open. Under one Lua (RISKSCREEN_LUA, 5.4 by default). Or, as `./dev soak nginx [SECONDS]`, wrk
# against the gate inside nginx for so long, ten minutes by default, in front of the same sandbox.
. tools/common.sh
lua=${RISKSCREEN_LUA:-5.4}
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset "$lua"
use_build "$lua"
if [ "${1:-}" = nginx ]; then
  need wrk
  build_preset luajit
  exec "$(interpreter "$lua")" tools/soak_nginx.lua "${2:-600}" "$(interpreter "$lua")"
fi
exec "$(interpreter "$lua")" tools/soak.lua "${1:-100000}" "$(interpreter "$lua")"
