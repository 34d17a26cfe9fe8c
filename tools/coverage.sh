# ./dev coverage: prints the share of lines that the specs and the C tests run in each file. Fails below 95 %.
. tools/common.sh
least=95
# shellcheck disable=SC2086
need $build_packages $test_packages gcovr
build_preset coverage
use_build coverage
RISKSCREEN_COVERAGE="$root/build/coverage/lua"
rm -rf "$RISKSCREEN_COVERAGE"
mkdir -p "$RISKSCREEN_COVERAGE" build/log
find build/coverage -name '*.gcda' -delete
status=0
say "Running the C tests and the specs."
ctest --test-dir build/coverage >build/log/coverage_c 2>&1 || { status=1; tail -n 30 build/log/coverage_c >&2; }
RISKSCREEN_LUA=lua5.4 RISKSCREEN_COVERAGE="$RISKSCREEN_COVERAGE" LUA_INIT="require 'line_coverage'" \
  lua5.4 /usr/bin/busted >build/log/coverage_lua 2>&1 || { status=1; tail -n 60 build/log/coverage_lua >&2; }
# spec/support/coverage counts the lines that LuaJIT runs inside nginx.
build_preset luajit
export RISKSCREEN_COVERAGE
for without in "" RISKSCREEN_WITHOUT_CORE=1; do
  env $without RISKSCREEN_LUA=lua5.4 LUA_INIT="require 'line_coverage'" \
    lua5.4 /usr/bin/busted --run=nginx >build/log/coverage_nginx 2>&1 || { status=1; tail -n 60 build/log/coverage_nginx >&2; }
done
git ls-files 'lua/*.lua' | lua5.4 tools/coverage.lua "$RISKSCREEN_COVERAGE" "$least" || status=1
gcovr --root . --filter csrc/ --fail-under-line "$least" build/coverage || status=1
exit $status
