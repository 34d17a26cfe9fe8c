-- The runtime of this program: nginx's inside nginx, the native one elsewhere.
local ngx = rawget(_G, "ngx")
local inside_nginx = type(ngx) == "table" and ngx.socket and ngx.thread

return require(inside_nginx and "riskscreen.runtime.nginx" or "riskscreen.runtime.native")
