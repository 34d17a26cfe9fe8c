-- Runs ordinary spec files inside nginx: it reads the examples of a file in the process of the spec for their names,
-- and inside nginx to run them. It supports the part of busted that those files use.
local M = {}

local function name_of(path, name)
  return path == "" and name or path .. " " .. name
end

-- The functions that a spec file calls, and the examples that it states with them.
local function vocabulary()
  local examples, scope = {}, { name = "", before = {}, after = {} }
  local words = {}

  function words.describe(name, body)
    local outer = scope
    scope = { name = name_of(outer.name, name), outer = outer, before = {}, after = {} }
    body()
    scope = outer
  end

  function words.it(name, body)
    examples[#examples + 1] = { name = name_of(scope.name, name), body = body, scope = scope }
  end

  function words.before_each(body)
    table.insert(scope.before, body)
  end

  function words.after_each(body)
    table.insert(scope.after, body)
  end

  return words, examples
end

local function load_in(path, environment)
  if setfenv then -- luacheck: ignore 113
    return setfenv(assert(loadfile(path)), environment) -- luacheck: ignore 113
  end
  return assert(loadfile(path, "t", environment))
end

---The examples of a spec file, in its order.
---@param path string
---@return { name: string, body: fun(), scope: table }[]
function M.examples(path)
  local words, examples = vocabulary()
  words.assert = require "luassert"
  load_in(path, setmetatable(words, { __index = _G }))()
  return examples
end

local function around(scope, which, outermost_first)
  local list = {}
  while scope do
    for _, body in ipairs(scope[which]) do
      table.insert(list, outermost_first and 1 or #list + 1, body)
    end
    scope = scope.outer
  end
  return list
end

local function run_example(example)
  local bodies = around(example.scope, "before", true)
  bodies[#bodies + 1] = example.body
  local ok, failure = true, nil
  for _, body in ipairs(bodies) do
    ok, failure = xpcall(body, function(raised)
      return debug.traceback(type(raised) == "table" and raised.message or tostring(raised))
    end)
    if not ok then
      break
    end
  end
  for _, body in ipairs(around(example.scope, "after", false)) do
    body()
  end
  return ok, failure
end

---Runs one example of a file here.
---@param path string
---@param name string
---@return string|nil failure
function M.run(path, name)
  for _, example in ipairs(M.examples(path)) do
    if example.name == name then
      local ok, failure = run_example(example)
      return not ok and tostring(failure) or nil
    end
  end
  error("there is no example " .. name)
end

---States every example of a file as one that is run inside nginx.
---@param path string
---@param server fun(): riskscreen.spec.Nginx
---@param without? table<string, string> what is in the names of examples that mean nothing there, and why
function M.state(path, server, without)
  local busted = require "busted"
  local unseen = {}
  local function is_left_out(name)
    for part in pairs(without or {}) do
      if name:find(part, 1, true) then
        unseen[part] = nil
        return true
      end
    end
  end
  for part in pairs(without or {}) do
    unseen[part] = true
  end
  for _, example in ipairs(M.examples(path)) do
    if not is_left_out(example.name) then
      busted.it(example.name, function()
        local code = "local which = ... return require('spec.support.shadow').run(which.path, which.name)"
        local failure = server():eval(code, { path = path, name = example.name })
        if failure then
          error(failure, 0)
        end
      end)
    end
  end
  assert(not next(unseen), "no such example: " .. tostring(next(unseen)))
end

return M
