# ./dev bench [NAME]: runs the benchmarks in bench/, or one of them. RISKSCREEN_LUA selects the Lua (5.4 by default).
. tools/common.sh
lua=${RISKSCREEN_LUA:-5.4}
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset "$lua"
if [ "${1:-nginx}" = nginx ]; then
  need wrk
  build_preset luajit
fi
use_build "$lua"
LUA_PATH="$root/bench/?.lua;$LUA_PATH"
for file in bench/${1:-*}.lua; do
  case $file in bench/bed.lua) continue ;; esac
  say "== $file (Lua $lua)"
  "$(interpreter "$lua")" "$file"
done
