-- Answers the request that nginx is serving with what an inbox says to it: a content handler. What a delivery means is
-- the inbox's.
local ngx = _G.ngx
local webhook = require "riskscreen.webhook"

local M = {}

local function read_file(name)
  local file, message = io.open(name, "rb")
  if not file then
    return nil, message
  end
  -- One byte more than an event may have tells that it has more.
  local content = file:read(webhook.MAX_SIZE + 1)
  file:close()
  return content or ""
end

-- The body, in memory or in a file; of one that is too long, enough to tell.
local function read_body()
  local ok, message = pcall(ngx.req.read_body)
  if not ok then
    return nil, message
  end
  local body = ngx.req.get_body_data()
  local name = not body and ngx.req.get_body_file()
  if name then
    return read_file(name)
  end
  return body or ""
end

-- A header that comes twice is both, so that neither stands for the other.
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

---@param inbox riskscreen.Inbox
---@return integer status
function M.serve(inbox)
  local body, problem = read_body()
  if not body then
    ngx.log(ngx.ERR, "riskscreen: the body of a webhook cannot be read: ", problem)
    return respond(400, { ["Content-Type"] = "application/json" }, '{"error":"the body cannot be read"}')
  end
  local where = { target = ngx.var.request_uri, remote = ngx.var.remote_addr }
  return respond(inbox:deliver(ngx.req.get_method(), headers(), body, where))
end

return M
