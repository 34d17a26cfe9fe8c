local cjson = require("cjson")
local core = require("riskscreen.core")
local generators = require("spec.support.random")
local reference = require("spec.support.json_reference")
local texts = require("spec.support.json_texts")

local SEED, rounds = generators.SEED, generators.rounds

local random = math.random

local function code_point()
  local kind = random(6)
  if kind <= 3 then
    return random(0x20, 0x7E)
  elseif kind == 4 then
    return random(0, 0x7FF)
  elseif kind == 5 then
    local unit = random(0x800, 0xFFFF - 0x800)
    return unit < 0xD800 and unit or unit + 0x800
  end
  return random(0x10000, 0x10FFFF)
end

local function utf8_char(code)
  if code < 0x80 then
    return string.char(code)
  elseif code < 0x800 then
    return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return string.char(
    0xF0 + math.floor(code / 262144),
    0x80 + math.floor(code / 4096) % 64,
    0x80 + math.floor(code / 64) % 64,
    0x80 + code % 64
  )
end

local function random_string()
  local out = {}
  for i = 1, random(0, random(2) == 1 and 6 or 60) do
    out[i] = utf8_char(code_point())
  end
  return table.concat(out)
end

-- A number that lua-cjson's fourteen digits write exactly.
local function random_number()
  local kind = random(4)
  if kind == 1 then
    return random(-100, 100)
  elseif kind == 2 then
    return random(-2147483648, 2147483647)
  elseif kind == 3 then
    return random(-99999, 99999) / 1024
  end
  return random(1, 9) * 10 ^ random(-30, 30)
end

local KEYS = { "address", "network", "time", "risks", "entity", "whitelist", "a", "b" }

local random_value

local function random_list(depth)
  local out = {}
  for i = 1, random(20) do
    out[i] = random_value(depth)
  end
  return out
end

local function random_map(depth)
  local out = {}
  for _ = 1, random(0, 8) do
    local key = random(4) == 1 and random_string() or KEYS[random(#KEYS)]
    out[key] = random_value(depth)
  end
  return out
end

function random_value(depth)
  local kind = random(depth > 0 and 7 or 4)
  if kind == 1 then
    return random_number()
  elseif kind == 2 then
    return random_string()
  elseif kind == 3 then
    return random(2) == 1
  elseif kind == 4 then
    return KEYS[random(#KEYS)]
  elseif kind == 5 then
    return random_list(depth - 1)
  end
  return random_map(depth - 1)
end

local function equal(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b or type(a) == "number" and type(b) == "number" and math.abs(a - b) <= math.abs(a) * 2 ^ -52
  end
  for key, value in pairs(a) do
    if not equal(value, b[key]) then
      return false
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
      return false
    end
  end
  return true
end

-- Inserts random white space between the tokens.
local function spread(text)
  local out, at = {}, 1
  local spaces = { " ", "\n", "\t", "\r", "  " }
  while at <= #text do
    local stop = at
    if text:sub(at, at) == '"' then
      stop = at + 1
      while text:sub(stop, stop) ~= '"' do
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
    end
    local piece = text:sub(at, stop)
    if piece:find("^[%[%]{},:]$") and random(3) == 1 then
      piece = spaces[random(#spaces)] .. piece .. spaces[random(#spaces)]
    end
    out[#out + 1] = piece
    at = stop + 1
  end
  return table.concat(out)
end

local PIECES = {
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "0",
  "9",
  "-",
  ".",
  "e",
  "+",
  "\\u",
  "d8",
  "dc00",
  "\195",
  "\237\160\128",
  "null",
  "true",
  "\0",
  " ",
  "\n",
  "a",
  "1e308",
  "\240\159\152\128",
}

local function mutate(text)
  for _ = 1, random(3) do
    local at, kind = random(1, #text + 1), random(5)
    local before, after = text:sub(1, at - 1), text:sub(at)
    if kind == 1 then
      text = before .. after:sub(2)
    elseif kind == 2 then
      text = before .. PIECES[random(#PIECES)] .. after
    elseif kind == 3 then
      text = before .. PIECES[random(#PIECES)] .. after:sub(2)
    elseif kind == 4 then
      text = before .. string.char(random(0, 255)) .. after:sub(2)
    else
      text = before
    end
  end
  return text
end

local function check(condition, what, text)
  if not condition then
    error(("seed %d: %s: %q"):format(SEED, what, text), 0)
  end
end

-- Checks that the decoder and the reference agree on validity and the position of the fault.
local function agree(decoder, text)
  local valid, at = reference.validate(text)
  local value, message, position = decoder:decode(text)
  check((value ~= nil) == valid, "accepted or refused against the reference (" .. tostring(message) .. ")", text)
  check(position == at, ("fault at %s, the reference's at %s"):format(tostring(position), tostring(at)), text)
end

describe("random texts", function()
  before_each(function()
    math.randomseed(SEED)
  end)

  it("decode to the values they were encoded from", function()
    local decoder = core.decoder()
    for _ = 1, rounds(2000) do
      local value = { random_value(4) }
      local text = spread(cjson.encode(value))
      local decoded, message = decoder:decode(text)
      check(decoded, tostring(message), text)
      check(equal(value, decoded), "another value came back", text)
    end
  end)

  it("are valid, or have their fault at the same byte, as in the reference", function()
    local decoder = core.decoder()
    for _ = 1, rounds(6000) do
      agree(decoder, mutate(cjson.encode({ random_value(2) })))
    end
  end)

  it("that mutate the listed texts are valid or not as in the reference", function()
    local decoder = core.decoder()
    local short = {}
    for _, list in ipairs({ texts.valid, texts.invalid }) do
      for _, case in ipairs(list) do
        if #case.text < 200 then
          short[#short + 1] = case.text
        end
      end
    end
    for _ = 1, rounds(10000) do
      agree(decoder, mutate(short[random(#short)]))
    end
  end)
end)

-- Returns a record's text and its value. Most records have the same keys in the same order.
local function random_record()
  local names = { "time", "address", "network", "risks" }
  if random(8) == 1 then
    table.remove(names, random(#names))
  end
  if random(8) == 1 then
    local i, j = random(#names), random(#names)
    names[i], names[j] = names[j], names[i]
  end
  if random(8) == 1 then
    table.insert(names, random(#names + 1), KEYS[random(#KEYS)])
  end
  local members, expected = {}, {}
  for i, name in ipairs(names) do
    local kind = random(8)
    local text, value
    if kind == 1 then
      text = "null"
    elseif kind == 2 then
      text, value = '{"time":' .. i .. ',"list":[true,' .. i .. "]}", { time = i, list = { true, i } }
    else
      text, value = '"v' .. kind .. '"', "v" .. kind
    end
    members[i] = ('"%s":%s'):format(name, text)
    expected[name] = value
  end
  return "{" .. table.concat(members, ",") .. "}", expected
end

describe("similar records", function()
  it("decode to their own values", function()
    math.randomseed(SEED)
    local decoder = core.decoder()
    for _ = 1, rounds(200) do
      local records, expected = {}, {}
      for i = 1, 60 do
        records[i], expected[i] = random_record()
      end
      local text = spread('{"data":[' .. table.concat(records, ",") .. "]}")
      local decoded, message = decoder:decode(text)
      check(decoded, tostring(message), text)
      check(equal(expected, decoded.data), "another value came back", text)
    end
  end)

  it("are refused at the same byte as by a new decoder", function()
    math.randomseed(SEED)
    local decoder = core.decoder()
    for _ = 1, rounds(1500) do
      local records = {}
      for i = 1, 12 do
        records[i] = random_record()
      end
      agree(decoder, mutate("[" .. table.concat(records, ",") .. "]"))
    end
  end)
end)

-- Spells some characters of a name as escapes.
local function spell(name)
  return '"'
    .. name:gsub(".", function(char)
      return random(5) == 1 and ("\\u%04x"):format(char:byte()) or char
    end)
    .. '"'
end

-- Returns an object with random names, which follows `before` bytes of text, and the position of its first duplicate
-- name.
local function random_names(depth, before)
  local names = { "", "a", "b", ("long "):rep(8), "n" .. random(40), "n" .. random(400), "address", "time", "risks" }
  local pieces, size, seen, duplicate = { "{" }, before + 1, {}, nil
  for i = 1, random(0, 5) do
    local name = names[random(#names)]
    local start = (i > 1 and "," or "") .. spell(name) .. ":"
    if seen[name] then
      duplicate = duplicate or size + (i > 1 and 2 or 1)
    end
    seen[name] = true
    pieces[#pieces + 1], size = start, size + #start
    local value, inner = random(3) == 1 and "null" or tostring(i), nil
    if depth > 0 and random(2) == 1 then
      value, inner = random_names(depth - 1, size)
    end
    duplicate = duplicate or inner
    pieces[#pieces + 1], size = value, size + #value
  end
  pieces[#pieces + 1] = "}"
  return table.concat(pieces), duplicate
end

describe("objects with random names", function()
  it("are refused at the first duplicate name, or decode as without the check", function()
    math.randomseed(SEED)
    local strict, lax = core.decoder({ duplicates = "refuse" }), core.decoder()
    for i = 1, rounds(10000) do
      if i % 50 == 0 then
        strict = core.decoder({ duplicates = "refuse" })
      end
      local text, duplicate = random_names(3, 0)
      local value, message, position = strict:decode(text)
      check(position == duplicate, "fault at " .. tostring(position) .. ", not at " .. tostring(duplicate), text)
      check(duplicate == nil or message:find("^duplicate name"), tostring(message), text)
      check(duplicate ~= nil or equal(lax:decode(text), value), "another value came back", text)
    end
  end)
end)

describe("the listed texts", function()
  it("are valid or not as in the reference", function()
    for _, case in ipairs(texts.valid) do
      check(reference.validate(case.text), "should be valid", case.text)
    end
    for _, case in ipairs(texts.invalid) do
      local valid, position = reference.validate(case.text)
      check(not valid and position == case.position, "fault at " .. tostring(position), case.text)
    end
  end)
end)
