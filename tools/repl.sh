# ./dev repl [LUA]: a Lua prompt with `riskscreen` and a `client` of the sandbox.
. tools/common.sh
lua=${1:-5.4}
build_to_run "$lua"
say 'riskscreen is the library and client a client on the sandbox. Try: print(client:screen{ address = "0x16e998a4a64a384aa74dd757e5a6858ab909262e", network = "eth" }.action)'
exec "$(interpreter "$lua")" -i -e 'riskscreen = require "riskscreen"; client = riskscreen.sandbox.client {}'
