# ./dev packages [NAME...]: tests each way to install the library, each in a bare Debian 12, and screens an address there.
#
# Each script in spec/packages is a test. It runs the commands of a section of docs/install.md in a bare system, by
# tools/bare.sh. NAME is part of a test's name. Needs root. The last line says how many tests passed and failed.
. tools/common.sh
directory=build/packages
mkdir -p "$directory"
passed=0
failed=
for test in spec/packages/*.sh; do
  name=$(basename "$test" .sh)
  [ "$name" != common ] || continue
  chosen=
  for wanted in "$@"; do
    case $name in *"$wanted"*) chosen=yes ;; esac
  done
  [ $# = 0 ] || [ -n "$chosen" ] || continue
  started=$(date +%s)
  if sh -eu "$test" >"$directory/$name.log" 2>&1; then
    passed=$((passed + 1))
    say "ok      $name ($(($(date +%s) - started)) s)"
  else
    failed="$failed $name"
    tail -n 60 "$directory/$name.log" >&2
    say "FAILED  $name (all of it: $directory/$name.log)"
  fi
done
# shellcheck disable=SC2086
set -- $failed
say "$passed passed, $# failed"
[ $# = 0 ] && [ $passed -gt 0 ]
