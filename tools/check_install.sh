# Installs with luarocks into an empty directory, for Lua 5.4 and 5.1, and screens an address from there alone.
. tools/common.sh
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
git ls-files -z | xargs -0 tar cf - | tar xf - -C "$(mkdir -p "$directory/source" && echo "$directory/source")"
for version in 5.4 5.1; do
  tree="$directory/tree-$version"
  (cd "$directory/source" && luarocks --lua-version="$version" make --deps-mode=none --tree "$tree" riskscreen-scm-1.rockspec)
  rm -rf "$directory/source/build.luarocks"
  cd "$directory"
  (
    LUA_PATH="$tree/share/lua/$version/?.lua;$tree/share/lua/$version/?/init.lua;;"
    LUA_CPATH="$tree/lib/lua/$version/?.so;;"
    export LUA_PATH LUA_CPATH
    "lua$version" "$root/spec/support/installed.lua" "$tree"
    "$tree/bin/riskscreen" address check 0x0000000000000000000000000000000000000001 -n eth
  )
  find "$tree" -path '*man1/riskscreen.1' | grep -q .
  cd "$root"
done
