# ./dev install [LUA [PREFIX]]: builds the library for one Lua and installs it below PREFIX, /usr/local by default.
# These are the Lua files and the C modules, without the command. With luajit nginx finds both, and needs no path to this checkout.
# `cmake --build build/LUA --target uninstall` removes them.
. tools/common.sh
lua=${1:-5.4}
sh tools/build.sh "$lua"
prefix=${2:-/usr/local}
umask 022 # nginx's workers are another user
sudo=
[ -w "$prefix" ] || [ ! -e "$prefix" ] || [ "$(id -u)" = 0 ] || sudo=sudo
: >"build/$lua.install.log"
for room in library sandbox durable gate; do
  $sudo cmake --install "build/$lua" --prefix "$prefix" --component $room >>"build/$lua.install.log" || {
    cat "build/$lua.install.log" >&2
    exit 1
  }
done
say "Installed below $prefix"
