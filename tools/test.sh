# Builds for every Lua and runs every check; the last line says how many passed and failed.
. tools/common.sh
# shellcheck disable=SC2086
need $build_packages $test_packages $lint_packages

passed=0
failed=0
mkdir -p build/log

result() {
  if [ "$2" = 0 ]; then
    passed=$((passed + 1))
    say "ok      $1"
  else
    failed=$((failed + 1))
    say "FAILED  $1"
    tail -n 60 "$3" >&2
  fi
}

# check NAME COMMAND...: one thing that passes or fails as a whole.
check() {
  name=$1
  shift
  log="build/log/$(printf '%s' "$name" | tr -c 'a-zA-Z0-9.\n' '_')"
  if "$@" >"$log" 2>&1; then result "$name" 0; else result "$name" 1 "$log"; fi
}

# specs NAME PRESET LUA [BUSTED ARGUMENT...]: a busted run, each of its tests counted.
specs() {
  name=$1 preset=$2 lua=$3
  shift 3
  log="build/log/$(printf '%s' "$name" | tr -c 'a-zA-Z0-9.\n' '_')"
  (
    use_build "$preset"
    RISKSCREEN_LUA=$(interpreter "$lua")
    export RISKSCREEN_LUA
    # shellcheck disable=SC2086
    ${wrapper:-} "$RISKSCREEN_LUA" /usr/bin/busted --output=plainTerminal "$@"
  ) >"$log" 2>&1 && status=0 || status=$?
  summary=$(sed -n 's/^\([0-9]*\) success[a-z]* \/ \([0-9]*\) failure[a-z]* \/ \([0-9]*\) error[a-z]* .*/\1 \2 \3/p' "$log" | tail -n 1)
  # shellcheck disable=SC2086
  set -- ${summary:-0 0 1}
  bad=$(($2 + $3))
  # A sanitizer or a crash can fail a run whose every test passed.
  [ "$status" = 0 ] || [ "$bad" -gt 0 ] || bad=1
  passed=$((passed + $1))
  failed=$((failed + bad))
  if [ "$bad" = 0 ]; then
    say "ok      $name: $1 tests"
  else
    say "FAILED  $name: $bad of $(($1 + bad))"
    tail -n 120 "$log" >&2
  fi
}

check "lint" sh tools/lint.sh
for lua in $all_luas; do
  check "build for Lua $lua" build_preset "$lua"
done
check "build with clang" build_preset clang
check "build of the C tests" build_preset ctest
check "build with sanitizers" build_preset sanitize
check "build with the thread sanitizer" build_preset threads
check "build of the fuzzers" build_preset fuzz

# A minute of each fuzzer, one after the other, beside everything else: each check below uses one core.
rm -f build/log/fuzz_*.passed
(
  for fuzzer in build/fuzz/spec/c/*_fuzz; do
    name=$(basename "$fuzzer" _fuzz)
    nice sh tools/fuzz.sh 60 "$name" >"build/log/fuzz_$name" 2>&1 && touch "build/log/fuzz_$name.passed"
  done
) &
fuzzing=$!

check "C tests" ctest --test-dir build/ctest --output-on-failure
check "C tests with sanitizers" ctest --test-dir build/sanitize --output-on-failure
check "C tests with the thread sanitizer" ctest --test-dir build/threads --output-on-failure -R '^threads$'
for lua in $all_luas; do
  specs "specs on Lua $lua" "$lua" "$lua"
done

specs "specs in nginx with the core" 5.4 5.4 --run=nginx
wrapper="env RISKSCREEN_WITHOUT_CORE=1"
specs "specs in nginx without the core" 5.4 5.4 --run=nginx
wrapper=

# The specs that exercise the C modules most, for the slower checks.
core_specs="spec/decoder_spec.lua spec/loop_spec.lua spec/transfer_spec.lua spec/transfer_tls_spec.lua
  spec/server_spec.lua spec/native_spec.lua spec/task_spec.lua spec/contract"
# Thousands of requests at once, for which a tortured collector takes minutes.
crowded_specs="spec/task_request_spec.lua"
wrapper="env LD_PRELOAD=$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so) ASAN_OPTIONS=detect_leaks=1
  LSAN_OPTIONS=suppressions=spec/support/lsan.supp"
# shellcheck disable=SC2086
specs "core specs with sanitizers and a tortured collector" sanitize 5.4 --helper=spec/support/gc_torture.lua $core_specs
specs "crowded specs with sanitizers" sanitize 5.4 $crowded_specs
wrapper="valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9"
# shellcheck disable=SC2086
specs "core specs under valgrind" 5.4 5.4 $core_specs $crowded_specs
wrapper=

check "what luarocks installs runs from its directory alone" sh tools/check_install.sh
check "demo" sh tools/demo.sh

wait "$fuzzing" || true
for fuzzer in build/fuzz/spec/c/*_fuzz; do
  name=$(basename "$fuzzer" _fuzz)
  result "a minute of the fuzzer of $name" "$([ -f "build/log/fuzz_$name.passed" ] && echo 0 || echo 1)" "build/log/fuzz_$name"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
