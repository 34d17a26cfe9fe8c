# cmake --install, and programs that link the static library.
. spec/packages/common.sh
sh tools/check_cmake.sh --all
{
  section "CMake"
  section "A program in C or C++"
  # The library itself, over HTTP.
  cat <<'SCRIPT'
(cd / && lua5.4 /root/project/spec/support/installed.lua /usr/local)
cmake --build build/install --target uninstall
left=$(find /usr/local -path '*riskscreen*')
[ -z "$left" ] || { echo "left after the removal: $left"; exit 1; }
SCRIPT
} >"$work/script"
sh tools/bare.sh "$work/script"
