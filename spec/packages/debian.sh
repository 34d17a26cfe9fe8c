# The Debian packages: built twice in a bare system, with the same bytes; installed, used, upgraded and purged in another.
. spec/packages/common.sh
mkdir -p "$work/build/deb" "$work/old"
{
  section "Build the Debian packages"
  cat <<'SCRIPT'
# Each build is in a directory of its own. The second has another umask, time zone and locale.
(umask 077 && TZ=Asia/Tokyo LC_ALL=C ./dev deb build/again)
diff -r build/deb build/again
cp build/deb/*.deb /root/out/
SCRIPT
} >"$work/script"
BARE_OUT=$work/build/deb sh tools/bare.sh "$work/script"

# The same packages with a lower version.
for file in "$work"/build/deb/lua-riskscreen_*.deb "$work"/build/deb/riskscreen_*.deb; do
  dpkg-deb -R "$file" "$work/package"
  sed -i 's/0\.[0-9]*\.[0-9]*-1/0.1.0-1/' "$work/package/DEBIAN/control"
  dpkg-deb -b "$work/package" "$work/old/"
  rm -rf "$work/package"
done

{
  cat <<'SCRIPT'
apt-get install -q ./old/*.deb
[ "$(dpkg-query -W -f '${Version}' riskscreen)" = 0.1.0-1 ]
echo '# written by the operator' >>/etc/riskscreen/watch.env
SCRIPT
  section "Debian packages"
  cat <<'SCRIPT'
[ "$(dpkg-query -W -f '${Version}' lua-riskscreen)" != 0.1.0-1 ]
grep -q '^# written by the operator' /etc/riskscreen/watch.env
[ "$(stat -c %a /etc/riskscreen/watch.env)" = 600 ]
[ -s /lib/systemd/system/riskscreen-webhook.service ]
[ -s /usr/share/doc/lua-riskscreen/docs/reference.md ]
[ -s /usr/share/doc/lua-riskscreen/examples/policy.lua ]
[ -s /usr/share/lua-riskscreen/types/riskscreen.lua ]
[ -z "$(find /etc/systemd -name 'riskscreen*')" ] # no service is enabled

# The library, over HTTP, on each Lua.
apt-get install -q lua5.3 lua5.1 luajit2
for lua in lua5.4 lua5.3 lua5.1 luajit; do $lua spec/support/installed.lua /usr; done

# A program in C++ that links the static library.
apt-get install -q ./build/deb/lua-riskscreen-dev_*.deb g++ make cmake pkg-config
c++ spec/packages/consumer/host.cpp $(pkg-config --cflags --libs riskscreen-lua5.4) -o host
[ "$(./host)" = block ]
cmake -S examples/embed -B host-build
cmake --build host-build
host-build/host

mkdir -p /var/lib/private/riskscreen
echo '{}' >/var/lib/private/riskscreen/events.jsonl
apt-get purge -q riskscreen lua-riskscreen lua-riskscreen-dev
left=$(find / -xdev -name '*riskscreen*' ! -path '/root/*' ! -path '/proc/*')
[ -z "$left" ] || { echo "left after the purge: $left"; exit 1; }
SCRIPT
} >"$work/script"
sh tools/bare.sh "$work/script" "$work/build" "$work/old" spec examples
