# Runs one check of spec/CMakeLists.txt:
#   sh spec/run.sh build PRESET [OPTION...]
#   sh spec/run.sh specs PRESET FILE [COMMAND...]: COMMAND of env(1) runs the Lua; RISKSCREEN_BUSTED is an option of busted
. tools/common.sh
what=$1 preset=$2
shift 2
if [ "$what" = build ]; then
  build_preset "$preset" "$@"
  exit
fi
file=$1
shift
lua=lua5.4
if [ "$preset" = sanitize ]; then
  set -- LD_PRELOAD="$(clang -print-file-name="libclang_rt.asan-$(uname -m).so")" ASAN_OPTIONS=detect_leaks=1 \
    LSAN_OPTIONS=suppressions=spec/support/lsan.supp RISKSCREEN_QUICK_ROUNDS=1 "$@"
else
  lua=$(interpreter "$preset")
fi
use_build "$preset"
# shellcheck disable=SC2086
exec env RISKSCREEN_LUA="$lua" "$@" "$lua" /usr/bin/busted --output=plainTerminal ${RISKSCREEN_BUSTED:-} "$file"
