# ./dev build [LUA]: builds the C modules for one Lua (5.4, 5.3, 5.1 or luajit; 5.4 by default).
. tools/common.sh
lua=${1:-5.4}
interpreter "$lua" >/dev/null
need_to_build "$lua"
build_preset "$lua"
