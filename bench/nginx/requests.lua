-- Run by wrk: makes the requests and prints the result. Addresses are taken in turn from a number of different ones, or
-- each is new. Usage: wrk -s requests.lua URL -- PATH NUMBER_OF_THE_FIRST [DIFFERENT]. FIRST is below DIFFERENT.

local wrk = _G.wrk

local FORM = "%s?address=0x%08x%08x%08x%08x%08x&network=eth"

local BETWEEN_THREADS = 500000 -- addresses: no two threads ask for the same one

local path, number, last, first

-- A random address. LuaJIT's hash of a long text may ignore its last digits.
local function request_of(number_of_address)
  local a = (number_of_address * 1664525 + 1013904223) % 2 ^ 32
  local b = (a * 69069 + 1) % 2 ^ 32
  local c = (b * 69069 + 1) % 2 ^ 32
  local d = (c * 69069 + 1) % 2 ^ 32
  return wrk.format("GET", FORM:format(path, a, b, c, d, number_of_address))
end

local function fill(different)
  local list = {}
  for index = 1, different do
    list[index] = request_of(index)
  end
  return list
end

local prepared

local threads = 0

function _G.setup(thread)
  thread:set("index", threads)
  threads = threads + 1
end

function _G.init(arguments)
  path, first = arguments[1], tonumber(arguments[2])
  last = tonumber(arguments[3])
  first = last and first or first + _G.index * BETWEEN_THREADS
  number = last and first or 0
  prepared = last and fill(last)
end

function _G.request()
  number = number + 1
  if not prepared then
    return request_of(first + number)
  elseif number > last then
    number = 1
  end
  return prepared[number]
end

-- Times are in microseconds.
function _G.done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout
  local figures = { summary.requests, summary.duration, errors.status, failed }
  figures[5], figures[6] = latency:percentile(50), latency:percentile(99)
  io.write("figures ", table.concat(figures, " "), "\n")
end
