-- The options of polling for a transaction's result. kyt/await.lua polls.

local LONGEST_WAIT = 86400 -- seconds

local function seconds(name, default, doc)
  return {
    name = name,
    type = "number",
    default = default,
    minimum = 0.001,
    maximum = LONGEST_WAIT,
    unit = "seconds",
    doc = doc,
  }
end

local M = {}

---@class riskscreen.Polling
---@field first number seconds
---@field growth number
---@field jitter number
---@field ceiling number seconds
---@field deadline number seconds

---@type riskscreen.Option[]
M.options = {
  seconds("first", 1, "From the submission to the first question."),
  {
    name = "growth",
    type = "number",
    default = 1.5,
    minimum = 1,
    maximum = 100,
    unit = "times",
    doc = "How much longer each wait is than the one before.",
  },
  {
    name = "jitter",
    type = "number",
    default = 0.2,
    minimum = 0,
    maximum = 1,
    unit = "of the wait",
    doc = "By how much of itself a wait is shortened at random at most, so that many tasks do not ask in step.",
  },
  seconds("ceiling", 30, "The longest wait between two questions."),
  seconds("deadline", 600, "How long a result is awaited where the call does not say."),
}

return M
