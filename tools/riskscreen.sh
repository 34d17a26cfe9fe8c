# ./dev riskscreen ...: runs the `riskscreen` command of this checkout with Lua 5.4.
. tools/common.sh
build_to_run 5.4
exec build/5.4/bin/riskscreen "$@"
