. tools/common.sh
sh tools/build.sh
use_build 5.4
exec lua5.4 tools/sandbox.lua "$@"
