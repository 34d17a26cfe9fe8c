# ./dev fuzz [SECONDS [NAME]]: runs each fuzzer, or one of them, for 60 seconds by default. Inputs that fail are kept
# in build/fuzz/found, and inputs that reach new code in build/fuzz/corpus. The fuzzer `binders` compares the gate's
# readers of queries, forms and JSON with the parsers of PHP, Node, Python and Ruby.
. tools/common.sh
seconds=${1:-60}

# Runs the parsers that are there, and names the others.
fuzz_binders() {
  # shellcheck disable=SC2086
  (need $build_packages lua-cjson php-cli nodejs node-qs python3 ruby-rack) || say "binders: some packages are not there"
  sh tools/build.sh 5.4 >/dev/null || return 1
  use_build 5.4
  BINDERS_DIR=$(mktemp -d)
  export BINDERS_DIR
  set --
  for parser in "php php.php" "node node.js" "/usr/bin/python3 python.py" "ruby rack.rb"; do
    program=${parser% *}
    if ! command -v "$program" >/dev/null; then
      say "binders: skipped ${parser#* }: there is no $program"
    elif [ "$program" = ruby ] && ! ruby -e 'require "rack"' 2>/dev/null; then
      say "binders: skipped rack.rb: ruby has no rack"
    else
      set -- "$@" "$program spec/fuzz/binders/${parser#* }"
    fi
  done
  say "== binders for $seconds seconds"
  result=0
  if [ $# = 0 ]; then
    say "binders: skipped: there is no parser"
  else
    lua5.4 spec/fuzz/binders/run.lua "$seconds" "$$" "$@" || result=1
  fi
  rm -r "$BINDERS_DIR"
  return $result
}

case ${2:-} in
binders)
  fuzz_binders
  exit
  ;;
esac
case $seconds in
*[!0-9]*) say "fuzz: SECONDS must be a whole number (got '$seconds')"; exit 2 ;;
esac
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset fuzz
names=$(fuzzers | grep -x "${2:-.*}") || { say "fuzz: NAME must be one of $(fuzzers | tr '\n' ' ')(got '$2')"; exit 2; }
status=0
mkdir -p build/fuzz/found
for name in $names; do
  case $name in
  decoder_portable | strict_cjson) seeds=decoder ;;
  *) seeds=$name ;;
  esac
  mkdir -p "build/fuzz/corpus/$name"
  dictionary=
  [ -f "spec/fuzz/$seeds.dict" ] && dictionary=-dict=spec/fuzz/$seeds.dict
  say "== $name for $seconds seconds"
  "build/fuzz/spec/c/${name}_fuzz" -max_total_time="$seconds" -artifact_prefix=build/fuzz/found/ -print_final_stats=1 -verbosity=0 \
    ${dictionary:+"$dictionary"} "build/fuzz/corpus/$name" "spec/fuzz/corpus/$seeds" || status=1
done
[ -n "${2:-}" ] || fuzz_binders || status=1
exit $status
