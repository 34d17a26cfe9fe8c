# Makes, packs, installs and removes the rocks for each LUA (5.4, 5.3, 5.1 or luajit), without a network. It screens an
# address with what was installed: sh tools/rocks.sh LUA... The rocks of the rooms are not tried for LuaJIT.
. tools/common.sh
# One after the other: the next one takes most object files of the last one.
if [ $# -gt 1 ]; then
  for lua in "$@"; do
    sh "$0" "$lua"
  done
  exit
fi
lua=$1
interpreter=$(interpreter "$lua")
number=$([ "$lua" = luajit ] && echo 5.1 || echo "$lua")
version=$(lua5.4 -e 'print(dofile "lua/riskscreen/version.lua")')
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
git ls-files -z | xargs -0 tar cf - | tar xf - -C "$(mkdir -p "$directory/source" && echo "$directory/source")"
cd "$directory/source"

# The rocks have most C files in common, also with a release, which is built in the locale C.
if command -v ccache >/dev/null; then
  export LC_ALL=C
  CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_DIR=$root/build/ccache CCACHE_BASEDIR=$directory
  export CMAKE_C_COMPILER_LAUNCHER CCACHE_DIR CCACHE_BASEDIR
fi

LUAROCKS_CONFIG=$directory/config.lua
export LUAROCKS_CONFIG
: >"$LUAROCKS_CONFIG"
[ "$lua" != luajit ] || cat >>"$LUAROCKS_CONFIG" <<'LUA'
cmake_generator = "Ninja" -- the other rocks are built by make, as luarocks does by itself
lua_interpreter = "luajit"
variables = { LUA = "/usr/bin/luajit", LUA_INCDIR = "/usr/include/luajit-2.1" }
LUA

# rocks TREE COMMAND...: luarocks without a network, where the system allows that.
offline=$(unshare -n true 2>/dev/null && echo unshare -n) || true
rocks() {
  tree=$directory/$1
  shift
  # shellcheck disable=SC2086
  $offline luarocks --lua-version="$number" --tree "$tree" "$@"
}

# left TREE: the files of a tree that a user would see.
left() {
  find "$directory/$1" -path '*riskscreen*' ! -path '*/lib/luarocks/*' ! -type d
}

rocks first lint riskscreen-scm-1.rockspec
rocks first lint "rockspecs/riskscreen-$version-1.rockspec"
rocks first lint "rockspecs/decoder/riskscreen-decoder-$version-1.rockspec"

# The decoder first, alone.
rocks first make rockspecs/decoder/riskscreen-decoder-scm-1.rockspec
[ "$(left first)" = "$directory/first/lib/lua/$number/riskscreen/decoder.so" ]
ldd "$directory/first/lib/lua/$number/riskscreen/decoder.so" >"$directory/libraries"
! grep -E 'curl|ssl|crypto|microhttpd' "$directory/libraries" || exit 1
LUA_PATH='' LUA_CPATH="$directory/first/lib/lua/$number/?.so" "$interpreter" -e '
  local decoder = require "riskscreen.decoder"
  assert(decoder.decode("[1, 2]")[2] == 2)'
rocks first remove riskscreen-decoder
[ -z "$(left first)" ]

# As README says, but for the tree. It takes the scm rockspec among those of this directory.
rocks first make | tee "$directory/made"
! grep 'Missing dependencies' "$directory/made" || exit 1
rocks first show riskscreen | grep -q 'scm-1'

rocks first make "rockspecs/riskscreen-$version-1.rockspec"
(cd "$directory" && rocks first pack riskscreen "$version")
rocks second install "$directory/riskscreen-$version-1.$(uname | tr '[:upper:]' '[:lower:]')-$(uname -m).rock"
find "$directory/second" -path '*man1/riskscreen.1' | grep -q .
find "$directory/second" -path '*types/riskscreen*' | grep -q .
(
  unset LUA_PATH LUA_CPATH
  cd "$directory"
  "second/bin/riskscreen" address check 0x0000000000000000000000000000000000000001 -n eth
  [ "$("second/bin/riskscreen" --version)" = "riskscreen $version" ]
  tree=$directory/second
  LUA_PATH="$tree/share/lua/$number/?.lua;$tree/share/lua/$number/?/init.lua;;" \
    LUA_CPATH="$tree/lib/lua/$number/?.so;;" "$interpreter" "$root/spec/support/installed.lua" "$tree"
)
rocks second remove riskscreen
[ -z "$(left second)" ]

# The rock of each room, after those that it needs. A room that is not there is named. That does not depend on the Lua.
[ "$lua" != luajit ] || exit 0
rocks rooms make rockspecs/rooms/riskscreen-library-scm-1.rockspec
(
  unset LUA_PATH LUA_CPATH
  cd "$directory"
  LUA_PATH="rooms/share/lua/$number/?.lua;rooms/share/lua/$number/?/init.lua;;"
  LUA_CPATH="$directory/rooms/lib/lua/$number/?.so;;"
  export LUA_PATH LUA_CPATH
  "$interpreter" -e 'assert(require("riskscreen").new)'
  ! "$interpreter" -e 'return require("riskscreen").sandbox' 2>"$directory/said" || exit 1
  grep -q 'the rock riskscreen-sandbox' "$directory/said"
)
! rocks rooms make --deps-mode one rockspecs/rooms/riskscreen-command-scm-1.rockspec 2>"$directory/said" || exit 1
grep -q 'riskscreen-sandbox' "$directory/said"
for room in sandbox durable gate command; do
  rocks rooms make "rockspecs/rooms/riskscreen-$room-scm-1.rockspec"
done
(
  unset LUA_PATH LUA_CPATH
  cd "$directory"
  rooms/bin/riskscreen address check 0x0000000000000000000000000000000000000001 -n eth
)
for room in command gate durable sandbox library; do
  rocks rooms remove "riskscreen-$room"
done
[ -z "$(left rooms)" ]
