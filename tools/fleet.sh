# ./dev fleet [PORT]: starts a fleet until interrupted: Redis, the sandbox, two gates on PORT and PORT + 1 (8080 and
# 8081 by default). It also starts three workers of a queue, and a reader that writes their results.
. tools/common.sh
port=${1:-8080}
check_port fleet 1 "$port"
other=$((port + 1))
# shellcheck disable=SC2086
need $build_packages $nginx_packages redis-server curl
for taken in $port $other; do
  if curl -s -o /dev/null "http://127.0.0.1:$taken"; then
    say "fleet: something answers on port $taken already; ./dev fleet PORT takes PORT and PORT + 1"
    exit 1
  fi
done
build_preset 5.4
build_preset luajit
use_build 5.4

directory=$(mktemp -d)
chmod 755 "$directory"
started=
redis=
# Redis ends last: the workers tell it that they leave.
finish() {
  trap - EXIT
  for processes in "$started" "$redis"; do
    for process in $processes; do
      kill "$process" 2>/dev/null || true
    done
    for process in $processes; do
      wait "$process" 2>/dev/null || true
    done
  done
  rm -rf "$directory"
}
trap finish EXIT
trap 'exit 0' INT TERM HUP
start() {
  "$@" &
  started="$! $started"
}

redis-server --port 0 --unixsocket "$directory/redis" --unixsocketperm 777 --dir "$directory" --save '' --appendonly yes \
  --logfile "$directory/redis.log" &
redis=$!
mkfifo "$directory/said"
lua5.4 tools/sandbox.lua 0 http://127.0.0.1:1/ >"$directory/said" &
started="$! $started"
{
  read -r RISKSCREEN_BASE_URL
  read -r RISKSCREEN_ACCESS_KEY
} <"$directory/said"
RISKSCREEN_BASE_URL=${RISKSCREEN_BASE_URL#*=}
RISKSCREEN_ACCESS_KEY=${RISKSCREEN_ACCESS_KEY#*=}
RISKSCREEN_REDIS_URL=unix:$directory/redis
RISKSCREEN_FLEET_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export RISKSCREEN_BASE_URL RISKSCREEN_ACCESS_KEY RISKSCREEN_REDIS_URL RISKSCREEN_FLEET_KEY
until redis-cli -s "$directory/redis" ping >/dev/null 2>&1; do
  sleep 0.1
done

PATH=$PATH:/usr/sbin:/usr/local/openresty/nginx/sbin
for number in $port $other; do
  sed "s#127.0.0.1:8080#127.0.0.1:$number#; s#/tmp/riskscreen-fleet#$directory/gate-$number#" \
    examples/fleet/nginx.conf >"$directory/$number.conf"
  case $(nginx -V 2>&1) in
  *--modules-path=/usr/lib/nginx/modules*) ;;
  *) sed -i '/^load_module /d' "$directory/$number.conf" ;;
  esac
  start nginx -e stderr -p examples/fleet -c "$directory/$number.conf"
  gate=$!
  until curl -s -o /dev/null "http://127.0.0.1:$number/metrics"; do
    kill -0 "$gate" 2>/dev/null || { say "nginx has not started on port $number"; exit 1; }
    sleep 0.1
  done
done

command="lua5.4 bin/riskscreen.in"
for number in 1 2 3; do
  # shellcheck disable=SC2086
  start $command queue work --quiet --set rate_limit.rate=200 --share-rate
done
# shellcheck disable=SC2086
start $command queue results --quiet --follow -o "$directory/results.csv"

address() { lua5.4 -e "print(require('riskscreen').sandbox.scenario('$1').address)"; }
cat <<TEXT

Two gates share their verdicts: http://127.0.0.1:$port and http://127.0.0.1:$other. Ctrl-C ends the fleet. Try:

curl '127.0.0.1:$port/withdraw?network=eth&address=$(address clean-eth)'
curl '127.0.0.1:$other/withdraw?network=eth&address=$(address clean-eth)'
curl '127.0.0.1:$other/purge?address=$(address clean-eth)'

Three workers wait for addresses; the results come to $directory/results.csv:

export RISKSCREEN_REDIS_URL=$RISKSCREEN_REDIS_URL
./dev riskscreen queue add examples/addresses.csv
./dev riskscreen queue status

TEXT
while kill -0 "$gate" 2>/dev/null; do
  sleep 1 &
  wait $! || true
done
