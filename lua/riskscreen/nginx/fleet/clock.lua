-- The clock of Redis, which the machines of a fleet have in common. So their own dates count nowhere.

local M = {}

---The time of Redis minus this machine's monotonic time; nil if Redis does not answer at once.
---@param client riskscreen.Redis
---@param now fun(): number monotonic seconds
---@param longest number seconds
---@return number|nil offset seconds, too much by at most `longest`
---@return any problem
function M.offset(client, now, longest)
  local asked_at = now()
  local time, problem = client:call "TIME"
  local seconds, micros = tonumber(time and time[1]), tonumber(time and time[2])
  if not seconds or not micros then
    return nil, problem or "no time"
  elseif now() - asked_at > longest then
    return nil, "Redis tells the time too late"
  end
  return seconds + micros / 1000000 - asked_at
end

return M
