-- Any bytes as JSON, read without the core: the values, the words of a refusal and its byte are those of the core.
local cjson_decoder = require "riskscreen.json.cjson_decoder"
local core = require "riskscreen.core"
local parity = require "spec.support.json_parity"

-- With limits that short texts reach.
local pairs_of_sides = {}
for _, options in ipairs { {}, { null = "keep", max_depth = 3, max_values = 8, max_size = 200 } } do
  pairs_of_sides[#pairs_of_sides + 1] = { parity.side(core, options), parity.side(cjson_decoder, options) }
end

return function(text)
  for _, sides in ipairs(pairs_of_sides) do
    local difference = parity.difference(sides[1], sides[2], text)
    if difference then
      error(difference, 0)
    end
  end
end
