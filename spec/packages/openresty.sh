# The archive of a release in OPM's layout. OpenResty is not in Debian: its nginx stands in, with OpenResty's paths.
. spec/packages/common.sh
mkdir "$work/source" "$work/files"
git ls-files -z | xargs -0 tar cf - | tar xf - -C "$work/source"
(
  cd "$work/source"
  git init -q
  git add -A
  git -c user.name=a -c user.email=a@example.com commit -q -m Everything
  ./dev release "$(lua5.4 -e 'print(dofile "lua/riskscreen/version.lua")')" --unchecked --luas '' --without-deb \
    --output "$work/release"
)
cp "$work"/release/*.opm.tar.gz "$work/files/"
{
  cat <<'SCRIPT'
apt-get install -q nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson curl
mkdir -p /usr/local/openresty/site/lualib
cat >/usr/local/bin/openresty <<'SH'
#!/bin/sh
modules=/usr/lib/nginx/modules site=/usr/local/openresty/site/lualib
export LUA_PATH="$site/?.lua;$site/?/init.lua;;" LUA_CPATH="$site/?.so;;"
exec /usr/sbin/nginx -g "load_module $modules/ndk_http_module.so; load_module $modules/ngx_http_lua_module.so;" "$@"
SH
chmod +x /usr/local/bin/openresty
SCRIPT
  section "OpenResty, OPM and resty"
} >"$work/script"
sh tools/bare.sh "$work/script" "$work"/files/*
