local core = require "riskscreen.core"

local major, minor = core.curl_version:match "^libcurl/(%d+)%.(%d+)"

local function is_older_than(number)
  return tonumber(major) == 7 and tonumber(minor) < number
end

return {
  -- Before 7.80, libcurl sends a request again by itself if its kept-alive connection was dead. The core then gives
  -- requests that change something a new connection.
  resends = is_older_than(80),
  -- Before 7.87, ending a name lookup waits for the resolver.
  waits_for_lookups = is_older_than(87),
}
