-- Mutations of the answers in wire.lua: bytes that no list of cases names.
local random = require "spec.support.random"
local wire = require "spec.support.wire"

local LONGEST = 2048 -- bytes of an answer that is changed

-- Texts that are put into an answer, or in place of some of its bytes.
local DAMAGE = {
  "\r",
  "\n",
  "\r\n",
  "\r\n\r\n",
  "\n\n",
  "\0",
  " ",
  "\t",
  ":",
  ";",
  ",",
  "0",
  "1",
  "7",
  "8",
  "f",
  "-",
  "+",
  "{",
  "}",
  '"',
  "\127",
  "\255",
  "HTTP/1.1 200 OK\r\n",
  "HTTP/2 200 \r\n",
  "HTTP/1.1 100 \r\n\r\n",
  "Content-Length: 7\r\n",
  "Content-Length: 1\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding: gzip\r\n",
  "Content-Encoding: gzip\r\n",
  "Content-Encoding: identity\r\n",
  "Connection: close\r\n",
  "0\r\n\r\n",
  "1\r\n8\r\n",
  '{"a":2}',
  "\r\n ",
  ";x=\r\n",
  "",
}

local sources = {}
for _, case in ipairs(wire.cases) do
  if #case.bytes <= LONGEST and #case.bytes > 0 and not case.method then
    sources[#sources + 1] = case
  end
end

local M = {}

local function changed(text, numbers)
  local from = numbers.integer(#text + 1)
  local kind = numbers.integer(8)
  if kind == 1 then
    return text:sub(1, from - 1)
  elseif kind == 2 then
    local other = numbers.pick(sources).bytes
    return text:sub(1, from - 1) .. other:sub(numbers.integer(#other))
  elseif kind == 3 then
    return text:sub(1, from - 1) .. string.char(numbers.integer(256) - 1) .. text:sub(from + 1)
  elseif kind == 4 then
    local to = from + numbers.integer(20)
    return text:sub(1, to) .. text:sub(from)
  end
  return text:sub(1, from - 1) .. numbers.pick(DAMAGE) .. text:sub(from + numbers.integer(4) - 1)
end

---@param count integer
---@param seed integer
---@return table[] cases with bytes alone
function M.make(count, seed)
  local numbers, list = random.new(seed), {}
  for index = 1, count do
    local text = numbers.pick(sources).bytes
    for _ = 1, numbers.integer(3) do
      text = changed(text, numbers)
    end
    list[index] = { bytes = text }
  end
  return list
end

return M
