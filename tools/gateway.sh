# ./dev gateway [PORT]: serves examples/nginx, and a sandbox behind it, until interrupted. The port is 8080 by default;
# for another port a copy of the configuration is served.
. tools/common.sh
port=${1:-8080}
check_port gateway 1 "$port"
# shellcheck disable=SC2086
need $build_packages $nginx_packages curl
gateway=http://127.0.0.1:$port
if curl -s -o /dev/null "$gateway"; then
  say "gateway: something answers on port $port already; ./dev gateway PORT takes another"
  exit 1
fi
build_preset 5.4
use_build 5.4

directory=$(mktemp -d)
sandbox=
nginx=
finish() {
  trap - EXIT
  if [ -n "$nginx" ] && kill "$nginx" 2>/dev/null; then
    wait "$nginx" || true
  fi
  [ -z "$sandbox" ] || kill "$sandbox" 2>/dev/null || true
  rm -rf "$directory"
}
trap finish EXIT
trap 'exit 0' INT TERM HUP

RISKSCREEN_WEBHOOK_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
mkfifo "$directory/said"
lua5.4 tools/sandbox.lua 0 "http://127.0.0.1:$port/webhooks/$RISKSCREEN_WEBHOOK_SECRET" >"$directory/said" &
sandbox=$!
{
  read -r RISKSCREEN_BASE_URL
  read -r RISKSCREEN_ACCESS_KEY
} <"$directory/said"
RISKSCREEN_BASE_URL=${RISKSCREEN_BASE_URL#*=}
RISKSCREEN_ACCESS_KEY=${RISKSCREEN_ACCESS_KEY#*=}
export RISKSCREEN_BASE_URL RISKSCREEN_ACCESS_KEY RISKSCREEN_WEBHOOK_SECRET

PATH=$PATH:/usr/sbin:/usr/local/openresty/nginx/sbin
sed "s#127.0.0.1:8080#127.0.0.1:$port#; s#/tmp/riskscreen-gateway#$directory/gateway#" \
  examples/nginx/nginx.conf >"$directory/nginx.conf"
case $(nginx -V 2>&1) in
*--modules-path=/usr/lib/nginx/modules*) ;;
*) sed -i '/^include /d' "$directory/nginx.conf" ;; # OpenResty's, beside which Debian's modules may be installed
esac
chmod 755 "$directory"
nginx -e stderr -p examples/nginx -c "$directory/nginx.conf" &
nginx=$!

until curl -s -o /dev/null "$gateway/metrics"; do
  kill -0 "$nginx" 2>/dev/null || { say "nginx has not started; is port $port free?"; exit 1; }
  sleep 0.1
done
kill -0 "$nginx"

address() { lua5.4 -e "print(require('riskscreen').sandbox.scenario('$1').address)"; }
cat <<TEXT

The gateway answers on $gateway; Ctrl-C ends it. Try:

curl -i -X POST '$gateway/withdraw?network=eth&address=$(address clean-eth)'
curl -i -X POST '$gateway/withdraw?network=eth&address=$(address type-sanction)'
curl '$gateway/metrics'

TEXT
wait "$nginx"
