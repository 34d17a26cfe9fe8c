# ./dev sandbox [PORT [WEBHOOK_URL]]: serves the sandbox over HTTP until interrupted. Without PORT, or with 0, it takes a
# free port. The first two lines are the address and the access key. Results of transactions go to WEBHOOK_URL.
. tools/common.sh
check_port sandbox 0 "${1:-0}"
case ${2:-http://} in
http://* | https://*) ;;
*) say "sandbox: WEBHOOK_URL must begin with http:// or https:// (got '$2')"; exit 2 ;;
esac
build_to_run 5.4
exec lua5.4 tools/sandbox.lua "$@"
