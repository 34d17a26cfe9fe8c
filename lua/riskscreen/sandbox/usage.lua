-- What one account has used: calls and credits of each operation on each day (UTC).

---@class riskscreen.sandbox.Usage
---@field credits integer used so far
---@field private days table<string, table<string, { path: string, calls: integer, credits: integer }>>
local Usage = {}
Usage.__index = Usage

local function day_of(now)
  return os.date("!%Y-%m-%d", math.floor(now))
end

---Counts one call.
---@param operation { name: string, path: string }
---@param credits integer what it cost
---@param now number seconds since the Unix epoch
function Usage:count(operation, credits, now)
  local day = day_of(now)
  self.days[day] = self.days[day] or {}
  local row = self.days[day][operation.name] or { path = operation.path, calls = 0, credits = 0 }
  row.calls, row.credits = row.calls + 1, row.credits + credits
  self.days[day][operation.name] = row
  self.credits = self.credits + credits
end

local function includes(list, wanted)
  for _, value in ipairs(list) do
    if value == wanted then
      return true
    end
  end
  return false
end

---The records of a span of days, oldest first. A month's record bears its first day. Without `group_by`, or with
---"endpoint" in it, there is one for each operation; otherwise all operations of the account are one record.
---@param query { granularity?: string, start_date?: string, end_date?: string, group_by?: string[] }
---@return table[] records as the interface spells them
function Usage:records(query)
  local by_endpoint = not query.group_by or includes(query.group_by, "endpoint")
  local sums, records = {}, {}
  for day, rows in pairs(self.days) do
    if day >= (query.start_date or "") and day <= (query.end_date or "9999-12-31") then
      local time = query.granularity == "month" and day:sub(1, 7) .. "-01" or day
      for name, row in pairs(rows) do
        local key = time .. " " .. (by_endpoint and name or "")
        local record = sums[key]
        if not record then
          record = { time = time, totalCalls = 0, useCredits = 0 }
          if by_endpoint then
            record.methodName, record.methodUrl = name, row.path
          end
          sums[key], records[#records + 1] = record, record
        end
        record.totalCalls, record.useCredits = record.totalCalls + row.calls, record.useCredits + row.credits
      end
    end
  end
  table.sort(records, function(left, right)
    if left.time ~= right.time then
      return left.time < right.time
    end
    return (left.methodName or "") < (right.methodName or "")
  end)
  return records
end

local M = {}

---Nothing used yet.
---@return riskscreen.sandbox.Usage
function M.new()
  return setmetatable({ credits = 0, days = {} }, Usage)
end

return M
