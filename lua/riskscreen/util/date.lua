-- Dates of the Gregorian calendar, for requests and headers. No clock, no time zones.

local days_in_month = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
local month_numbers =
  { Jan = 1, Feb = 2, Mar = 3, Apr = 4, May = 5, Jun = 6, Jul = 7, Aug = 8, Sep = 9, Oct = 10, Nov = 11, Dec = 12 }

local FARTHEST_ZONE = 14 -- hours from UTC

local M = {}

---Days from 1970-01-01 to a day, or nil when there is no such day.
---@param year integer
---@param month integer
---@param day integer
---@return integer|nil
function M.days(year, month, day)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  local last = month == 2 and leap and 29 or days_in_month[month]
  if not last or day < 1 or day > last then
    return nil
  end
  -- In years that begin in March, the leap day is the last day of the year.
  local shifted = month > 2 and year or year - 1
  local day_of_year = math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  local leap_days = math.floor(shifted / 4) - math.floor(shifted / 100) + math.floor(shifted / 400)
  return shifted * 365 + leap_days + day_of_year - 719468
end

---Days from 1970-01-01 to a date written yyyy-MM-dd, or nil for any other text.
---@param text string
---@return integer|nil
function M.parse_date(text)
  local year, month, day = text:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)$"
  return year and M.days(tonumber(year), tonumber(month), tonumber(day))
end

---Unix seconds of a date, with or without a time of day and a zone; without a zone it is UTC. Nil for any other text.
---@param text string
---@return number|nil
function M.parse_time(text)
  local day, rest = text:match "^(%d%d%d%d%-%d%d%-%d%d)(.*)$"
  local days = day and M.parse_date(day)
  if not days then
    return nil
  elseif rest == "" then
    return days * 86400
  end
  local hour, minute, second, zone = rest:match "^[T ](%d%d):(%d%d):?([%d.]*)(.*)$"
  local seconds = second and (tonumber(second) or (second == "" and 0))
  local is_time = seconds and seconds < 61 and tonumber(minute) <= 59 and tonumber(hour) <= 24
  if not is_time or tonumber(hour) == 24 and minute + seconds > 0 then
    return nil
  end
  local sign, zone_hours, zone_minutes = zone:match "^([+-])(%d%d):?([0-5]%d)$"
  if sign and tonumber(zone_hours) > FARTHEST_ZONE then
    return nil
  end
  local offset = sign and (zone_hours * 3600 + zone_minutes * 60) * (sign == "-" and -1 or 1) or 0
  if not sign and zone ~= "" and zone ~= "Z" and zone ~= " UTC" then
    return nil
  end
  return days * 86400 + hour * 3600 + minute * 60 + seconds - offset
end

---Unix seconds of an HTTP date such as "Sun, 06 Nov 1994 08:49:37 GMT", or nil.
---@param text string
---@return integer|nil
function M.parse_http_date(text)
  local day, month, year, hour, minute, second =
    text:match "^%a%a%a, (%d%d) (%a%a%a) (%d%d%d%d) (%d%d):(%d%d):(%d%d) GMT$"
  local days = day and month_numbers[month] and M.days(tonumber(year), month_numbers[month], tonumber(day))
  if not days then
    return nil
  end
  return days * 86400 + tonumber(hour) * 3600 + tonumber(minute) * 60 + tonumber(second)
end

return M
