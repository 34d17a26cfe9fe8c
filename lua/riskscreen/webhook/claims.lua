-- Which events were handled, for all programs that share a store, or all workers that share a dict. A program that
-- handles an event has a claim, and renews it meanwhile. The claim of a program that has ended expires.

local random = require "riskscreen.util.random"
local runtime = require "riskscreen.runtime"
local take = require "riskscreen.util.take"

local RENEWALS = 3 -- within a lease
local DONE = "done" -- in place of the beginning of a claim, so that it needs no more room

---@class riskscreen.webhook.ClaimSettings
---@field prefix string of the keys
---@field old_prefix? string of the keys of 0.9.0, which knew no accounts
---@field ttl number seconds for which a handled event is remembered
---@field lease number seconds after which the claim of a program that has ended expires

---@class riskscreen.webhook.Claims: riskscreen.WebhookStore
---@field private space riskscreen.StoreSpace|riskscreen.nginx.InboxDict
---@field private settings riskscreen.webhook.ClaimSettings
---@field private held table<string, { token: string, task: riskscreen.Task|false }> this program's claims by id
local Claims = {}
Claims.__index = Claims

local M = {}

---Whether a value says that the event was handled. Claims are hexadecimal.
---@param value string
---@return boolean
function M.is_done(value)
  return value:sub(1, #DONE) == DONE
end

local function renew(self, key, token)
  repeat
    runtime.sleep(self.settings.lease / RENEWALS)
  until self.space:replace(key, token, token, self.settings.lease) == false
end

-- Ends this program's claim. Returns its token.
local function let_go(self, id)
  local claim = self.held[id]
  self.held[id] = nil
  if claim then
    local _ = claim.task and claim.task:cancel()
    return claim.token
  end
end

function Claims:claim(id)
  local settings, space = self.settings, self.space
  local key, token = settings.prefix .. id, random.token()
  local old, err, value
  if settings.old_prefix then
    old, err = space:get(settings.old_prefix .. id)
  end
  if old and M.is_done(old) then
    return "done"
  elseif err == nil then
    value, err = take(space, key, token, settings.lease)
  end
  if value == token then
    -- Outside of tasks nothing else runs while the handler works, and a task would begin after it.
    local may_renew = runtime.name == "nginx" or not runtime.tasks.blocks()
    self.held[id] = { token = token, task = may_renew and runtime.tasks.spawn(renew, self, key, token) }
    return "new"
  elseif not value then
    return nil, "the store cannot say whether the event was handled: " .. tostring(err)
  end
  return M.is_done(value) and "done" or "busy"
end

function Claims:complete(id)
  local token = let_go(self, id) or random.token()
  local made, err = self.space:put(self.settings.prefix .. id, DONE .. token:sub(#DONE + 1), self.settings.ttl)
  if not made then
    runtime.tasks.report("riskscreen: a handled webhook cannot be remembered: " .. tostring(err))
  end
end

function Claims:release(id)
  local token = let_go(self, id)
  if token then
    self.space:delete(self.settings.prefix .. id, token)
  end
end

---@param space riskscreen.StoreSpace|riskscreen.nginx.InboxDict
---@param settings riskscreen.webhook.ClaimSettings
---@return riskscreen.webhook.Claims
function M.new(space, settings)
  return setmetatable({ space = space, settings = settings, held = {} }, Claims)
end

return M
