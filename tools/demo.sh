# ./dev demo: starts the sandbox as a process of its own and screens examples/addresses.csv against it.
. tools/common.sh
build_to_run 5.4
directory=$(mktemp -d)
sandbox=
trap '[ -z "$sandbox" ] || kill "$sandbox" 2>/dev/null; rm -rf "$directory"' EXIT
mkfifo "$directory/said"
lua5.4 tools/sandbox.lua >"$directory/said" &
sandbox=$!
{
  read -r RISKSCREEN_BASE_URL
  read -r RISKSCREEN_ACCESS_KEY
} <"$directory/said"
RISKSCREEN_BASE_URL=${RISKSCREEN_BASE_URL#*=}
RISKSCREEN_ACCESS_KEY=${RISKSCREEN_ACCESS_KEY#*=}
export RISKSCREEN_BASE_URL RISKSCREEN_ACCESS_KEY
lua5.4 examples/screen_list.lua examples/addresses.csv
