-- Writes numbered rows to the store at arg[1], a path or Redis' URL, and prints each number when the store has it.
-- arg[2]: "lock" takes the lock and waits to be killed; "limit" writes until the store fails; a number is the row after
-- which it ends.

local riskscreen = require "riskscreen"

io.stdout:setvbuf "no"
local store = require "spec.support.any_store"(arg[1])
local rows, state = store:space "rows", store:space "state"

if arg[2] == "lock" then
  assert(store:lock "run")
  print "locked"
  while true do
    riskscreen.sleep(60)
  end
end

assert(store:lock "run")
local last = tonumber(arg[2]) or math.huge
local number = tonumber(state:get "last" or "0")
while number < last do
  local made, err = store:batch {
    { kind = "add", space = "rows", key = ("%08d"):format(number + 1), value = ("v"):rep(number % 700) },
    number == 0 and { kind = "add", space = "state", key = "last", value = "1" } or {
      kind = "replace",
      space = "state",
      key = "last",
      value = tostring(number + 1),
      expected = tostring(number),
    },
  }
  if not made then
    print("failed " .. (err and err.reason or "condition"))
    break
  end
  number = number + 1
  print("made " .. number)
end
local total = rows:count()
store:close()
print("total " .. total)
