# Installs with cmake for Lua 5.4 and LuaJIT into one prefix. Uses what is there from Lua, by the command, and in programs
# in C and C++ that find it by pkg-config and by find_package. With --all also uses the static library for LuaJIT, and
# builds a project that contains the sources.
. tools/common.sh
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
prefix=$directory/prefix
step() {
  "$@" >"$directory/log" 2>&1 || { cat "$directory/log" >&2; exit 1; }
}
equal() {
  [ "$1" = "$2" ] || { say "expected: $1"; say "got:      $2"; exit 1; }
}

build_preset ctest # the one for Lua 5.4 that has the static library
step cmake --install build/ctest --prefix "$prefix"
if [ "${1:-}" = --all ]; then
  step cmake -S . -B "$directory/luajit" -DRISKSCREEN_LUA=luajit -DRISKSCREEN_STATIC=ON
  step cmake --build "$directory/luajit" -j2
  luajit=$directory/luajit
else
  build_preset luajit
  luajit=build/luajit
fi
step cmake --install "$luajit" --prefix "$prefix"
for lua in 5.4 luajit; do
  version=$(echo $lua | sed 's/luajit/5.1/')
  LUA_PATH="$prefix/share/lua/$version/?.lua;$prefix/share/lua/$version/?/init.lua;;" \
    LUA_CPATH="$prefix/lib/lua/$version/?.so;;" $(interpreter $lua) spec/support/installed.lua "$prefix"
done

# A build directory keeps the paths of its Lua.
step cmake -S . -B "$directory/other" -DRISKSCREEN_LUA=5.3
! cmake -S . -B "$directory/other" -DRISKSCREEN_LUA=5.4 >"$directory/log" 2>&1 || exit 1
grep -q "this build directory is for Lua 5.3" "$directory/log"
! cmake -S . -B "$directory/third" -DRISKSCREEN_SERVER=maybe >"$directory/log" 2>&1 || exit 1
grep -q "RISKSCREEN_SERVER must be AUTO, ON or OFF" "$directory/log"

# The command finds the library by itself, and runs on the Lua that was installed first.
# runs COMMAND LUA
runs() {
  equal "#!/usr/bin/env $2" "$(head -n 1 "$prefix/bin/$1")"
  equal "riskscreen $(sed -n 's/^return "\(.*\)"/\1/p' lua/riskscreen/version.lua)" \
    "$(cd / && env -u LUA_PATH -u LUA_CPATH "$prefix/bin/$1" --version)"
}
runs riskscreen lua5.4
runs riskscreen-luajit luajit
for file in share/man/man1/riskscreen.1 share/bash-completion/completions/riskscreen share/zsh/site-functions/_riskscreen \
  share/fish/vendor_completions.d/riskscreen.fish; do
  [ -s "$prefix/$file" ] || { say "$file is not installed"; exit 1; }
done

host=$root/examples/embed/host.c
# link NAME: links the program in C++ by the file of pkg-config, and runs it.
link() {
  # shellcheck disable=SC2046
  step c++ spec/packages/consumer/host.cpp -o "$directory/host" \
    $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs "riskscreen-$1")
  equal block "$("$directory/host")"
}
link lua5.4
# consumer OPTION...
consumer() {
  rm -rf "$directory/consumer"
  step cmake -S spec/packages/consumer -B "$directory/consumer" -DHOST="$host" "$@"
  step cmake --build "$directory/consumer" -j2
  equal "block block" "$("$directory/consumer/host_c") $("$directory/consumer/host_cpp")"
}
consumer -DCMAKE_PREFIX_PATH="$prefix" -DLUA=lua5.4

# The installed package takes every libcurl that the build takes.
mkdir "$directory/modules"
cat >"$directory/modules/FindCURL.cmake" <<'END'
include(FindPackageHandleStandardArgs)
set(CURL_VERSION_STRING 7.74.0)
find_package_handle_standard_args(CURL REQUIRED_VARS CURL_VERSION_STRING VERSION_VAR CURL_VERSION_STRING)
add_library(CURL::libcurl INTERFACE IMPORTED)
END
step cmake -S spec/packages/consumer -B "$directory/oldest_libcurl" -DHOST="$host" -DCMAKE_PREFIX_PATH="$prefix" -DLUA=lua5.4 \
  -DCMAKE_MODULE_PATH="$directory/modules"
if [ "${1:-}" = --all ]; then
  link luajit
  consumer -DCMAKE_PREFIX_PATH="$prefix" -DLUA=luajit
  consumer -DCMAKE_PREFIX_PATH="$prefix" -DLUA=lua5.4 -DOWN_LUA=ON
  consumer -DSOURCE="$root" -DLUA=5.4
  consumer -DSOURCE="$root" -DLUA=5.4 -DOWN_LUA=ON
fi
if cmake -S spec/packages/consumer -B "$directory/none" -DHOST="$host" -DCMAKE_PREFIX_PATH="$prefix" -DLUA=lua5.3 \
  >"$directory/log" 2>&1 || ! grep -q "riskscreen is not installed for 'lua5.3'" "$directory/log"; then
  say "A Lua that is not installed must be refused:"
  cat "$directory/log" >&2
  exit 1
fi

# A Lua that is removed leaves the others what they need, and the last one leaves nothing.
files() {
  (cd "$prefix" && find . -type f | sort)
}
rm -rf "$prefix"
step cmake --install "$luajit" --prefix "$prefix"
files >"$directory/alone"
step cmake --install build/ctest --prefix "$prefix"
step cmake --build build/ctest --target uninstall
files | diff "$directory/alone" - || { say "the removal of the second Lua must leave the first one"; exit 1; }
step cmake --install build/ctest --prefix "$prefix"
step cmake --build "$luajit" --target uninstall
runs riskscreen lua5.4
step cmake --install "$luajit" --prefix "$prefix"
step cmake --build build/ctest --target uninstall
runs riskscreen luajit
files | diff "$directory/alone" - || { say "the removal of the first Lua must leave the second one"; exit 1; }
step cmake --build "$luajit" --target uninstall
equal "./bin ./include ./lib ./share ./share/man" "$(cd "$prefix" && find . -mindepth 1 | sort | xargs)"
