-- The client that the configuration describes: of a service, or of the sandbox where none is configured.

local configuration = require "riskscreen.cli.configuration"
local policies = require "riskscreen.policy"
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local NOTICE = "no service is configured, so the built-in sandbox answers: nothing here is a real result. "
  .. "Set base_url and an access key: riskscreen config --help"
local CHOSEN = "the built-in sandbox answers, as --sandbox asks: nothing here is a real result"
local NO_URL = "there is an access key (%s) and no base_url: give --base-url, or --sandbox for simulated answers"
local NO_KEY = "there is a base_url and no access key: set RISKSCREEN_ACCESS_KEY, access_key_file or access_key_command"
local TWO = "sandbox (from %s) and base_url (from %s) contradict each other: leave one out"
local UNCHOSEN = "no service is configured: set base_url and an access key, or give --sandbox for simulated answers"

local M = {}

---The policy that a Lua file returns, or whose options it returns.
---@param path string
---@return riskscreen.Policy|riskscreen.ScorePolicy
function M.load_policy(path)
  local ok, policy = pcall(function()
    local chunk, fault = loadfile(path)
    if not chunk then
      error(fault .. (path:find "%.lua$" and "" or "; a policy is a file of Lua, such as policy.lua"), 0)
    end
    local value = chunk()
    if type(value) ~= "table" then
      error(("the file must return a policy or its options (it returns %s)"):format(text.kind(value)), 0)
    end
    return type(value) == "table" and type(value.decide) == "function" and value or policies.new(value)
  end)
  local problem = not ok and tostring(policy):gsub("^%S+/client%.lua:%d+: ", "")
  return ok and policy or status.misuse("the policy %s: %s", path, problem)
end

---The policy that the configuration names, or nil.
---@param settings riskscreen.cli.Configuration
---@return riskscreen.Policy|nil
function M.policy(settings)
  local path = configuration.get(settings, "policy")
  return path and M.load_policy(path) or nil
end

-- The journal that the configuration names. It is closed with the client's program.
local function journal_of(settings, world)
  local path, key_file = configuration.get(settings, "journal"), configuration.get(settings, "journal_key_file")
  if not path then
    return nil
  end
  local made, opened, err = pcall(riskscreen.journal.file, path, {
    record = configuration.get(settings, "journal_record"),
    key = key_file and configuration.read_secret(key_file),
    on_failure = function(failure)
      world.notice("a decision was not recorded: " .. tostring(failure))
    end,
  })
  if not made or not opened then
    status.misuse((tostring(made and err or opened):gsub("^riskscreen: ", ""):gsub("^[^ ]+:%d+: ", "")))
  end
  settings.opened_journal = opened
  return opened
end

-- The sandbox in this process. A key or a profile without base_url is a mistake, not a wish for the sandbox. A wish for
-- it must not be left over from a weaker source than that of the service.
local function is_sandbox(settings, key)
  if configuration.get(settings, "sandbox") then
    local sandbox, url = settings.values.sandbox, settings.values.base_url
    if url and url.rank > sandbox.rank then
      status.misuse(TWO, sandbox.source, url.source)
    end
    return true
  elseif configuration.get(settings, "base_url") then
    return false
  elseif key then
    status.misuse(NO_URL, configuration.key_place(settings))
  elseif settings.profile then
    status.misuse("the profile %s has no base_url: config set base_url https://…, or --sandbox", settings.profile)
  end
  return true
end

---A client of the configured service, or of the sandbox, and says on stderr if it is the sandbox.
---@param settings riskscreen.cli.Configuration
---@param world riskscreen.cli.World
---@param changes? table more options of the client, and more fields of groups; policy = false: none
---@param must_choose? boolean the sandbox must be asked for
---@return riskscreen.Client
---@return "sandbox"|nil source nil if a service answers
function M.open(settings, world, changes, must_choose)
  local wants_sandbox = configuration.get(settings, "sandbox") == true
  local key = not wants_sandbox and configuration.access_key(settings, world.warn) or nil
  local in_sandbox = is_sandbox(settings, key)
  settings.is_simulated = in_sandbox and not wants_sandbox
  if settings.is_simulated and must_choose then
    status.misuse(UNCHOSEN)
  end
  local given = configuration.client_options(settings)
  for name, value in pairs(changes or {}) do
    if type(value) == "table" and type(given[name]) == "table" then
      given[name] = tables.merge(given[name], value)
    elseif given[name] == nil then
      given[name] = value
    end
  end
  given.policy = given.policy == nil and M.policy(settings) or nil
  if given.lists then
    given.lists = tables.merge(given.lists, { on_problem = world.warn })
  end
  given.journal = journal_of(settings, world)
  local make = riskscreen.new
  if in_sandbox then
    world.notice(wants_sandbox and CHOSEN or NOTICE)
    make, given.base_url = riskscreen.sandbox.client, nil
  elseif not key then
    status.misuse(NO_KEY)
  else
    given.access_key, given.account = key, given.account or settings.account
  end
  local ok, client = pcall(make, given)
  if ok then
    return client, in_sandbox and "sandbox" or nil
  elseif status.of_failure(client) ~= status.unknown then
    error(client, 0) -- a package is missing, or a signal came
  end
  status.misuse(configuration.with_source(settings.values, (tostring(client):gsub("^[^ ]+:%d+: ", ""))))
end

return M
