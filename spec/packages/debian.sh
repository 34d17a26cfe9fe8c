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

# The services, started by systemd in a system of its own.
cat >"$work/script" <<'SCRIPT'
apt-get install -q ./build/deb/lua-riskscreen_*.deb ./build/deb/riskscreen_*.deb systemd systemd-sysv curl lua-dbi-sqlite3
port=$(shuf -i 20000-29999 -n 1)
sed -i "s/8081/$port/" /etc/riskscreen/sandbox.env
sed -i "s/8090/$((port + 1))/; s/^#RISKSCREEN_WEBHOOK_SECRET=.*/RISKSCREEN_WEBHOOK_SECRET=0123456789abcdef/" /etc/riskscreen/webhook.env
cat >>/etc/riskscreen/watch.env <<TEXT
RISKSCREEN_BASE_URL=http://127.0.0.1:$port
RISKSCREEN_ACCESS_KEY=sandbox-key
TEXT
unshare --mount --pid --uts --ipc --cgroup --fork --kill-child --propagation unchanged sh -euc '
  mkdir /system
  mount --bind / /system
  mount -t proc proc /system/proc
  mount -t sysfs sysfs /system/sys
  mount --rbind /dev /system/dev
  mount -t tmpfs tmpfs /system/run
  mount -t tmpfs tmpfs /system/sys/fs/cgroup
  mkdir /system/sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /system/sys/fs/cgroup/systemd
  exec chroot /system env -i container=other PATH="$PATH" /lib/systemd/systemd --system --log-target=console
' &
unshare=$!
# inside COMMAND...: runs it in that system.
inside() {
  nsenter -t "$(cat "/proc/$unshare/task/$unshare/children")" -m -p -C -r -w "$@"
}
for _ in $(seq 60); do
  ! inside systemctl is-active --quiet multi-user.target 2>/dev/null || break
  sleep 1
done
for service in sandbox webhook; do
  inside systemctl start riskscreen-$service
done
[ "$(curl -s -o /dev/null -w '%{http_code}' --retry 20 --retry-delay 1 --retry-connrefused "127.0.0.1:$port")" = 404 ]
curl -s -o /dev/null --retry 20 --retry-delay 1 --retry-connrefused "127.0.0.1:$((port + 1))"
[ "$(stat -c %a /var/lib/private/riskscreen)" = 700 ]
printf 'address\n0xa430D6f0A8960FB6b71450c7286de52DD9B28fD3\n' >/var/lib/private/riskscreen/customers.csv
inside systemctl start riskscreen-watch-once || { inside journalctl --no-pager -u riskscreen-watch-once; exit 1; }
inside systemctl start riskscreen-watch riskscreen-watch-once.timer
sleep 3
for unit in sandbox.service webhook.service watch.service watch-once.timer; do
  inside systemctl is-active "riskscreen-$unit" || { inside systemctl status --no-pager "riskscreen-$unit"; exit 1; }
done
inside systemctl stop riskscreen-watch riskscreen-webhook riskscreen-sandbox
for unit in sandbox webhook watch watch-once; do
  [ "$(inside systemctl show -P Result "riskscreen-$unit")" = success ]
done
SCRIPT
sh tools/bare.sh "$work/script" "$work/build"
