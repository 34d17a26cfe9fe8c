# ./dev fuzz [SECONDS [NAME]]: runs each fuzzer, or one of them, for 60 seconds by default. Inputs that fail are kept
# in build/fuzz/found, and inputs that reach new code in build/fuzz/corpus.
. tools/common.sh
seconds=${1:-60}
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset fuzz
status=0
mkdir -p build/fuzz/found
for target in build/fuzz/spec/c/${2:-*}_fuzz; do
  name=$(basename "$target" _fuzz)
  case $name in
  decoder_plans | strict_cjson) seeds=decoder ;;
  *) seeds=$name ;;
  esac
  mkdir -p "build/fuzz/corpus/$name"
  dictionary=
  [ -f "spec/fuzz/$seeds.dict" ] && dictionary=-dict=spec/fuzz/$seeds.dict
  say "== $name for $seconds seconds"
  "$target" -max_total_time="$seconds" -artifact_prefix=build/fuzz/found/ -print_final_stats=1 -verbosity=0 \
    ${dictionary:+"$dictionary"} "build/fuzz/corpus/$name" "spec/fuzz/corpus/$seeds" || status=1
done
exit $status
