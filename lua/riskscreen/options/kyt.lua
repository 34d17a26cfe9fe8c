-- The client options for transactions: polling, final statuses, the inbox of webhooks.
local build = require "riskscreen.options.build"

-- The one status of a transaction's result that the interface shows; the interface does not explain it.
local SHOWN_STATUS = 1003

-- Assumed to be under way, because they come before it.
local PENDING_STATUSES = { 1000, 1001, 1002 }

local function statuses(value)
  return build.list_of(value, "whole numbers", function(status)
    return type(status) == "number" and status == math.floor(status)
  end, 1)
end

local function inbox(value)
  if type(value.waiters) ~= "table" then
    return nil, "must be made by riskscreen.webhook.inbox"
  end
  return value
end

---@class riskscreen.Polling
---@field first number seconds
---@field growth number
---@field jitter number
---@field ceiling number seconds
---@field deadline number seconds

local polling = {
  build.seconds("first", 1, "Time from the submission to the first poll."),
  build.number("growth", "times", 1.5, 1, 100, "Factor from one interval to the next."),
  build.number("jitter", "of the interval", 0.2, 0, 1, "Largest share by which an interval is shortened at random."),
  build.seconds("ceiling", 30, "Longest interval between two polls."),
  build.seconds("deadline", 600, "How long `await` waits, if it is given no timeout."),
}

local M = {}

local FINAL_STATUSES = "Values of `status` that make a transaction's result final; by default 1003 alone."

---The entry of an option for final statuses.
---@type riskscreen.Option
M.final_statuses = build.checked("final_statuses", "table", statuses, FINAL_STATUSES, { SHOWN_STATUS })

local POLLING = "When the client polls for a transaction's result, if `endpoints.kyt_result` is set: `first`, "
  .. "`growth`, `jitter`, `ceiling`, `deadline`."
local PENDING_STATUSES_TEXT = "Values of `status` under which the wait for a result goes on; by default 1000, 1001 and "
  .. "1002. A result without a status is pending, too. Any other status ends the wait with an error."
local IMMEDIATE_RESULTS =
  "Whether the answer to a submission is the result itself. Then `screen` needs no source of later results."
local STORE = "Store that keeps submitted transactions, so that a program that starts again submits none twice."

---@type riskscreen.Option[]
M.client = {
  build.group("polling", polling, POLLING, {}),
  M.final_statuses,
  build.checked("pending_statuses", "table", statuses, PENDING_STATUSES_TEXT, PENDING_STATUSES),
  build.flag("immediate_results", false, IMMEDIATE_RESULTS),
  build.object("store", "riskscreen.Store", "riskscreen.store.sqlite or .memory", STORE),
  build.checked("inbox", "table", inbox, "Inbox whose webhooks bring results, made by `riskscreen.webhook.inbox`."),
}

return M
