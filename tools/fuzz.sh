# ./dev fuzz [SECONDS [NAME]]: runs each fuzzer, or one of them, for 60 seconds by default. Inputs that fail are kept
# in build/fuzz/found, and inputs that reach new code in build/fuzz/corpus.
. tools/common.sh
seconds=${1:-60}
case $seconds in
*[!0-9]*) say "fuzz: SECONDS must be a whole number (got '$seconds')"; exit 2 ;;
esac
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset fuzz
names=$(fuzzers | grep -x "${2:-.*}") || { say "fuzz: NAME must be one of" $(fuzzers) "(got '$2')"; exit 2; }
status=0
mkdir -p build/fuzz/found
for name in $names; do
  case $name in
  decoder_plans | strict_cjson) seeds=decoder ;;
  *) seeds=$name ;;
  esac
  mkdir -p "build/fuzz/corpus/$name"
  dictionary=
  [ -f "spec/fuzz/$seeds.dict" ] && dictionary=-dict=spec/fuzz/$seeds.dict
  say "== $name for $seconds seconds"
  "build/fuzz/spec/c/${name}_fuzz" -max_total_time="$seconds" -artifact_prefix=build/fuzz/found/ -print_final_stats=1 -verbosity=0 \
    ${dictionary:+"$dictionary"} "build/fuzz/corpus/$name" "spec/fuzz/corpus/$seeds" || status=1
done
exit $status
