-- Any bytes as a file of decisions. The page has as many rows as the summary says, and no text of the input becomes
-- markup. A verdict that is not in the input is `unknown`.
local json = require "riskscreen.json"
local report = require "riskscreen.report"

local input_path, output_path = os.tmpname(), os.tmpname()

local function count(text, part)
  local _, number = text:gsub(part, "")
  return number
end

return function(bytes)
  local file = assert(io.open(input_path, "wb"))
  file:write(bytes)
  file:close()
  local summary, err = report.write { input = input_path, output = output_path, time = 0 }
  if not summary then
    assert(err.kind == "invalid_argument", tostring(err))
    return
  end
  local total = 0
  for _, number in pairs(summary.actions) do
    total = total + number
  end
  assert(total == summary.rows, "the verdicts are not as many as the rows")
  -- JSON may write the letters of a verdict as \u0061.
  if not bytes:find "\\u" then
    for _, action in ipairs { "allow", "review", "block" } do
      assert(summary.actions[action] <= count(bytes, action), "a verdict that is not in the input: " .. action)
    end
  end
  local page = assert(io.open(output_path, "rb"))
  local html = page:read "*a"
  page:close()
  local data = html:match '<script type="application/json" id="data">(.-)</script>'
  assert(not data:find("[<>&]"), "text of the input may become markup")
  local decoded = assert(json.decode(data))
  assert(#decoded.rows == summary.rows, "the page has not the rows of the summary")
end
