# ./dev lint: checks the style, the layers and known mistakes, and that generated files are up to date. Changes nothing.
. tools/common.sh
# shellcheck disable=SC2086
need $build_packages $lint_packages clang
. tools/stylua.sh
status=0
git ls-files '*.c' '*.h' | xargs -r clang-format --dry-run --Werror || status=1
if command -v npm >/dev/null && get_stylua; then
  git ls-files '*.lua' ':!types' | xargs -r node tools/stylua.mjs --check || status=1
else
  say "Lua's formatting is not checked: StyLua comes from npm, which does not work here."
fi
luacheck --quiet . || status=1
lua5.4 tools/layers.lua || status=1

sh tools/build.sh
use_build 5.4
lua5.4 tools/generate.lua --check || status=1

# The first is a build by gcc's analyzer; the second has the commands that clang-tidy needs.
build_preset lint || status=1
build_preset clang || status=1
# clang-tidy takes most of the time: it runs again when a C file has changed.
tidied=build/clang/tidied
if [ ! -e $tidied ] || [ -n "$(find csrc .clang-tidy -newer $tidied)" ]; then
  git ls-files 'csrc/*.c' | xargs -n 4 -P 2 clang-tidy -p build/clang --quiet 2>/dev/null && touch $tidied || status=1
fi
# NEON code: only the compiler is for ARM. The headers of the C library are this machine's, which serve to check it.
neon_target="--target=aarch64-linux-gnu -D__x86_64__ -isystem /usr/include/$(uname -m)-linux-gnu"
# shellcheck disable=SC2086
clang $neon_target -std=c11 -D_GNU_SOURCE -Icsrc -Wall -Wextra -Wconversion -Werror -fsyntax-only \
  csrc/json/*.c || status=1
cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,performance,portability \
  -D__GNUC__ -D__linux__ -DLUA_VERSION_NUM=504 -Icsrc -Icsrc/lua csrc || status=1
exit $status
