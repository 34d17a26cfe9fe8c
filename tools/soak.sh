# ./dev soak [COUNT]: screens 100,000 addresses while the sandbox fails one request in twenty. No address may be
# lost, and no memory or descriptor may leak. RISKSCREEN_LUA selects the Lua (5.4 by default).
#
# ./dev soak nginx [SECONDS]: the same for the gate inside nginx, with requests from wrk, for ten minutes by default.
#
# ./dev soak kills [RUNS]: kills programs that write to a store or a journal, or submit transactions, 200 times. The seed
# is new in each run, and printed; RISKSCREEN_SEED repeats it.
#
# ./dev soak lists [COUNT]: builds a deny list of a million addresses, and blocks by it while the network is down.
#
# ./dev soak command [ROWS]: screens a file of 200,000 rows with the command, which is ended twice and resumed.
#
# ./dev soak queue [ROWS]: a queue of 50,000 addresses with three workers. They are killed and frozen at random, and so
# are the reader, the producer, the sandbox and Redis. Redis is also emptied, fails over to a replica without the last
# changes, and denies single commands. Every address must have one result, and the right one.
#
# ./dev soak clock [DEPTH]: decides in two workers of the gate after every order of five steps: dates that are set,
# reloads, purges, lists. No allow may be used after its end.
#
# ./dev soak policy [CASES]: decides a million random cases by random policies for addresses, and as many for scores. A
# second implementation must agree, and an answer that loses fields must gain nothing. The seed is new, and printed.
#
# ./dev soak wire [SECONDS]: sends changed answers to the native HTTP client and to the one of nginx, for ten minutes by
# default. They must never believe two different values. The seed is as that of kills.
#
# ./dev soak ways [RUNS]: decides about random evidence in every way, natively and in gates, 50 times. Each way must give
# the decision of a live call. The seed is as that of kills.
. tools/common.sh
what=${1:-100000}
lua=${RISKSCREEN_LUA:-5.4}
program=$(interpreter "$lua")
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset "$lua"
use_build "$lua"
case $what in
kills | policy | ways | wire)
  RISKSCREEN_SEED=${RISKSCREEN_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
  say "seed $RISKSCREEN_SEED"
  export RISKSCREEN_SEED
  ;;
esac
case $what in
ways | wire | nginx) build_preset luajit ;;
esac
export RISKSCREEN_LUA="$program"
case $what in
clock) RISKSCREEN_CLOCK_DEPTH=${2:-5} exec "$program" /usr/bin/busted spec/unit/nginx/cache/clock_spec.lua ;;
command) exec "$program" tools/soak_command.lua "${2:-200000}" ;;
kills)
  # shellcheck disable=SC2046
  RISKSCREEN_KILLS=${2:-200} exec "$program" /usr/bin/busted $(find spec -name kill_spec.lua)
  ;;
lists) exec "$program" tools/soak_lists.lua "${2:-1000000}" ;;
nginx)
  need wrk
  exec "$program" tools/soak_nginx.lua "${2:-600}" "$program"
  ;;
queue) exec "$program" tools/soak_queue.lua "${2:-50000}" ;;
policy) RISKSCREEN_POLICY_CASES=${2:-1000000} exec "$program" /usr/bin/busted spec/unit/policy/oracle_spec.lua ;;
ways)
  for run in $(seq "${2:-50}"); do
    "$program" /usr/bin/busted spec/contract/ways_spec.lua spec/unit/kyt/ways_spec.lua spec/in_nginx/ways_nginx.lua ||
      { say "run $run, seed $RISKSCREEN_SEED"; exit 1; }
    RISKSCREEN_SEED=$((RISKSCREEN_SEED + 1))
  done
  ;;
wire) RISKSCREEN_WIRE_SECONDS=${2:-600} exec "$program" /usr/bin/busted spec/in_nginx/wire_nginx.lua ;;
*) exec "$program" tools/soak.lua "$what" "$program" ;;
esac
