-- Inside nginx: the decoder that does without the core against the core; where that is not, against the reader alone.
local cjson_decoder = require "riskscreen.json.cjson_decoder"
local parity = require "spec.support.json_parity"
local random = require "spec.support.random"
local reader = require "riskscreen.json.reader"
local texts = require "spec.support.json_texts"

local PIECES = { '"', "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "\\u", "d8", "\195", "null", "\0", " " }

local reader_alone = {
  decode = function(text)
    return reader.read {
      text = text,
      depth = 0,
      max_depth = 512,
      values_left = 1000000,
      keep_null = false,
      null = cjson_decoder.null,
      empty_array_mt = cjson_decoder.empty_array_mt,
    }
  end,
  empty_array_mt = cjson_decoder.empty_array_mt,
}

local function reference()
  local has_core, core = pcall(require, "riskscreen.core")
  return has_core and parity.side(core) or reader_alone
end

local function changed(generator, text)
  for _ = 1, generator.integer(3) do
    local at = generator.integer(#text + 1)
    local piece = generator.integer(2) == 1 and generator.pick(PIECES) or string.char(generator.integer(256) - 1)
    text = text:sub(1, at - 1) .. piece .. text:sub(at + generator.integer(3) - 1)
  end
  return text
end

---@class riskscreen.spec.JsonRun
---@field seeds string[] texts to compare, and to change and compare
---@field rounds integer how many changed ones
---@field seed integer

---Compares the listed texts, the given ones, and changed ones.
---@param run riskscreen.spec.JsonRun
---@return string[] differences
---@return integer compared
---@return integer quick how many of them lua-cjson read
return function(run)
  local generator = random.new(run.seed)
  local left, right = reference(), parity.side(cjson_decoder)
  local read_quickly = cjson_decoder.decoder().read_quickly
  local differences, compared, quick = {}, 0, 0

  local function compare(text)
    compared = compared + 1
    quick = quick + (read_quickly(text) and 1 or 0)
    differences[#differences + 1] = parity.difference(left, right, text)
  end

  local seeds = run.seeds
  for _, list in ipairs { texts.valid, texts.invalid } do
    for _, case in ipairs(list) do
      compare(case.text)
      compare("[" .. case.text .. "]")
      seeds[#seeds + 1] = #case.text < 300 and case.text or nil
    end
  end
  for depth = 510, 514 do
    compare(("["):rep(depth) .. "1" .. ("]"):rep(depth))
    compare(('{"a":'):rep(depth) .. "1" .. ("}"):rep(depth))
  end
  for _, seed in ipairs(seeds) do
    compare(seed)
  end
  for _ = 1, run.rounds do
    compare(changed(generator, generator.pick(seeds)))
  end
  return differences, compared, quick
end
