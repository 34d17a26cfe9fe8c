-- Inside nginx: runs the Lua text of a request's body and answers its results, each in a table of its own so that nil
-- and false survive. See nginx.lua.
local json = require "cjson.safe"

local function pack(...)
  return { n = select("#", ...), ... }
end

return function()
  local ngx = _G.ngx
  ngx.req.read_body()
  local request = assert(json.decode(ngx.req.get_body_data()))
  local chunk = assert(loadstring(request.code, "=eval")) -- luacheck: ignore 113
  local results = pack(chunk(request.argument))
  local values = {}
  for index = 1, results.n do
    values[index] = { value = results[index] }
  end
  ngx.print(assert(json.encode { n = results.n, values = values }))
end
