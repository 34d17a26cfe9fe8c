# The rock: made, installed for all users and for one, packed, removed, and installed from the packed file. Then its specs,
# with Debian's busted, and what the command says where a package is missing.
. spec/packages/common.sh
{
  section "LuaRocks"
  cat <<'SCRIPT'
apt-get remove -q lua-argparse
status=0
riskscreen screen 0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3 -n eth 2>/tmp/said || status=$?
[ "$status" = 4 ]
[ "$(cat /tmp/said)" = 'riskscreen: the Lua module argparse is not installed for Lua 5.4: apt install lua-argparse' ]
apt-get install -q lua-argparse lua-busted
dpkg --remove --force-depends libmicrohttpd12
status=0
riskscreen sandbox 2>/tmp/said || status=$?
[ "$status" = 4 ]
[ "$(cat /tmp/said)" = 'riskscreen: unsupported: sandbox.serve: riskscreen.server needs libmicrohttpd.so.12, which is not installed: apt install libmicrohttpd12' ]
apt-get install -q libmicrohttpd12
unshare -n luarocks --lua-version=5.4 test -- unit/policy unit/interface unit/core/decoder_spec | tee /tmp/said
grep -q '^pending: .* needs ' /tmp/said
luarocks --lua-version=5.4 test
SCRIPT
} >"$work/script"
git archive --format=tar HEAD | (mkdir "$work/checkout" && tar xf - -C "$work/checkout")
(cd "$work/checkout" && git init -q && git add -A && git -c user.name=a -c user.email=a@example.com commit -q -m Everything)
sed -i '1i apt-get install -q git zip' "$work/script"
sh tools/bare.sh "$work/script" "$work/checkout/." "$work/checkout/.git"
