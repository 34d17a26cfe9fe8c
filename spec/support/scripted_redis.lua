-- A Redis in this process that runs the library's scripts by a virtual clock. It has the commands that they use, on
-- hashes; spec/unit/call/limiter/redis_spec.lua compares its answers with those of a real one.

local M = {}

local function texts(values)
  local result = {}
  for index, value in ipairs(values) do
    result[index] = type(value) == "number" and ("%.17g"):format(value) or value
  end
  return result
end

local function compile(source, env)
  if setfenv then -- luacheck: ignore 113
    return setfenv(assert(loadstring(source)), env) -- luacheck: ignore 113
  end
  return assert(load(source, "script", "t", env))
end

---@param clock fun(): number Unix seconds
---@return table redis `script(script, keys, arguments)`, and `data`, `calls`, `failure` for the test
function M.new(clock)
  local redis = { data = {}, calls = 0 }
  local commands = {
    TIME = function()
      local now = clock()
      return { ("%.0f"):format(math.floor(now)), ("%.0f"):format(math.floor((now % 1) * 1000000)) }
    end,
    HMGET = function(key, ...)
      local hash, values = redis.data[key] or {}, {}
      for index, field in ipairs { ... } do
        values[index] = hash[field] or false
      end
      return values
    end,
    HSET = function(key, ...)
      local pairs_given = texts { ... }
      local hash = redis.data[key] or {}
      for index = 1, #pairs_given, 2 do
        hash[pairs_given[index]] = pairs_given[index + 1]
      end
      redis.data[key] = hash
      return #pairs_given / 2
    end,
    EXPIRE = function()
      return 1
    end,
  }
  local env = {
    tonumber = tonumber,
    tostring = tostring,
    math = math,
    string = string,
    ipairs = ipairs,
    pairs = pairs,
    unpack = table.unpack or unpack, -- luacheck: ignore 113 143
    redis = {
      call = function(name, ...)
        return assert(commands[name], name)(...)
      end,
    },
  }
  local compiled = {}
  function redis:script(script, keys, arguments)
    self.calls = self.calls + 1
    if self.failure then
      return nil, self.failure
    end
    compiled[script] = compiled[script] or compile(script.text, env)
    env.KEYS, env.ARGV = keys, arguments
    return compiled[script]()
  end
  function redis:key(name)
    return name
  end
  return setmetatable(redis, { __name = "riskscreen.Redis" })
end

return M
