# The decoder without the library and without libcurl.
. spec/packages/common.sh
section "The decoder alone" >"$work/script"
cat >>"$work/script" <<'SH'
! ldd /usr/local/lib/lua/5.4/riskscreen/decoder.so | grep -E 'curl|ssl' || exit 1
! dpkg -l | grep libcurl4-openssl-dev || exit 1
SH
sh tools/bare.sh "$work/script"
