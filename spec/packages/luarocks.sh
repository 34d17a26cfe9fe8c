# The rock: made, installed for all users and for one, packed, removed, and installed from the packed file.
. spec/packages/common.sh
section "LuaRocks" >"$work/script"
sh tools/bare.sh "$work/script"
