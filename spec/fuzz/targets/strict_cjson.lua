-- Any bytes as JSON, decoded without the core: the result is the core's, or a refusal.
local parity = require "spec.support.json_parity"
local strict_cjson = require "riskscreen.json.strict_cjson"

return function(text)
  local difference = parity.difference(strict_cjson, text)
  if difference then
    error(difference, 0)
  end
end
