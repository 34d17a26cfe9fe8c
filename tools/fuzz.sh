# Every fuzzer for so many seconds; what it finds is kept in build/fuzz/found.
. tools/common.sh
seconds=${1:-60}
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset fuzz
mkdir -p build/fuzz/found
for target in build/fuzz/spec/c/*_fuzz; do
  name=$(basename "$target" _fuzz)
  mkdir -p "build/fuzz/corpus/$name"
  say "== $name for $seconds seconds"
  "$target" -max_total_time="$seconds" -artifact_prefix=build/fuzz/found/ -print_final_stats=1 -verbosity=0 \
    "build/fuzz/corpus/$name" "spec/fuzz/corpus/$name"
done
