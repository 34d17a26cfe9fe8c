local date = require "riskscreen.util.date"

describe("a date", function()
  it("is counted in days from 1970-01-01", function()
    assert.equal(0, date.parse_date "1970-01-01")
    assert.equal(-1, date.parse_date "1969-12-31")
    assert.equal(11016, date.parse_date "2000-02-29")
    assert.equal(20454, date.parse_date "2026-01-01")
  end)

  it("is one day after the day before, over four hundred years", function()
    local days, expected = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }, date.days(1900, 1, 1)
    for year = 1900, 2299 do
      local leap = year % 400 == 0 or (year % 4 == 0 and year % 100 ~= 0)
      for month = 1, 12 do
        for day = 1, days[month] + (leap and month == 2 and 1 or 0) do
          if date.days(year, month, day) ~= expected then
            error(("%d-%d-%d is not day %d"):format(year, month, day, expected))
          end
          expected = expected + 1
        end
      end
    end
  end)

  for _, text in ipairs {
    "2026-02-29",
    "1900-02-29",
    "2026-04-31",
    "2026-13-01",
    "2026-00-10",
    "2026-01-00",
    "2026-1-01",
    "26-01-01",
    "2026-01-01 ",
    "2026/01/01",
    "",
  } do
    it("is not '" .. text .. "'", function()
      assert.is_nil(date.parse_date(text))
    end)
  end

  it("is read from a header", function()
    -- The example of RFC 9110.
    assert.equal(784111777, date.parse_http_date "Sun, 06 Nov 1994 08:49:37 GMT")
    assert.is_nil(date.parse_http_date "Sun, 31 Nov 1994 08:49:37 GMT")
    assert.is_nil(date.parse_http_date "tomorrow")
  end)
end)

describe("a time", function()
  it("is a date with a time of day and a zone, or without them", function()
    assert.equal(86400, date.parse_time "1970-01-02")
    assert.equal(86400, date.parse_time "1970-01-01T24:00")
    assert.equal(3600 * 10, date.parse_time "1970-01-01 00:00:00-10:00")
    assert.equal(-3600 * 14, date.parse_time "1970-01-01T00:00:00+1400")
    assert.equal(86399.5, date.parse_time "1970-01-01T23:59:59.5Z")
  end)

  for _, text in ipairs {
    "2026-11-23T24:30",
    "2026-11-23T24:00:01",
    "2026-11-23T25:00",
    "2026-11-23T12:60",
    "2026-11-23T12:00:00+99:99",
    "2026-11-23T12:00:00+01:60",
    "2026-11-23T12:00:00-15:00",
    "2026-11-23T12:00:00 CET",
  } do
    it("is not '" .. text .. "'", function()
      assert.is_nil(date.parse_time(text))
    end)
  end
end)
