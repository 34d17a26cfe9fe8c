# ./dev test: builds for every Lua and runs every check. The last line says how many tests passed and failed.
#
# ./dev test --all: also runs valgrind, clang's analyzer, a minute of each fuzzer, and every spec on every Lua and
# without the core.
#
# ./dev test NAME...: runs the specs whose path holds NAME on Lua 5.4. NAME is a file, a folder, or a word such as `retry`.
# Options such as --filter=TEXT go to busted.
. tools/common.sh

# Lua 5.4 runs every spec, and nginx runs LuaJIT. The other Luas run the specs that depend on the language or on the C
# binding. Numbers, texts and tables: address, interface, json, lists, options, policy, report, util. Iterators: client.
# Coroutines: runtime. Files, pipes and databases: cli, journal, store, watch. The binding: core. All of it together: the
# contract and the examples.
language_specs="spec/contract spec/fuzz spec/integration/examples_spec.lua spec/unit/address spec/unit/cli
  spec/unit/client spec/unit/core spec/unit/interface spec/unit/journal spec/unit/json spec/unit/lists spec/unit/options
  spec/unit/policy spec/unit/report spec/unit/runtime spec/unit/store spec/unit/util spec/unit/watch"
# How a program survives its end does not depend on the language.
# shellcheck disable=SC2086
language_specs=$(find $language_specs -name '*_spec.lua' ! -name 'kill_spec.lua')
# LuaJIT also runs the unit specs of the modules that only nginx uses.
luajit_specs="$language_specs spec/unit/nginx"
# The specs that use the C modules most, for the sanitizers and valgrind.
core_specs="spec/unit/core spec/unit/runtime/native/init_spec.lua spec/unit/runtime/tasks_spec.lua spec/contract"
# The specs that wait for descriptors, for the poller of the systems without epoll.
poller_specs="spec/unit/core/loop_spec.lua spec/unit/core/server_spec.lua spec/unit/core/transfer_spec.lua
  spec/unit/runtime/native/host_loops_spec.lua spec/unit/runtime/native/init_spec.lua spec/contract/http_spec.lua"
# Thousands of requests at once: a collection at each step would take minutes.
crowded_specs="spec/unit/runtime/native/task_request_spec.lua"

all=
names=
options=
for argument in "$@"; do
  case $argument in
  --all) all=--all ;;
  -*) options="$options $argument" ;;
  *) names="$names $argument" ;;
  esac
done

# The spec files below some paths. Those of nginx end in _nginx.lua.
specs_in() {
  find "$@" -name '*_spec.lua' -o -name '*_nginx.lua' | sort
}

# shellcheck disable=SC2086
need $build_packages $test_packages
if [ -n "$names$options" ]; then
  files=
  for name in ${names:-spec}; do
    found=$(specs_in spec | grep -F -- "${name#./}") || true
    [ -n "$found" ] || { say "test: no spec file has '$name' in its path"; exit 2; }
    files="$files $found"
  done
  build_preset 5.4
  case $files in *_nginx.lua*) build_preset luajit ;; esac
  use_build 5.4
  # shellcheck disable=SC2086
  RISKSCREEN_LUA=lua5.4 exec lua5.4 /usr/bin/busted $options $files
fi
# shellcheck disable=SC2086
need $lint_packages

# An interrupt ends what runs side by side as well.
trap 'trap - INT TERM; kill 0' INT TERM

# Jobs run side by side in lanes. A job is a suite or one of its spec files. One process for each file is
# faster than one for all: its garbage collector has less to do.
log=build/log
planned=$log/planned
results=$log/results
rm -rf "$log"
mkdir -p "$log"
: >"$results"

log_of() {
  printf '%s/%s' "$log" "$(printf '%s' "$1" | tr -c 'a-zA-Z0-9.\n' '_')"
}

# result SUITE PASSED FAILED SECONDS LOG [FILE]: a failure is printed at once, a suite when its last job has ended.
result() {
  # The second line has the processor time of the processes that have ended: 0m1.50s 0m0.25s.
  times >"$5_times"
  { read -r used && read -r used; } <"$5_times"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${6:-}" "$used" >>"$results"
  if [ "$3" != 0 ]; then
    # All of the log but busted's line of signs.
    say "FAILED  $1 ($3 of $(($2 + $3))${6:+ in $6})
$(grep -v '^[-+*]*$' "$5" | tail -n 120)"
  fi
  ended=$(cat "$planned"/*[a-z] | awk -F'\t' -v suite="$1" '
    FILENAME != ARGV[2] { planned += $1 == suite; next }
    $1 == suite {
      ended++; passed += $2; failed += $3; seconds += $4
      split($6, time, /[ms ]+/); used += time[1] * 60 + time[2] + time[3] * 60 + time[4]
    }
    END { if (ended == planned && !failed) printf "ok      %s (%d in %.0f s, %.0f s CPU)", suite, passed, seconds, used }
  ' - "$results")
  if [ -n "$ended" ] && mkdir "$(log_of "$1")_ended" 2>/dev/null; then
    say "$ended"
  fi
}

# check SUITE COMMAND...: a suite that passes or fails as a whole.
check() {
  name=$1 file=$(log_of "$1") started=$(date +%s)
  shift
  if "$@" >"$file" 2>&1; then failed=0; else failed=1; fi
  result "$name" $((1 - failed)) $failed $(($(date +%s) - started)) "$file"
}

# specs SUITE FILE PRESET [COMMAND...]: a file of specs, each of its tests counted; COMMAND runs the Lua.
specs() {
  name=$1 spec=$2 preset=$3 file=$(log_of "$1 $2") lua=lua5.4
  shift 3
  [ "$preset" = sanitize ] || lua=$(interpreter "$preset")
  use_build "$preset"
  # shellcheck disable=SC2086
  RISKSCREEN_LUA=$lua "$@" $lua /usr/bin/busted --output=plainTerminal ${helper:-} "$spec" >"$file" 2>&1 &&
    status=0 || status=$?
  counts='^\([0-9]*\) success[a-z]* \/ \([0-9]*\) failure[a-z]* \/ \([0-9]*\) error[a-z]* .* : \([0-9.]*\) sec.*'
  # shellcheck disable=SC2046
  set -- $(sed -n "s/$counts/\1 \2 \3 \4/p" "$file" | tail -n 1)
  [ $# = 4 ] || set -- 0 0 1 0
  bad=$(($2 + $3))
  # A sanitizer or a crash can fail a run whose every test passed.
  [ "$status" = 0 ] || [ $bad -gt 0 ] || bad=1
  result "$name" "$1" $bad "$4" "$file" "$spec"
}

# run SUITE [FILE]
run() {
  case $1 in
  lint) check "$1" nice -n 5 sh tools/lint.sh $all ;;
  "build of threads") check "$1" build_preset threads --target threads_test threads_example ;;
  "build of "*) check "$1" build_preset "${1#build of }" ;;
  "C tests") check "$1" nice -n 5 ctest --test-dir build/ctest -j2 --output-on-failure ;;
  "C tests with sanitizers") check "$1" nice -n 5 ctest --test-dir build/sanitize -j2 --output-on-failure ;;
  "C tests with the thread sanitizer") check "$1" nice -n 5 ctest --test-dir build/threads --output-on-failure -R '^threads' ;;
  "specs with poll") specs "$1" "$2" 5.4 env RISKSCREEN_POLLER=poll ;;
  "specs on Lua "*) specs "$1" "$2" "${1#specs on Lua }" env ;;
  "specs in nginx with the core") specs "$1" "$2" 5.4 env ;;
  "specs in nginx without the core") specs "$1" "$2" 5.4 env RISKSCREEN_WITHOUT_CORE=1 ;;
  "core specs with sanitizers and a tortured collector")
    helper=--helper=spec/support/gc_torture.lua
    sanitized "$@"
    ;;
  "crowded specs with sanitizers") sanitized "$@" ;;
  "embedding under valgrind") check "$1" sh -ec '
    for program in "embed_test 5" host_example game_loop_example; do
      valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9 build/ctest/spec/c/$program
    done' ;;
  "core specs under valgrind")
    specs "$1" "$2" 5.4 valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9
    ;;
  "fuzzer of "*)
    # As many inputs on a busy machine as on an idle one: 1 to 3 seconds of processor time.
    case $1 in
    *list_reader | *strict_cjson | *verdict) count=5000 ;;
    *) count=500 ;;
    esac
    [ -z "$all" ] || count=-1
    check "$1" env RISKSCREEN_FUZZERS_BUILT=1 nice -n 5 sh tools/fuzz.sh 60 "${1#fuzzer of }" 1 "$count"
    ;;
  rocks) check "$1" nice -n 5 sh tools/rocks.sh ${all:+5.3 5.1} 5.4 luajit ;;
  "what cmake installs") check "$1" nice -n 5 sh tools/check_cmake.sh ;;
  demo) check "$1" sh tools/demo.sh ;;
  esac
}

# sanitized SUITE FILE
sanitized() {
  specs "$1" "$2" sanitize env LD_PRELOAD="$(clang -print-file-name="libclang_rt.asan-$(uname -m).so")" \
    ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=suppressions=spec/support/lsan.supp \
    RISKSCREEN_QUICK_ROUNDS=1
}

# plan SUITE [PATH...]: plans a job, or one for each spec file below the paths. A list of jobs appears when it is whole.
plan() {
  suite=$1
  shift
  # Specs mostly wait for sockets and timers. Work needs a processor all the time.
  case $suite in
  "build of "*) kind=build ;;
  lint | "C tests"* | fuzzer* | rocks | "what cmake installs") kind=work ;;
  *) kind=spec ;;
  esac
  sequence=$((sequence + 1))
  if [ $# = 0 ]; then
    printf '%s\t\n' "$suite"
  else
    ls -d "$@" >/dev/null # a path that was renamed ends the run
    specs_in "$@" | sed "s/^/$suite	/"
  fi >"$planned/$sequence"
  mv "$planned/$sequence" "$planned/$sequence.$kind"
}

# lane KIND: runs planned jobs of this kind, until all jobs are planned and taken.
lane() {
  seen='' complete=''
  until [ -n "$complete" ]; do
    [ ! -e "$planned/complete" ] || complete=yes
    for list in "$planned"/*."$1"; do
      case $seen in *" $list "*) continue ;; esac
      [ -e "$list" ] || continue
      seen="$seen $list "
      position=0
      while IFS='	' read -r job part; do
        position=$((position + 1))
        taken=$list.$position
        if [ ! -e "$taken" ] && mkdir "$taken" 2>/dev/null; then
          (run "$job" "$part") </dev/null
        fi
      done <"$list"
    done
    [ -n "$complete" ] || sleep 0.2
  done
}

# run_lanes COUNT COMMAND...: runs the jobs that the commands plan. Work fills the processors while specs wait.
run_lanes() {
  kept=$(wc -l <"$results")
  rm -rf "$planned"
  mkdir "$planned"
  started=0
  while [ $started -lt "$1" ]; do
    started=$((started + 1))
    lane spec &
  done
  lane work &
  lane work &
  shift
  planners=
  for command in "$@"; do
    $command &
    planners="$planners $!"
  done
  for planner in $planners; do
    wait "$planner" || kill 0
  done
  jobs=$(cat "$planned"/*[a-z] | wc -l)
  : >"$planned/complete"
  wait
  [ "$(wc -l <"$results")" = $((jobs + kept)) ] || { say "Some jobs did not run."; exit 1; }
}

# build PRESET: returns whether it is built.
build() {
  plan "build of $1"
  (run "build of $1" "")
  [ -d "$(log_of "build of $1")_ended" ]
}

# A job is planned after its builds. The longest come first. Integration specs use the builds of several Luas,
# which share object files by the compiler's cache.
long_specs=$(find spec/integration spec/faults -name '*_spec.lua' | sort)
specs=$(find spec -name '*_spec.lua' ! -path 'spec/integration/*' ! -path 'spec/faults/*' | sort)
nginx_specs=$(find spec -name '*_nginx.lua' | sort)

# shellcheck disable=SC2086
plan_for_luas() {
  sequence=100
  build 5.4 && build luajit && build 5.3 && build 5.1 || return 0
  plan "specs on Lua 5.4" $long_specs $specs
  plan rocks
  plan "specs in nginx with the core" $nginx_specs
  if [ -n "$all" ]; then
    plan "core specs under valgrind" $core_specs $crowded_specs
    plan "specs in nginx without the core" $nginx_specs
    plan "specs with poll" spec/unit/core spec/unit/runtime spec/contract
    for lua in 5.3 5.1 luajit; do
      plan "specs on Lua $lua" $long_specs $specs
    done
  else
    plan "specs in nginx without the core" $coreless_specs
    plan "specs with poll" $poller_specs
    plan "specs on Lua 5.3" $language_specs
    plan "specs on Lua 5.1" $language_specs
    plan "specs on Lua luajit" $luajit_specs
  fi
  plan demo
}

# shellcheck disable=SC2086
plan_for_c() {
  sequence=200
  if build sanitize; then
    plan "C tests with sanitizers"
    plan "core specs with sanitizers and a tortured collector" $core_specs
    plan "crowded specs with sanitizers" $crowded_specs
    for fuzzer in $(fuzzers); do
      plan "fuzzer of $fuzzer"
    done
  fi
  if build threads; then
    plan lint
    plan "C tests with the thread sanitizer"
  fi
  if build ctest; then
    plan "C tests"
    plan "what cmake installs"
    [ -z "$all" ] || plan "embedding under valgrind"
  fi
}
run_lanes "$lanes" plan_for_luas plan_for_c

# A few spec files that failed run once more, one after the other, with nothing beside them. A file that passes then is
# unsteady: the run passes and names it, and its output stands above. The fault matrix has no second run: a wrong answer
# that comes once in many runs is still wrong.
again=$(awk -F'\t' '$3 > 0 && $5 != "" && $5 !~ /^spec\/faults\// { print $1 "\t" $5 }' "$results")
if [ -n "$again" ] && [ "$(printf '%s\n' "$again" | wc -l)" -le 5 ]; then
  say "again, alone:
$again"
  printf '%s\n' "$again" >"$log/again"
  cp "$results" "$log/first_results"
  awk -F'\t' 'NR == FNR { again[$0]; next } !(($1 "\t" $5) in again)' "$log/again" "$log/first_results" >"$results"
  plan_again() {
    cp "$log/again" "$planned/1.spec"
  }
  run_lanes 1 plan_again
  awk -F'\t' 'NR == FNR { again[$0]; next } $3 == 0 && ($1 "\t" $5) in again { print "unsteady: " $1 ", " $5 }' \
    "$log/again" "$results"
fi

awk -F'\t' '
  { passed += $2; failed += $3 }
  $3 > 0 { print "failed: " $1 ($5 == "" ? "" : ", " $5) }
  END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }
' "$results"
