# cmake --install, and programs that link the static library.
. spec/packages/common.sh
sh tools/check_cmake.sh --all
{
  section "CMake"
  section "A program in C or C++"
  # The library itself, over HTTP.
  echo 'cd / && lua5.4 /root/project/spec/support/installed.lua /usr/local'
} >"$work/script"
sh tools/bare.sh "$work/script"
