-- Leases in a shared dict. One worker has a lease at a time; that of a crashed worker ends by itself. The end is in the
-- text, by the monotonic clock: the dict's own expiry follows the date, which may be set back.

local M = {}

-- Whether a text is no lease that is under way.
local function has_ended(text, now)
  local ends = type(text) == "string" and tonumber(text:match "^%S+")
  return not ends or now >= ends
end

---Takes the lease of a key, unless it is another's.
---@param dict table an ngx.shared dict
---@param key string
---@param holder string|number
---@param now number monotonic seconds
---@param seconds number
---@return string|false|nil lease false if it is another's, nil if the dict has no room
---@return string|nil message
function M.take(dict, key, holder, now, seconds)
  local text = ("%.3f %s"):format(now + seconds, holder)
  local ok, message = dict:add(key, text, seconds)
  if not ok and message == "exists" and has_ended(dict:get(key), now) then
    ok, message = dict:set(key, text, seconds)
  end
  if ok then
    return text
  elseif message == "exists" then
    return false
  end
  return nil, message
end

---Extends a lease. Returns the new one, or nil where it is another's by now.
---@param dict table an ngx.shared dict
---@param key string
---@param lease string
---@param now number monotonic seconds
---@param seconds number
---@return string|nil lease
function M.renew(dict, key, lease, now, seconds)
  if dict:get(key) ~= lease then
    return nil
  end
  local text = ("%.3f %s"):format(now + seconds, lease:match " (.*)$")
  return dict:set(key, text, seconds) and text or nil
end

---Ends a lease, if it is still the holder's.
---@param dict table an ngx.shared dict
---@param key string
---@param lease string
function M.release(dict, key, lease)
  if dict:get(key) == lease then
    dict:delete(key)
  end
end

return M
