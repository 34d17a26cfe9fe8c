-- The client's options about results of transactions; options.lua lists them among the others.
local polling = require "riskscreen.options.polling"
local text = require "riskscreen.util.text"

-- The one status of a transaction's result that the interface shows; it does not say what it means.
local SHOWN_STATUS = 1003

local function statuses(value)
  local copy, count = {}, 0
  for _ in pairs(value) do
    count = count + 1
  end
  for i, status in ipairs(value) do
    if type(status) ~= "number" or status ~= math.floor(status) then
      return nil, "must be a list of whole numbers (got " .. text.show(status) .. ")"
    end
    copy[i] = status
  end
  if #copy == 0 or #copy < count then
    return nil, "must be a list of whole numbers, at least one"
  end
  return copy
end

local M = {}

---@type riskscreen.Option
M.polling = {
  name = "polling",
  type = "table",
  fields = polling.options,
  doc = "When results of transactions are asked for, if `endpoints.kyt_result` is set: `first`, `growth`, `jitter`, "
    .. "`ceiling`, `deadline`.",
}

---@type riskscreen.Option
M.final_statuses = {
  name = "final_statuses",
  type = "table",
  default = { SHOWN_STATUS },
  check = statuses,
  doc = "The values of `status` with which a transaction's result is there; by default 1003 alone.",
}

---@type riskscreen.Option
M.inbox = {
  name = "inbox",
  type = "table",
  check = function(value)
    if type(value.waiters) ~= "table" then
      return nil, "must be made by riskscreen.webhook.inbox"
    end
    return value
  end,
  doc = "The inbox whose webhooks bring results of transactions, made by `riskscreen.webhook.inbox`.",
}

---@type riskscreen.Option
M.random = {
  name = "random",
  type = "function",
  doc = "Returns a number from 0 up to 1, for waits that must not fall together; by default its own.",
}

return M
