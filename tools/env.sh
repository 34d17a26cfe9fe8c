# ./dev env [LUA]: prints the exports for that Lua to use this checkout: eval "$(./dev env)".
. tools/common.sh
lua=${1:-5.4}
build_to_run "$lua"
printf 'export LUA_PATH="%s" LUA_CPATH="%s" PATH="%s/build/%s/bin:$PATH"\n' "$LUA_PATH" "$LUA_CPATH" "$root" "$lua"
