local check = require "riskscreen.options.check"
local options = require "riskscreen.options"

local TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

local function accepts(value)
  return check.options(options.call, { traceparent = value }) ~= nil
end

describe("a call's traceparent", function()
  for case, value in pairs {
    ["of the current version"] = "00-" .. TRACE .. "-" .. PARENT .. "-01",
    ["that is not sampled"] = "00-" .. TRACE .. "-" .. PARENT .. "-00",
    ["of a later version"] = "cc-" .. TRACE .. "-" .. PARENT .. "-01",
    ["of a later version with more fields"] = "cc-" .. TRACE .. "-" .. PARENT .. "-01-what-the-future-brings",
  } do
    it(case .. " is valid", function()
      assert.is_true(accepts(value))
    end)
  end

  for case, value in pairs {
    ["no text"] = 5,
    ["empty"] = "",
    ["of version ff"] = "ff-" .. TRACE .. "-" .. PARENT .. "-01",
    ["of zeros for a trace"] = "00-" .. ("0"):rep(32) .. "-" .. PARENT .. "-01",
    ["of zeros for a parent"] = "00-" .. TRACE .. "-" .. ("0"):rep(16) .. "-01",
    ["written in capitals"] = "00-" .. TRACE:upper() .. "-" .. PARENT .. "-01",
    ["with a short trace"] = "00-" .. TRACE:sub(2) .. "-" .. PARENT .. "-01",
    ["with a long parent"] = "00-" .. TRACE .. "-" .. PARENT .. "0-01",
    ["without flags"] = "00-" .. TRACE .. "-" .. PARENT,
    ["of the current version with more fields"] = "00-" .. TRACE .. "-" .. PARENT .. "-01-more",
    ["with a line end"] = "00-" .. TRACE .. "-" .. PARENT .. "-01\r\nX-Other: 1",
    ["of a later version with a line end"] = "cc-" .. TRACE .. "-" .. PARENT .. "-01-\r\nX-Other: 1",
    ["of a later version that goes on without a dash"] = "cc-" .. TRACE .. "-" .. PARENT .. "-01more",
  } do
    it("is invalid when it is " .. case, function()
      assert.is_false(accepts(value))
    end)
  end
end)
