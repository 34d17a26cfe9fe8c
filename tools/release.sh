# ./dev release X.Y.Z: runs all checks and prepares a release in build/release/X.Y.Z.
#
# The directory gets the changelog with its date, rockspecs, the source tarball, a source rock, the rocks of each Lua, the
# Debian packages, an archive in OPM's layout, an SBOM and SHA256SUMS. Nothing is published, and the checkout stays as it
# is. X.Y.Z must be the version in lua/riskscreen/version.lua and above the last release in CHANGELOG.md, which must have
# entries about it. The same commit gives the same bytes.
#
# --unchecked     runs no checks
# --luas LIST     builds rocks for these Luas alone
# --without-deb   builds no Debian packages
# --output DIR    prepares in DIR, which is emptied
. tools/common.sh

fail() {
  say "release: $*"
  exit 1
}

version='' unchecked='' output='' luas=$all_luas with_deb=yes
while [ $# -gt 0 ]; do
  case $1 in
  --unchecked) unchecked=yes ;;
  --luas) luas=$2 && shift ;;
  --without-deb) with_deb= ;;
  --output) output=$2 && shift ;;
  -*) fail "unknown option $1; ./dev release -h" ;;
  *) version=$1 ;;
  esac
  shift
done
echo "$version" | grep -q -E '^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$' ||
  fail "expected a version such as 1.2.3 (got '$version')"
[ -z "$(git status --porcelain)" ] || fail "the checkout has changes that are not committed: git status"
# shellcheck disable=SC2086
need $build_packages $test_packages zip unzip
present=$(lua5.4 -e 'print(dofile "lua/riskscreen/version.lua")')
[ "$version" = "$present" ] ||
  fail "the version is $present: change lua/riskscreen/version.lua and the head of CHANGELOG.md, and run ./dev format"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
TZ=UTC LC_ALL=C
export SOURCE_DATE_EPOCH TZ LC_ALL
umask 022
changelog=$(mktemp)
work=$(mktemp -d)
trap 'rm -rf "$work" "$changelog"' EXIT
lua5.4 tools/release/changelog.lua "$version" "$(date -d "@$SOURCE_DATE_EPOCH" +%F)" >"$changelog"

if [ -z "$unchecked" ]; then
  sh tools/lint.sh
  sh tools/test.sh
fi

output=${output:-$root/build/release/$version}
rm -rf "$output"
mkdir -p "$output"
output=$(cd "$output" && pwd)

# Gives all files below the current directory one time and plain permissions.
settle() {
  find . -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  chmod -R u=rwX,go=rX .
}

# archive NAME FILE: a tarball of the directory NAME.
archive() {
  tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" |
    gzip -9 -n >"$2"
}

# rock FILE: a zip of the current directory.
rock() {
  settle
  find . -type f | sort | zip -q -X -9 -@ "$1"
}

cd "$work"
name=riskscreen-$version
git -C "$root" archive --prefix="$name/" HEAD | tar xf -
cp "$changelog" "$name/CHANGELOG.md"
(cd "$name" && settle)
cp "$name/CHANGELOG.md" "$name/rockspecs/$name-1.rockspec" "$name/rockspecs/decoder/riskscreen-decoder-$version-1.rockspec" \
  "$name"/rockspecs/rooms/*-"$version-1.rockspec" "$output"
archive "$name" "$output/$name.tar.gz"

# source_rock ROCKSPEC
source_rock() {
  mkdir source
  (cd source && cp "$output/$1.rockspec" "$output/$name.tar.gz" . && rock "$output/$1.src.rock")
  rm -r source
}
source_rock "$name-1"
source_rock "riskscreen-decoder-$version-1"

for lua in $luas; do
  number=$([ "$lua" = luajit ] && echo 5.1 || echo "$lua")
  mkdir -p "$output/lua-$lua"
  LUAROCKS_CONFIG=$work/config.lua
  export LUAROCKS_CONFIG
  echo 'cmake_generator = "Ninja"' >"$LUAROCKS_CONFIG"
  [ "$lua" != luajit ] ||
    echo 'lua_interpreter = "luajit" variables = { LUA = "/usr/bin/luajit", LUA_INCDIR = "/usr/include/luajit-2.1" }' \
      >>"$LUAROCKS_CONFIG"
  rm -rf build
  cp -a "$name" build
  # The decoder is a part of the library, which comes first: its object files serve for both.
  for spec in "rockspecs/$name-1" "rockspecs/decoder/riskscreen-decoder-$version-1"; do
    rm -rf tree packed
    mkdir packed
    (cd build && luarocks --lua-version="$number" --tree "$work/tree" make "$spec.rockspec") >"$work/log" 2>&1 ||
      { cat "$work/log" >&2; fail "luarocks cannot build $spec for Lua $lua"; }
    package=$(basename "$spec" "-$version-1")
    (cd packed && luarocks --lua-version="$number" --tree "$work/tree" pack "$package" "$version") >/dev/null
    packed=$(cd packed && ls)
    mkdir packed/content
    (cd packed/content && unzip -q "../$packed" && rock "$output/lua-$lua/$packed")
  done
done

# In the layout of `opm build`; it also serves to be unpacked into OpenResty's site/lualib.
mkdir -p "opm/$name/lib"
cp -R "$name/lua/riskscreen" "opm/$name/lib/"
cp -R "$name/docs" "opm/$name/lib/"
cp "$name/README.md" "$name/CHANGELOG.md" "$name/LICENSE" "opm/$name/"
sed 's|^lib_dir = .*|lib_dir = lib|; s|^doc_dir = .*|doc_dir = lib|; s|= lua/riskscreen|= lib/riskscreen|' \
  "$name/dist.ini" >"opm/$name/dist.ini"
(cd "opm/$name" && settle)
(cd opm && archive "$name" "$output/$name.opm.tar.gz")

# From the files of the tarball, whose changelog has the date.
[ -z "$with_deb" ] || (cd "$name" && sh tools/deb.sh "$output")

cd "$root"
LUA_PATH="lua/?.lua;lua/?/init.lua;;" lua5.4 tools/release/sbom.lua \
  "$(sha256sum "$output/$name.tar.gz" | cut -c 1-64)" "$SOURCE_DATE_EPOCH" >"$output/$name.cdx.json"
# shellcheck disable=SC2094
(cd "$output" && find . -type f ! -name SHA256SUMS | sed 's|^\./||' | sort | xargs sha256sum >SHA256SUMS)
say "Prepared in $output. To release, commit its CHANGELOG.md, tag the commit v$version, and publish the files."
