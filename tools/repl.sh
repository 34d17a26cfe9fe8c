# ./dev repl [LUA]: a Lua prompt with `riskscreen` and a `client` of the sandbox: `riskscreen repl` of this checkout.
. tools/common.sh
lua=${1:-5.4}
build_to_run "$lua"
exec "$(interpreter "$lua")" bin/riskscreen.in repl --sandbox
