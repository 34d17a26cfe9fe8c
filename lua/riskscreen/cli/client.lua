-- The client that the configuration describes: of a service, or of the sandbox where none is configured.

local client_options = require "riskscreen.options"
local configuration = require "riskscreen.cli.configuration"
local policies = require "riskscreen.policy"
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local NOTICE = "no service is configured, so the built-in sandbox answers: nothing here is a real result. "
  .. "Set base_url and an access key: riskscreen config --help"
local CHOSEN = "the built-in sandbox answers, as --sandbox asks: nothing here is a real result"

local UNCHOSEN = "no service is configured: set base_url and an access key, or give --sandbox for simulated answers"

local M = {}

-- The policy that a Lua file returns.
local function policy_of(path)
  local chunk, problem = loadfile(path)
  if not chunk then
    status.misuse("the policy cannot be read: " .. problem)
  end
  local ok, value = pcall(chunk)
  if not ok then
    status.misuse("the policy failed: " .. tostring(value))
  elseif type(value) ~= "table" then
    status.misuse(("the policy %s must return riskscreen.policy { … } (got a %s)"):format(path, type(value)))
  elseif type(value.decide) == "function" then
    return value
  end
  local made, policy = pcall(policies.new, value)
  if not made then
    status.misuse(("%s: %s"):format(path, tostring(policy)))
  end
  return policy
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

---The policy that the configuration names, or nil.
---@param settings riskscreen.cli.Configuration
---@return riskscreen.Policy|nil
function M.policy(settings)
  local path = configuration.get(settings, "policy")
  return path and policy_of(path)
end

-- "timeout must be …" becomes "timeout (from ~/.config/…:3) must be …".
local function with_source(settings, message)
  local name = message:match "^([%w_.]+) "
  local value = name and settings.values[name]
  if value then
    return ("%s (from %s)%s"):format(name, value.source, message:sub(#name + 1))
  end
  return message
end

-- The sandbox in this process. A key or a profile without base_url is a mistake, not a wish for the sandbox.
local function is_sandbox(settings, key, key_place)
  if configuration.get(settings, "sandbox") then
    return true
  elseif configuration.get(settings, "base_url") then
    return false
  elseif key then
    status.misuse(
      (
        "there is an access key (%s) and no base_url: set RISKSCREEN_BASE_URL, or base_url in a profile, or give "
        .. "--base-url; --sandbox asks the sandbox"
      ):format(key_place)
    )
  elseif settings.profile then
    status.misuse(
      ("the profile %s has no base_url: add 'base_url = https://…', or give --sandbox"):format(settings.profile)
    )
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
  local key, key_place
  if not wants_sandbox then
    key, key_place = configuration.access_key(settings, world.getenv, world.warn)
  end
  local in_sandbox = is_sandbox(settings, key, key_place)
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
  if given.policy == nil then
    given.policy = M.policy(settings)
  end
  given.policy = given.policy or nil
  if given.lists then
    given.lists = tables.merge(given.lists, { on_problem = world.warn })
  end
  given.journal = journal_of(settings, world)
  if in_sandbox then
    world.notice(wants_sandbox and CHOSEN or NOTICE)
    given.base_url = nil
    local ok, client = pcall(riskscreen.sandbox.client, given)
    if not ok then
      status.misuse(with_source(settings, (tostring(client):gsub("^[^ ]+:%d+: ", ""))))
    end
    return client, "sandbox"
  elseif not key then
    status.misuse(
      "there is a base_url and no access key: set RISKSCREEN_ACCESS_KEY, access_key_file or access_key_command"
    )
  end
  given.access_key, given.account = key, given.account or settings.account
  local checked, message = client_options.check_client(given)
  if not checked then
    status.misuse(with_source(settings, message))
  end
  return riskscreen.new(given)
end

return M
