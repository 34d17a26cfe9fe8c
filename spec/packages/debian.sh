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
for name in lua-riskscreen lua-riskscreen-sandbox lua-riskscreen-durable riskscreen; do
  file=$(echo "$work/build/deb/${name}"_*.deb)
  dpkg-deb -R "$file" "$work/package"
  sed -i 's/0\.[0-9]*\.[0-9]*-1/0.1.0-1/g' "$work/package/DEBIAN/control"
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
# A room that is not installed is named with its package.
[ ! -e /usr/share/lua/5.4/riskscreen/nginx ]
lua5.4 -e 'require "riskscreen.nginx.gate"' 2>/dev/null && exit 1
dpkg --remove --force-depends lua-riskscreen-sandbox
lua5.4 -e 'return require("riskscreen").sandbox' 2>&1 | grep 'apt install lua-riskscreen-sandbox'
status=0
riskscreen screen 0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3 -n eth >/root/missing 2>&1 || status=$?
[ $status = 4 ]
grep 'apt install lua-riskscreen-sandbox' /root/missing
dpkg -i ./build/deb/lua-riskscreen-sandbox_*.deb
apt-get install -q ./build/deb/lua-riskscreen-gate_*.deb
[ -s /usr/share/lua/5.1/riskscreen/nginx/gate.lua ]
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
echo address >/var/lib/private/riskscreen/customers.csv
apt-get purge -q riskscreen 'lua-riskscreen*'
[ "$(ls /var/lib/private/riskscreen)" = customers.csv ]
rm -r /var/lib/private/riskscreen
left=$(find / -xdev -name '*riskscreen*' ! -path '/root/*' ! -path '/proc/*')
[ -z "$left" ] || { echo "left after the purge: $left"; exit 1; }
SCRIPT
} >"$work/script"
sh tools/bare.sh "$work/script" "$work/build" "$work/old" spec examples

# The services, started by systemd: in a container, and then in a chroot inside it. The container has namespaces, cgroups and
# devices of its own, so systemd cannot change this machine's.
cat >"$work/script" <<'SCRIPT'
apt-get install -q ./build/deb/lua-riskscreen_*.deb ./build/deb/lua-riskscreen-sandbox_*.deb ./build/deb/lua-riskscreen-durable_*.deb \
  ./build/deb/riskscreen_*.deb systemd curl busybox lua-dbi-sqlite3 lua-expat
sed -i 's/^#RISKSCREEN_WEBHOOK_SECRET=.*/RISKSCREEN_WEBHOOK_SECRET=0123456789abcdef/' /etc/riskscreen/webhook.env
cat >>/etc/riskscreen/watch.env <<TEXT
RISKSCREEN_BASE_URL=http://127.0.0.1:8081
RISKSCREEN_ACCESS_KEY=sandbox-key
TEXT
mkdir -p /etc/systemd/system/riskscreen-list-update.service.d
cat >/etc/systemd/system/riskscreen-list-update.service.d/url.conf <<TEXT
[Service]
ExecStart=
$(grep ^ExecStart= /lib/systemd/system/riskscreen-list-update.service) --url http://127.0.0.1:8082/sdn
TEXT
mkdir /cgroup
mount -t cgroup2 cgroup2 /cgroup
cgroup=$(mktemp -d /cgroup/riskscreen.XXXXXX)
end() {
  status=$?
  [ $status = 0 ] || inside journalctl --no-pager -u 'riskscreen*' || true
  echo 1 >"$cgroup/cgroup.kill"
  wait
  for _ in $(seq 100); do
    ! find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || break
    sleep 0.1
  done
  exit $status
}
cat >/root/boot <<'BOOT'
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t sysfs -o ro sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /dev
for device in 'null c 1 3' 'zero c 1 5' 'full c 1 7' 'random c 1 8' 'urandom c 1 9' 'tty c 5 0'; do
  mknod -m 666 /dev/$device
done
ln -s pts/ptmx /dev/ptmx
top=/
[ ! -d /chroot ] || { top=/chroot && mount --rbind / $top; }
exec chroot $top env -i container=other PATH="$PATH" /lib/systemd/systemd --system --log-target=journal
BOOT
(
  echo 0 >"$cgroup/cgroup.procs"
  exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child sh -eu /root/boot
) &
unshare=$!
trap end EXIT
# inside COMMAND...: runs it in the container.
inside() {
  nsenter -t $(cat "/proc/$unshare/task/$unshare/children") -m -p -u -i -n -C -r -w "$@"
}
for _ in $(seq 600); do
  ! inside systemctl is-active --quiet multi-user.target 2>/dev/null || break
  sleep 0.1
done
answer() {
  inside curl -s -o /dev/null -w '%{http_code}' --retry 20 --retry-delay 1 --retry-connrefused "$@"
}
state=/var/lib/private/riskscreen

inside systemctl start riskscreen-sandbox riskscreen-webhook
[ "$(answer 127.0.0.1:8081)" = 404 ]
event='{"webhookId":"w-1","eventType":"test","timestamp":"2026-01-02 03:04:05","data":{}}'
[ "$(answer -d "$event" 127.0.0.1:8090/webhooks/0123456789abcdef)" = 200 ]
[ "$(cat $state/events.jsonl)" = "$event" ]
[ "$(stat -c %a $state $state/events.jsonl | xargs)" = '700 600' ]

printf 'address\n0xa430D6f0A8960FB6b71450c7286de52DD9B28fD3\n' >$state/customers.csv
inside systemctl start riskscreen-watch-once
inside journalctl --no-pager -u riskscreen-watch-once | grep '1 screened, 0 changed, 0 without an answer'

cat >sdn <<'XML'
<sdnList><sdnEntry><uid>1</uid><lastName>A</lastName><idList><id><uid>2</uid><idType>Digital Currency Address - XBT</idType>
<idNumber>1BoatSLRHtKNngkdXEeobR76b53LETtpyT</idNumber></id></idList></sdnEntry></sdnList>
XML
inside busybox httpd -p 127.0.0.1:8082 -h /root/project
inside systemctl start riskscreen-list-update
[ "$(stat -c %a /var/lib/riskscreen-lists /var/lib/riskscreen-lists/ofac.rsl | xargs)" = '755 444' ]

inside systemctl start riskscreen-watch riskscreen-watch-once.timer riskscreen-list-update.timer
for unit in sandbox.service webhook.service watch.service watch-once.timer list-update.timer; do
  inside systemctl is-active "riskscreen-$unit"
done
inside systemctl stop riskscreen-watch riskscreen-webhook riskscreen-sandbox
for unit in sandbox webhook watch; do
  [ "$(inside systemctl show -P Result "riskscreen-$unit")" = success ]
done
SCRIPT
sh tools/bare.sh "$work/script" "$work/build"
{
  section "Services in a chroot"
  echo 'mkdir /chroot'
  cat "$work/script"
} >"$work/in_chroot"
sh tools/bare.sh "$work/in_chroot" "$work/build"
