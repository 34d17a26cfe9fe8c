# ./dev format: applies the style (clang-format to C, StyLua to Lua) and rewrites the generated files.
. tools/common.sh
# shellcheck disable=SC2086
need $lint_packages npm
. tools/stylua.sh
get_stylua
git ls-files '*.c' '*.h' | xargs -r clang-format -i
git ls-files '*.lua' ':!types' | xargs -r node tools/stylua.mjs
sh tools/build.sh
use_build 5.4
lua5.4 tools/generate.lua
