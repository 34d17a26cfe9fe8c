# An nginx operator with a checkout in /root, which the workers cannot read. The library is installed for nginx alone,
# and the gate of docs/nginx.md stands in front of a location. Then the checkout is moved, the library removed, and a
# fleet started.
. spec/packages/common.sh
cat >"$work/script" <<'SCRIPT'
apt-get install -q nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson curl ca-certificates
dpkg-query -W -f '${Package}\n' | sort >/tmp/before
./dev install luajit
dpkg-query -W -f '${Package}\n' | sort | comm -13 /tmp/before - >/tmp/added
! grep -E '^(chromium|nodejs|npm|valgrind|lua-busted|redis-server|nginx|libnginx)' /tmp/added || exit 1
[ "$(ls /etc/nginx/modules-enabled | wc -l)" = 2 ] # those that the operator installed

chmod 700 /root
./dev sandbox 8081 &
sandbox=$!
status() {
  curl -s -o /dev/null --retry 300 --retry-delay 1 --retry-connrefused -w '%{http_code}' "$@"
}
status 127.0.0.1:8081
export RISKSCREEN_BASE_URL=http://127.0.0.1:8081 RISKSCREEN_ACCESS_KEY=sandbox-key
sed '/lua_package_path/d' examples/nginx/gate.conf >/etc/nginx/gate.conf
mkdir -p /var/log/nginx
nginx -c /etc/nginx/gate.conf
[ "$(status -X POST '127.0.0.1:8080/withdraw?network=eth&address=0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3')" = 403 ]
[ "$(status -X POST '127.0.0.1:8080/withdraw?network=eth&address=0xa430D6f0A8960FB6b71450c7286de52DD9B28fD3')" = 200 ]
[ "$(status -X POST '127.0.0.1:8080/withdraw?network=eth')" = 403 ]
! grep -E 'Permission denied|not found' /var/log/nginx/riskscreen.log || exit 1
nginx -c /etc/nginx/gate.conf -s stop
kill $sandbox

# The same checkout in another place.
mkdir /srv/moved
cp -a /root/project/. /srv/moved
cd /srv/moved
./dev riskscreen --version
cmake --build /root/project/build/luajit --target uninstall
[ -z "$(find /usr/local -path '*riskscreen*')" ]

# All gates of a fleet know a decision of one of them, until it is purged on any of them.
./dev fleet 8090 &
status 127.0.0.1:8090/metrics
status 127.0.0.1:8091/metrics
# until_it COMMAND...: waits until it succeeds, for 30 seconds.
until_it() {
  for _ in $(seq 300); do
    ! "$@" || return 0
    sleep 0.1
  done
  return 1
}
address=0xa430D6f0A8960FB6b71450c7286de52DD9B28fD3
# answers PORT TEXT
answers() {
  [ "$(curl -s "127.0.0.1:$1/withdraw?network=eth&address=$address")" = "$2" ]
}
has_written() {
  curl -s 127.0.0.1:8090/metrics | grep -q 'redis_writes_total.*"sent"} [1-9]'
}
answers 8090 'sent, upstream'
until_it has_written
answers 8091 'sent, redis'
[ "$(curl -s "127.0.0.1:8091/purge?address=$address")" = true ]
until_it answers 8090 'sent, upstream'
SCRIPT
sh tools/bare.sh "$work/script"
