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
# ./dev soak fleet [ROWS]: a queue of 50,000 addresses with three workers. They are killed and frozen at random, and so
# are the reader, the producer, the sandbox and Redis. Every address must have one result, and the right one.
#
# ./dev soak clock [DEPTH]: decides in two workers of the gate after every order of five steps: dates that are set,
# reloads, purges, lists. No allow may be used after its end.
# ./dev soak policy [CASES]: decides a million random cases by random policies for addresses, and as many for scores. A
# second implementation must agree, and an answer that loses fields must gain nothing. The seed is new, and printed.
# ./dev soak wire [SECONDS]: sends changed answers to the native HTTP client and to the one of nginx, for ten minutes by
# default. They must never believe two different values. The seed is as that of kills.
. tools/common.sh
lua=${RISKSCREEN_LUA:-5.4}
# shellcheck disable=SC2086
need $build_packages $test_packages
build_preset "$lua"
use_build "$lua"
if [ "${1:-}" = kills ] || [ "${1:-}" = wire ]; then
  RISKSCREEN_SEED=${RISKSCREEN_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
  export RISKSCREEN_SEED
  say "seed $RISKSCREEN_SEED"
fi
if [ "${1:-}" = wire ]; then
  build_preset luajit
  RISKSCREEN_WIRE_SECONDS=${2:-600} RISKSCREEN_LUA=$(interpreter "$lua") exec "$(interpreter "$lua")" /usr/bin/busted \
    spec/in_nginx/wire_nginx.lua
fi
if [ "${1:-}" = kills ]; then
  # shellcheck disable=SC2046
  RISKSCREEN_KILLS=${2:-200} RISKSCREEN_LUA=$(interpreter "$lua") exec "$(interpreter "$lua")" /usr/bin/busted \
    $(find spec -name kill_spec.lua)
fi
if [ "${1:-}" = clock ]; then
  RISKSCREEN_CLOCK_DEPTH=${2:-5} exec "$(interpreter "$lua")" /usr/bin/busted spec/unit/nginx/cache/clock_spec.lua
if [ "${1:-}" = policy ]; then
  RISKSCREEN_SEED=${RISKSCREEN_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
  export RISKSCREEN_SEED
  say "seed $RISKSCREEN_SEED"
  RISKSCREEN_POLICY_CASES=${2:-1000000} exec "$(interpreter "$lua")" /usr/bin/busted spec/unit/policy/oracle_spec.lua
fi
if [ "${1:-}" = lists ]; then
  exec "$(interpreter "$lua")" tools/soak_lists.lua "${2:-1000000}"
fi
if [ "${1:-}" = nginx ]; then
  need wrk
  build_preset luajit
  exec "$(interpreter "$lua")" tools/soak_nginx.lua "${2:-600}" "$(interpreter "$lua")"
fi
if [ "${1:-}" = command ]; then
  exec "$(interpreter "$lua")" tools/soak_command.lua "${2:-200000}"
fi
if [ "${1:-}" = fleet ]; then
  RISKSCREEN_LUA=$(interpreter "$lua") exec "$(interpreter "$lua")" tools/soak_fleet.lua "${2:-50000}"
fi
exec "$(interpreter "$lua")" tools/soak.lua "${1:-100000}" "$(interpreter "$lua")"
