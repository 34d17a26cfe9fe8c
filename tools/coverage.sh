# ./dev coverage: prints the share of lines that the specs and the C tests run in each file. Fails below 95 %.
. tools/common.sh
least=95
# shellcheck disable=SC2086
need $build_packages $test_packages gcovr
build_preset coverage
build_preset coverage_luajit
build_preset 5.4 # of the specs that run ./dev
build_preset luajit
use_build coverage
RISKSCREEN_COVERAGE="$root/build/coverage/lua"
rm -rf "$RISKSCREEN_COVERAGE"
mkdir -p "$RISKSCREEN_COVERAGE" build/log
find build/coverage build/coverage_luajit -name '*.gcda' -delete
status=0
say "Running the C tests and the specs."
ctest --test-dir build/coverage >build/log/coverage_c 2>&1 || { status=1; tail -n 30 build/log/coverage_c >&2; }

# cover LOG ENVIRONMENT FILE...: the specs of each file in a process of its own, several side by side. A spec may start
# programs that use another build, where line_coverage is not there.
cover() {
  log=build/log/$1 environment=$2
  shift 2
  printf '%s\n' "$@" | $environment RISKSCREEN_LUA=lua5.4 RISKSCREEN_COVERAGE="$RISKSCREEN_COVERAGE" \
    LUA_INIT="pcall(require, 'line_coverage')" xargs -P "$lanes" -n 1 lua5.4 /usr/bin/busted --output=plainTerminal >"$log" 2>&1 ||
    { status=1; grep -v -e '^[-+*]*$' -e ' 0 failures / 0 errors ' "$log" | tail -n 60 >&2; }
}

# spec/support/coverage counts the lines that LuaJIT runs inside nginx. gate_faults makes hundreds of gates in one worker,
# and each writes its metrics every second: while lines are counted that takes longer than a second. faults_nginx.lua has
# the same faults.
nginx_specs=$(find spec -name '*_nginx.lua' ! -name 'gate_faults_nginx.lua' | sort)
cmake -S spec -B build/checks >build/log/coverage_checks
coreless_specs=$(ctest --test-dir build/checks -N -R 'without the core' | sed -n 's/.*core: //p' | grep -v gate_faults)
# shellcheck disable=SC2046,SC2086
{
  cover coverage_lua env $(find spec -name '*_spec.lua' | sort)
  cover coverage_nginx env $nginx_specs
  cover coverage_nginx_without_core "env RISKSCREEN_WITHOUT_CORE=1" $coreless_specs
}
# Only on LuaJIT does the decoder use plans (csrc/lua/plan.h).
(use_build coverage_luajit && luajit /usr/bin/busted --output=plainTerminal spec/unit/core/decoder_spec.lua) \
  >build/log/coverage_plans || { status=1; tail -n 30 build/log/coverage_plans >&2; }
git ls-files 'lua/*.lua' | lua5.4 tools/coverage.lua "$RISKSCREEN_COVERAGE" "$least" || status=1
# gcovr 5 cannot join functions that two builds of a file have on different lines. The portable build is left out.
gcovr --root . --filter csrc/ --exclude-directories '.*_portable.*' --fail-under-line "$least" \
  build/coverage build/coverage_luajit || status=1
exit $status
