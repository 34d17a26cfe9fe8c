# ./dev deb [DIRECTORY]: builds the Debian packages from a copy of this checkout, into DIRECTORY, build/deb by default.
#
# Then lintian checks them. SOURCE_DATE_EPOCH is the time of the release; by default it is the time of the last commit.
. tools/common.sh
# shellcheck disable=SC2086
need $deb_packages
output=${1:-build/deb}
version=$(lua5.4 -e 'print(dofile "lua/riskscreen/version.lua")')
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date -r CHANGELOG.md +%s)}
export SOURCE_DATE_EPOCH
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir "$directory/riskscreen"
{ git ls-files -z 2>/dev/null || find . -path ./build -prune -o -type f -print0; } |
  xargs -0 tar cf - | tar xf - --no-same-owner -C "$directory/riskscreen"
cat >"$directory/riskscreen/debian/changelog" <<TEXT
riskscreen ($version-1) unstable; urgency=medium

  * Release $version.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
if ! (cd "$directory/riskscreen" && DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -b -us -uc) >"$directory/log" 2>&1; then
  tail -n 40 "$directory/log" >&2
  exit 1
fi
mkdir -p "$output"
rm -f "$output"/*.deb
mv "$directory"/*.deb "$output/"
lintian --fail-on error --allow-root --tag-display-limit 0 "$output"/*.deb
ls "$output"/*.deb
