# ./dev test: builds for every Lua and runs every check. The last line says how many tests passed and failed.
#
# ./dev test --all: also runs valgrind, clang's analyzer, a minute of each fuzzer, and every spec on every Lua and
# without the core.
#
# ./dev test NAME...: runs the specs whose path holds NAME on Lua 5.4. NAME is a file, a folder, or a word such as `retry`.
# Options such as --filter=TEXT go to busted.
. tools/common.sh

all=OFF
names=
options=
for argument in "$@"; do
  case $argument in
  --all) all=ON ;;
  -*) options="$options $argument" ;;
  *) names="$names $argument" ;;
  esac
done

# shellcheck disable=SC2086
need $build_packages $test_packages
if [ -n "$names$options" ]; then
  files=
  for name in ${names:-spec}; do
    found=$(find spec -name '*_spec.lua' -o -name '*_nginx.lua' | sort | grep -F -- "${name#./}") || true
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

mkdir -p build
cmake -S spec -B build/checks -DALL=$all >build/checks.log || { cat build/checks.log >&2; exit 1; }
# run NAME [OPTION...]: keeps the log and the names of the tests that failed.
run() {
  name=$1
  shift
  ctest --test-dir build/checks --timeout 3600 --output-on-failure "$@" || true
  cp build/checks/Testing/Temporary/LastTest.log "build/checks/$name.log"
  sed 's/^[0-9]*://' build/checks/Testing/Temporary/LastTestsFailed.log >"build/checks/$name.failed" 2>/dev/null || true
  rm -f build/checks/Testing/Temporary/LastTestsFailed.log
}
rm -f build/checks/*.failed build/checks/Testing/Temporary/LastTestsFailed.log
run first -j "$lanes"

# A few spec files that failed run once more, one after the other, with nothing beside them. A file that passes then is
# unsteady: the run passes and names it, and its output stands above. The fault matrix has no second run: a wrong answer
# that comes once in many runs is still wrong.
again=$(grep ': spec/' build/checks/first.failed | grep -v spec/faults/) || true
if [ -n "$again" ] && [ "$(grep -c . build/checks/first.failed)" -le 5 ]; then
  say "again, alone:
$again"
  printf '%s\n' "$again" | sed 's/[.+]/\\&/g; s/.*/^&$/' | paste -sd '|' >build/checks/again.names
  run again -FA . -R "$(cat build/checks/again.names)"
fi

# The tests of a spec file count one by one. Only what failed in each of its runs has failed.
touch build/checks/again.log build/checks/again.failed
awk -v again="$again" '
  FILENAME ~ /failed$/ { failed[$0]++; next }
  /^[0-9]+\/[0-9]+ Testing: / { name = $0; sub("^[^:]*: ", "", name); runs[name]++; good[name] = 1; bad[name] = 0 }
  name ~ /: spec\// && / success.* failure.* error.* : [0-9.]+ seconds/ { good[name] = $1; bad[name] = $4 + $7 }
  END {
    for (name in runs) {
      if (failed[name] == runs[name]) {
        print "failed: " name
        if (!bad[name]) bad[name] = 1 # a sanitizer or a crash fails a run whose every test passed
        if (name !~ /: spec\//) good[name] = 0
      } else if (failed[name]) print "unsteady: " name
      all_good += good[name]; all_bad += failed[name] == runs[name] ? bad[name] : 0
    }
    printf "%d passed, %d failed\n", all_good, all_bad
    exit all_bad > 0
  }
' build/checks/first.failed build/checks/again.failed build/checks/first.log build/checks/again.log
