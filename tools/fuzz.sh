# ./dev fuzz [SECONDS [NAME [SEED [COUNT]]]]: runs each fuzzer, or one of them, for 60 seconds by default, and stops before
# when it has tried COUNT inputs. Inputs that fail are kept in build/fuzz/found, and inputs that reach new code in
# build/fuzz/corpus, where the next run goes on. The seed is new in each run, and printed. With a SEED the run begins with
# the inputs of spec/fuzz/corpus only: so does `./dev test`.
# The fuzzer `binders` compares the gate's readers of queries, forms and JSON with the parsers of PHP, Node, Python and
# Ruby. `properties` are the specs with random inputs, once with the seed; in `./dev test` their seed is 1.
. tools/common.sh
seconds=${1:-60}
seed=${3:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
for number in "$seconds" "$seed"; do
  case $number in
  '' | *[!0-9]*) say "fuzz: SECONDS and SEED must be whole numbers (got '$number')"; exit 2 ;;
  esac
done

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
  say "== binders for $seconds seconds, seed $seed"
  result=0
  if [ $# = 0 ]; then
    say "binders: skipped: there is no parser"
  else
    lua5.4 spec/fuzz/binders/run.lua "$seconds" "$seed" "$@" || result=1
  fi
  rm -r "$BINDERS_DIR"
  return $result
}

fuzz_properties() {
  sh tools/build.sh 5.4 >/dev/null || return 1
  use_build 5.4
  say "== properties, seed $seed"
  RISKSCREEN_SEED=$seed RISKSCREEN_LUA=lua5.4 lua5.4 /usr/bin/busted --output=plainTerminal \
    spec/unit/client/pages_spec.lua spec/unit/core/decoder_property_spec.lua spec/unit/nginx/cache/purge_spec.lua
}

# shellcheck disable=SC2086
need $build_packages $test_packages
case ${2:-} in
binders) fuzz_binders; exit ;;
properties) fuzz_properties; exit ;;
esac
# The test run has built them, and runs two of them side by side.
[ -n "${RISKSCREEN_FUZZERS_BUILT:-}" ] || build_preset sanitize
names=$(fuzzers | grep -x "${2:-.*}") || { say "fuzz: NAME must be one of $(fuzzers | tr '\n' ' ')(got '$2')"; exit 2; }
status=0
mkdir -p build/fuzz/found
for name in $names; do
  case $name in
  decoder_portable | strict_cjson) seeds=decoder ;;
  *) seeds=$name ;;
  esac
  corpus=build/fuzz/corpus/$name
  if [ -n "${3:-}" ]; then
    corpus=build/fuzz/seeded/$name
    rm -rf "$corpus"
  fi
  mkdir -p "$corpus"
  dictionary=
  [ -f "spec/fuzz/$seeds.dict" ] && dictionary=-dict=spec/fuzz/$seeds.dict
  say "== $name for $seconds seconds, seed $seed"
  "build/sanitize/spec/c/${name}_fuzz" -max_total_time="$seconds" -runs="${4:--1}" -seed="$seed" -artifact_prefix=build/fuzz/found/ \
    -print_final_stats=1 -verbosity=0 ${dictionary:+"$dictionary"} "$corpus" "spec/fuzz/corpus/$seeds" || status=1
done
if [ -z "${2:-}" ]; then
  fuzz_properties || status=1
  fuzz_binders || status=1
fi
exit $status
