# Builds for every Lua and runs every check; the last line says how many passed and failed.
. tools/common.sh
# shellcheck disable=SC2086
need $build_packages $test_packages $lint_packages

# An interrupt ends what runs side by side as well.
trap 'trap - INT TERM; kill 0' INT TERM

results=build/log/results
mkdir -p build/log
: >"$results"

# result NAME PASSED FAILED SECONDS LOG: prints it, and keeps it for the sum. Of a log, without busted's line of signs.
result() {
  echo "$2 $3" >>"$results"
  if [ "$3" = 0 ]; then
    say "ok      $1 ($2 in $4 s)"
  else
    say "FAILED  $1 ($3 of $(($2 + $3)) in $4 s)
$(grep -v '^[-+*]*$' "$5" | tail -n 120)"
  fi
}

log_of() {
  printf 'build/log/%s' "$(printf '%s' "$1" | tr -c 'a-zA-Z0-9.\n' '_')"
}

# check NAME COMMAND...: one thing that passes or fails as a whole.
check() {
  name=$1 log=$(log_of "$1") started=$(date +%s)
  shift
  if "$@" >"$log" 2>&1; then failed=0; else failed=1; fi
  result "$name" $((1 - failed)) $failed $(($(date +%s) - started)) "$log"
}

# specs NAME PRESET LUA [BUSTED ARGUMENT...]: a busted run, each of its tests counted.
specs() {
  name=$1 preset=$2 lua=$3 log=$(log_of "$1") started=$(date +%s)
  shift 3
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
  result "$name" "$1" "$bad" $(($(date +%s) - started)) "$log"
}

# wrapped COMMAND SPECS_ARGUMENTS...: specs whose Lua is started by a command.
wrapped() {
  wrapper=$1
  shift
  specs "$@"
  wrapper=
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

check "C tests" ctest --test-dir build/ctest --output-on-failure
check "C tests with sanitizers" ctest --test-dir build/sanitize --output-on-failure
check "C tests with the thread sanitizer" ctest --test-dir build/threads --output-on-failure -R '^threads$'

# What follows runs side by side: most specs wait more than they work, and the fuzzers take what is left.

fuzzers() {
  for fuzzer in build/fuzz/spec/c/*_fuzz; do
    name=$(basename "$fuzzer" _fuzz)
    check "a minute of the fuzzer of $name" nice -n 19 sh tools/fuzz.sh 60 "$name"
  done
}

specs_of() {
  for lua in "$@"; do
    specs "specs on Lua $lua" "$lua" "$lua"
  done
}

# The specs that exercise the C modules most, for the slower checks.
core_specs="spec/unit/core/decoder_spec.lua spec/unit/core/loop_spec.lua spec/unit/core/transfer_spec.lua spec/unit/core/transfer_tls_spec.lua
  spec/unit/core/server_spec.lua spec/unit/runtime/native/init_spec.lua spec/unit/runtime/tasks_spec.lua spec/contract"
# Thousands of requests at once, for which a tortured collector takes minutes.
crowded_specs="spec/unit/runtime/native/task_request_spec.lua"
sanitizers="env LD_PRELOAD=$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so) ASAN_OPTIONS=detect_leaks=1
  LSAN_OPTIONS=suppressions=spec/support/lsan.supp"
valgrind="valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9"

# shellcheck disable=SC2086
watched() {
  wrapped "$sanitizers" "core specs with sanitizers and a tortured collector" sanitize 5.4 \
    --helper=spec/support/gc_torture.lua $core_specs
  wrapped "$sanitizers" "crowded specs with sanitizers" sanitize 5.4 $crowded_specs
  wrapped "$valgrind" "core specs under valgrind" 5.4 5.4 $core_specs $crowded_specs
}

{
  watched
  check "what luarocks installs runs from its directory alone" sh tools/check_install.sh
  check "demo" sh tools/demo.sh
} &
{
  specs "specs in nginx with the core" 5.4 5.4 --run=nginx
  specs_of 5.3 5.1
} &
{
  specs_of 5.4 luajit
  wrapped "env RISKSCREEN_WITHOUT_CORE=1" "specs in nginx without the core" 5.4 5.4 --run=nginx
} &
fuzzers &
wait

awk '{ passed += $1; failed += $2 } END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }' "$results"
