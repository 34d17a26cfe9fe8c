-- A gate written by hand in an afternoon, for comparison: a shared dict, one request over a cosocket, lua-cjson, and
-- few checks. Variants have lua-resty-lrucache before the dict, or lua-resty-http in place of the cosocket.

local cjson = require("cjson.safe")
local lrucache = require("resty.lrucache")

local has_http, http = pcall(require, "resty.http")

local ngx = ngx -- luacheck: ignore 113

local TTL = 300 -- seconds
local TIMEOUT = 2000 -- milliseconds
local KEPT = { timeout = 60000, connections = 128 }
local ACCESS_KEY = "0123456789abcdef0123456789abcdef"
local REMEMBERED = 1000 -- addresses

local M = {}

local blocked = { high = true, ["generally-high"] = true }

local function request_text(address, network, port)
  return "GET /api/v1/tracker/kya/risks?address="
    .. address
    .. "&network="
    .. network
    .. " HTTP/1.1\r\nHost: 127.0.0.1:"
    .. port
    .. "\r\nX-Access-Key: "
    .. ACCESS_KEY
    .. "\r\nAccept: application/json\r\n\r\n"
end

local function read_answer(socket)
  local status_line, err = socket:receive("*l")
  if not status_line then
    return nil, err
  end
  local length
  while true do
    local line, failure = socket:receive("*l")
    if not line then
      return nil, failure
    elseif line == "" then
      break
    end
    length = length or tonumber(line:match("^[Cc]ontent%-[Ll]ength: (%d+)"))
  end
  local body, failure = socket:receive(length or 0)
  if not body then
    return nil, failure
  end
  return status_line:find("200", 1, true) and cjson.decode(body)
end

local function look_up(address, network, port)
  local socket = ngx.socket.tcp()
  socket:settimeout(TIMEOUT)
  local ok, err = socket:connect("127.0.0.1", port)
  if not ok then
    return nil, err
  end
  ok, err = socket:send(request_text(address, network, port))
  if not ok then
    return nil, err
  end
  local answer
  answer, err = read_answer(socket)
  if not answer then
    return nil, err
  end
  socket:setkeepalive(KEPT.timeout, KEPT.connections)
  return answer
end

-- The same with lua-resty-http.
local function look_up_by_http(address, network, port)
  local client = http.new()
  client:set_timeout(TIMEOUT)
  local ok, err = client:connect({ scheme = "http", host = "127.0.0.1", port = port })
  if not ok then
    return nil, err
  end
  local answer
  answer, err = client:request({
    path = "/api/v1/tracker/kya/risks?address=" .. address .. "&network=" .. network,
    headers = { ["X-Access-Key"] = ACCESS_KEY, Accept = "application/json" },
  })
  if not answer then
    return nil, err
  end
  local body
  body, err = answer:read_body()
  if not body then
    return nil, err
  end
  client:set_keepalive(KEPT.timeout, KEPT.connections)
  return answer.status == 200 and cjson.decode(body)
end

local function verdict_of(answer)
  for _, risk in ipairs(answer.data.risks) do
    if blocked[risk.riskLevel] then
      return "block"
    end
  end
  return "allow"
end

local function verdict_for(dict, key, address, network, port, ask)
  local verdict = dict:get(key)
  if not verdict then
    local answer, err = ask(address, network, port)
    if not answer then
      ngx.log(ngx.ERR, "look-up failed: ", err)
      return nil
    end
    verdict = verdict_of(answer)
    dict:set(key, verdict, TTL)
  end
  return verdict
end

local function act(verdict)
  if not verdict then
    return ngx.exit(503)
  elseif verdict ~= "allow" then
    return ngx.exit(403)
  end
end

---For the access phase: lets the request pass, or ends it.
---@param dict table a shared dict
---@param port integer of the service on this machine
function M.enforce(dict, port)
  local address, network = ngx.var.arg_address, ngx.var.arg_network
  act(verdict_for(dict, network .. ":" .. address:lower(), address, network, port, look_up))
end

local remembered = lrucache.new(REMEMBERED)

---The same, with the verdicts of this worker before the dict.
function M.enforce_with_lru(dict, port)
  local address, network = ngx.var.arg_address, ngx.var.arg_network
  local key = network .. ":" .. address:lower()
  local verdict = remembered:get(key)
  if not verdict then
    verdict = verdict_for(dict, key, address, network, port, look_up)
    remembered:set(key, verdict, TTL)
  end
  act(verdict)
end

---The same, with lua-resty-http.
function M.enforce_by_http(dict, port)
  local address, network = ngx.var.arg_address, ngx.var.arg_network
  act(verdict_for(dict, network .. ":" .. address:lower(), address, network, port, look_up_by_http))
end

---The version of lua-resty-http, or why it cannot be measured: it, or a module that it needs, is not on the path.
M.http_version = has_http and http._VERSION or tostring(http):match("module '.-' not found")

return M
