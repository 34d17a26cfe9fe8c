-- The runtime of a plain Lua program: one event loop for each Lua state, made when first needed, stepped by whoever
-- waits. What a request or a reply means is not known here.
local core = require "riskscreen.core"

local EXCERPT = 200 -- bytes of a body that is not JSON
local MAX_HEADERS = 256 * 1024 -- bytes of an answer's headers
local CONCURRENCY = 32 -- requests of one client in flight

---@class riskscreen.Pollable an object that is driven by readiness, such as a server or another loop
---@field pollfd fun(self): integer
---@field events fun(self): string
---@field timeout fun(self): number|nil seconds until `step` has something to do without the descriptor
---@field step fun(self, seconds: number)

local loop -- of this Lua state

-- What is called when an operation of the loop comes out of it.
---@type table<userdata, fun()>
local handlers = {}

-- Replaced rather than changed, so that an object may attach or detach another while it is being stepped.
---@type { object: riskscreen.Pollable, watch: userdata, stepping: boolean }[]
local attached = {}

local function the_loop()
  loop = loop or core.loop {}
  return loop
end

-- An object whose step runs this loop again is not entered twice.
local function step_object(entry)
  if not entry.stepping then
    entry.stepping = true
    entry.object:step(0)
    entry.stepping = false
  end
end

local function wait_limit(seconds)
  for _, entry in ipairs(attached) do
    local wanted = not entry.stepping and entry.object:timeout()
    if wanted and (not seconds or wanted < seconds) then
      seconds = wanted
    end
  end
  return seconds
end

local M = { now = core.now }

---Lets whatever is under way progress, waiting at most so long; without a limit until something happens.
---@param seconds? number
function M.step(seconds)
  local this = the_loop()
  this:step(wait_limit(seconds))
  local finished = this:next()
  while finished do
    local handle = handlers[finished]
    if handle then
      handle()
    end
    finished = this:next()
  end
  for _, entry in ipairs(attached) do
    if entry.object:timeout() == 0 then
      step_object(entry)
    end
  end
end

-- Steps the loop until an operation has come out of it.
local function await(operation)
  local finished = false
  handlers[operation] = function()
    handlers[operation] = nil
    finished = true
  end
  while not finished do
    M.step()
  end
end

---Waits.
---@param seconds number
function M.sleep(seconds)
  if type(seconds) ~= "number" or not (seconds >= 0 and seconds < math.huge) then
    error("seconds must be a number, 0 or more", 2)
  end
  await(the_loop():timer(seconds))
end

---Drives an object of another library, or a server of one's own, whenever this loop is stepped.
---@param object riskscreen.Pollable
function M.attach(object)
  local entry = { object = object, stepping = false, watch = the_loop():watch(object:pollfd(), object:events()) }
  handlers[entry.watch] = function()
    step_object(entry)
  end
  local more = { entry }
  for i, other in ipairs(attached) do
    more[i + 1] = other
  end
  attached = more
end

---Ends `attach`.
---@param object riskscreen.Pollable
function M.detach(object)
  local rest = {}
  for _, entry in ipairs(attached) do
    if entry.object == object then
      handlers[entry.watch] = nil
      entry.watch:cancel()
    else
      rest[#rest + 1] = entry
    end
  end
  attached = rest
end

local function new_origin(settings)
  return the_loop():origin {
    base_url = settings.base_url.origin,
    concurrency = CONCURRENCY,
    connect_timeout = settings.connect_timeout,
    max_body = settings.max_response_size,
    max_headers = MAX_HEADERS,
    http_version = settings.http_version,
    compression = settings.compression,
    proxy = settings.proxy,
    ca_file = settings.ca_file,
    client_cert = settings.client_cert,
    client_key = settings.client_key,
    unix_socket = settings.unix_socket,
    user_agent = settings.user_agent or ("riskscreen/" .. core.version),
    decoder = core.decoder { max_size = settings.max_response_size },
  }
end

local function send(origin, request)
  local lines = {}
  for name, value in pairs(request.headers) do
    lines[#lines + 1] = name .. ": " .. value
  end
  return origin:send {
    method = request.method,
    target = request.target,
    headers = lines,
    body = request.body,
    timeout = request.timeout,
    connect_timeout = request.connect_timeout,
    replay = request.replay,
  }
end

-- The reply of a finished transfer; its body is decoded where it was received.
local function reply_of(transfer)
  local reply, failure = transfer:result()
  if not reply then
    return nil, failure
  end
  if reply.size > 0 then
    local value, message, position = transfer:decode()
    if value == nil then
      reply.invalid = { message = message, position = position }
      reply.excerpt = transfer:body():sub(1, EXCERPT)
    end
    reply.value = value
  end
  return reply
end

---A transport over the library's own HTTP. A call waits for its answer; meanwhile everything else progresses.
---@param settings table a client's checked options
---@return fun(request: riskscreen.Request): riskscreen.Reply|nil, table|nil
function M.transport(settings)
  local origin
  return function(request)
    origin = origin or new_origin(settings)
    local transfer = send(origin, request)
    await(transfer)
    local reply, failure = reply_of(transfer)
    transfer:close()
    return reply, failure
  end
end

return M
