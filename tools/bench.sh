# ./dev bench [--quick] [NAME]: runs the benchmarks in bench/, or one of them. Each prints its goals with their verdicts.
# RISKSCREEN_LUA selects the Lua (5.4 by default). --quick measures few rounds.
#
# ./dev bench --report [--quick]: runs all of them on Lua 5.4 and LuaJIT, and writes docs/performance.md.
. tools/common.sh

given_path=${LUA_PATH:-} # of modules that a user brings, such as lua-resty-http
report=
name=
for argument in "$@"; do
  case $argument in
  --report) report=yes ;;
  --quick) export RISKSCREEN_BENCH_QUICK=1 ;;
  -*) say "bench: unknown option '$argument'; the options are --quick and --report"; exit 2 ;;
  *) name=$argument ;;
  esac
done
[ -z "$name" ] || [ -f "bench/$name.lua" ] || { say "bench: no benchmark is called '$name'"; exit 2; }

# shellcheck disable=SC2086
need $build_packages $test_packages
case "${name:-nginx}" in
nginx | fleet)
  need wrk
  build_preset luajit
  ;;
instructions) build_preset luajit ;;
esac

# measure LUA NAME...
measure() {
  lua=$1
  shift
  build_preset "$lua"
  use_build "$lua"
  LUA_PATH="$root/bench/?.lua;$LUA_PATH${given_path:+;$given_path}"
  for file in "$@"; do
    say "== $file (Lua $lua)"
    "$(interpreter "$lua")" "bench/$file.lua"
  done
}

benchmarks=$(find bench -maxdepth 1 -name '*.lua' ! -name bed.lua -exec basename {} .lua \; | sort)
# A fleet is its gates and its queue.
[ "$name" != fleet ] || name="fleet queue"
if [ -z "$report" ]; then
  # shellcheck disable=SC2086
  measure "${RISKSCREEN_LUA:-5.4}" ${name:-$benchmarks}
  exit
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export RISKSCREEN_BENCH_RESULTS="$results"
# shellcheck disable=SC2086
measure 5.4 $benchmarks
# The code that runs in nginx is on LuaJIT already, and instructions are counted on Lua 5.4.
# shellcheck disable=SC2046,SC2086
measure luajit $(printf '%s\n' $benchmarks | grep -v -x -e nginx -e fleet -e instructions)
LUA_PATH="$root/bench/?.lua;;" LUA_CPATH=";;" lua5.4 bench/support/page.lua "$results"
say "docs/performance.md is written."
