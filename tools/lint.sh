# ./dev lint: checks the style, the layers and known mistakes, and that generated files are up to date. Changes nothing.
# With --all also runs clang's analyzer, which takes minutes.
. tools/common.sh
# shellcheck disable=SC2086
need $build_packages $lint_packages
. tools/stylua.sh
status=0
git ls-files '*.c' '*.h' | xargs -r clang-format --dry-run --Werror || status=1
if command -v npm >/dev/null && get_stylua; then
  git ls-files '*.lua' ':!types' | xargs -r node --liftoff-only tools/stylua.mjs --check || status=1
else
  say "Lua's formatting is not checked: StyLua comes from npm, which does not work here."
fi
# LuaJIT needs half the time of luacheck's own Lua.
luajit "$(command -v luacheck)" --quiet . || status=1
lua5.4 tools/layers.lua || status=1
# Left out: texts that another program expands, and variables of a file that another one sources.
git ls-files dev '*.sh' | xargs shellcheck --shell=dash --exclude=SC2016,SC2034,SC2154 || status=1

sh tools/build.sh
use_build 5.4
lua5.4 tools/generate.lua --check || status=1

# The programs for the thread sanitizer are built with gcc's analyzer.
build_preset threads --target threads_test threads_example || status=1
# Clang's warnings and clang-tidy's, with the commands of a build that is not made. They are found again when a C file has
# changed.
configure_preset clang >build/clang.log || status=1
less='-clang-analyzer-*'
[ "${1:-}" != --all ] || less=
tidied=build/clang/tidied$less
if [ ! -e "$tidied" ] || [ -n "$(find csrc .clang-tidy -newer "$tidied")" ]; then
  if git ls-files 'csrc/*.c' | xargs -n 4 -P 2 clang-tidy -p build/clang --quiet --checks="$less" 2>/dev/null; then
    touch "$tidied"
  else
    status=1
  fi
fi
# NEON code: only the compiler is for ARM. The headers of the C library are this machine's, which serve to check it.
neon_target="--target=aarch64-linux-gnu -D__x86_64__ -isystem /usr/include/$(uname -m)-linux-gnu"
# shellcheck disable=SC2086
clang $neon_target -std=c11 -D_GNU_SOURCE -Icsrc -Wall -Wextra -Wconversion -Werror -fsyntax-only \
  csrc/json/*.c || status=1
cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,performance,portability \
  -D__GNUC__ -D__linux__ -DLUA_VERSION_NUM=504 -Icsrc -Icsrc/lua csrc || status=1
exit $status
