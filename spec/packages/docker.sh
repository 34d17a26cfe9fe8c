# The Dockerfiles: each stage's steps in a bare system. Where OpenResty's image is wanted, Debian's nginx stands in.
. spec/packages/common.sh

# build NAME: runs the stage `build` of a Dockerfile, and leaves its files in $work/NAME/build.
build() {
  mkdir -p "$work/$1/build"
  lua5.4 spec/packages/dockerfile.lua "docker/$1.Dockerfile" build >"$work/script"
  BARE_OUT=$work/$1/build sh tools/bare.sh "$work/script"
}

build command
{
  lua5.4 spec/packages/dockerfile.lua docker/command.Dockerfile final
  cat <<'SH'
grep -q '^ENTRYPOINT ..riskscreen..$' docker/command.Dockerfile
cd / # not the checkout
status=0
riskscreen screen 0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3 -n eth >/tmp/printed || status=$?
grep 'block .* high / hack' /tmp/printed
[ "$status" = 2 ]
SH
} >"$work/script"
sh tools/bare.sh "$work/script" docker "$work/command/build"

build openresty
{
  echo 'apt-get update -q && apt-get install -y -q --no-install-recommends nginx libnginx-mod-http-lua lua-resty-core \
    lua-resty-lrucache lua-cjson luajit2 curl ca-certificates lua5.4 lua-argparse libcurl4 libmicrohttpd12'
  lua5.4 spec/packages/dockerfile.lua docker/openresty.Dockerfile final
  cat <<'SH'
LUA_PATH= LUA_CPATH='/usr/local/openresty/site/lualib/?.so' luajit -e 'print(require("riskscreen.decoder").version)'
! ldd /usr/local/openresty/site/lualib/riskscreen/decoder.so | grep curl || exit 1
# OpenResty has these two inside: its Lua module, and site/lualib on the paths.
modules=/usr/lib/nginx/modules
site=/usr/local/openresty/site/lualib
sed -i "1i load_module $modules/ndk_http_module.so; load_module $modules/ngx_http_lua_module.so;" /etc/riskscreen/gate.conf
sed -i "s|lua_package_path .*|lua_package_path '$site/?.lua;$site/?/init.lua;;'; lua_package_cpath '$site/?.so;;';|" \
  /etc/riskscreen/gate.conf
# The sandbox that the gate asks; the command of the other image serves it.
export RISKSCREEN_BASE_URL=http://127.0.0.1:8081 RISKSCREEN_ACCESS_KEY=sandbox-key
cp -a command/usr/local/. /usr/local/
riskscreen sandbox --port 8081 &
nginx -c /etc/riskscreen/gate.conf -g 'daemon off;' &
status() {
  curl -s -o /dev/null --retry 20 --retry-delay 1 --retry-connrefused -w '%{http_code}' "$@"
}
status 127.0.0.1:8081
[ "$(status -X POST '127.0.0.1:8080/withdraw?network=eth&address=0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3')" = 403 ]
[ "$(status -X POST '127.0.0.1:8080/withdraw?network=eth&address=0xa430D6f0A8960FB6b71450c7286de52DD9B28fD3')" = 200 ]
SH
} >"$work/script"
mv "$work/command/build" "$work/command/command"
sh tools/bare.sh "$work/script" docker lua examples "$work/openresty/build" "$work/command/command"
