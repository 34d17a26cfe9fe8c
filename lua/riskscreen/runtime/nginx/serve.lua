-- Answers the delivery that nginx is serving with a handler's reply.
local files = require "riskscreen.util.files"

local ngx = _G.ngx

local M = {}

---The body, which nginx may have put into a file. A longer body is cut at the limit.
---@param limit integer bytes
---@return string|nil body empty where there is none
---@return string|nil message
function M.read_body(limit)
  local ok, message = pcall(ngx.req.read_body)
  if not ok then
    return nil, message
  end
  local body = ngx.req.get_body_data()
  local name = not body and ngx.req.get_body_file()
  if name then
    return files.read(name, limit)
  end
  return body or ""
end

-- The values of a repeated header are joined, so that none of them stands for the others.
local function headers()
  local joined = {}
  for name, value in pairs(ngx.req.get_headers(0)) do
    joined[name] = type(value) == "table" and table.concat(value, ", ") or value
  end
  return joined
end

local function respond(status, fields, body)
  ngx.status = status
  for name, value in pairs(fields) do
    ngx.header[name] = value
  end
  ngx.header["Content-Length"] = #body
  ngx.print(body)
  return status
end

---Reads the request, calls handler(method, headers, body, { target, remote }) and sends the status, the headers and the
---body that it returns.
---@param max_body integer bytes; the handler gets one byte more of a longer body
---@param handler fun(method: string, headers: table, body: string, where: table): integer, table, string
---@return integer|nil status nil outside of the content phase
function M.serve(max_body, handler)
  if ngx.get_phase() ~= "content" then
    return nil
  end
  local body, problem = M.read_body(max_body + 1)
  if not body then
    ngx.log(ngx.ERR, "riskscreen: the body of a request cannot be read: ", problem)
    return respond(400, { ["Content-Type"] = "application/json" }, '{"error":"the body cannot be read"}')
  end
  local where = { target = ngx.var.request_uri, remote = ngx.var.remote_addr }
  return respond(handler(ngx.req.get_method(), headers(), body, where))
end

return M
