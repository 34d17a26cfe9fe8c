# A checkout that is used where it is.
. spec/packages/common.sh
section "From a checkout" >"$work/script"
sh tools/bare.sh "$work/script"
