-- What the clients of one name have in common in all workers: a circuit and a bucket, in a shared dict. How they work
-- is in the modules of their names.
local shared_breaker = require "riskscreen.nginx.limits.breaker"
local shared_bucket = require "riskscreen.nginx.limits.bucket"

local function name_of(settings)
  local base_url = settings.base_url
  return settings.shared_as or (base_url and base_url.origin .. base_url.prefix) or "transport"
end

local M = {}

---@param settings table a client's checked options, with `shared_dict`
---@param now fun(): number seconds, by a clock that all workers have in common
---@return { breaker?: riskscreen.nginx.SharedBreaker, bucket?: riskscreen.nginx.SharedBucket }
function M.of(settings, now)
  local dict, name = settings.shared_dict, name_of(settings)
  return {
    breaker = settings.breaker and shared_breaker.new(settings.breaker, now, dict, name) or nil,
    bucket = settings.rate_limit and shared_bucket.new(settings.rate_limit, now, dict, name) or nil,
  }
end

return M
