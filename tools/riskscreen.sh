# ./dev riskscreen ...: runs the `riskscreen` command of this checkout with Lua 5.4, in the directory of the caller.
. tools/common.sh
build_to_run 5.4
cd "$caller"
exec "$root/build/5.4/bin/riskscreen" "$@"
