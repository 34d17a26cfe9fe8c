-- Numbers for jitter, from a generator of one's own: math.random is the program's, and not seeded in every Lua. Nothing
-- secret may come from here.

local MULTIPLIER, MODULUS = 16807, 2147483647 -- of Park and Miller; products stay exact in a double

local M = {}

---A generator.
---@param seed number
---@return fun(): number from 0 up to 1
function M.new(seed)
  local state = math.floor(seed) % (MODULUS - 1) + 1
  return function()
    state = state * MULTIPLIER % MODULUS
    return (state - 1) / (MODULUS - 1)
  end
end

---A seed that differs between processes and between clients: of two times and of where a new table lies in memory.
---@param now number seconds with fractions
---@return number
function M.seed(now)
  local seed = os.time() % MODULUS
  for byte in tostring({}):gmatch "%x" do
    seed = (seed * 31 + byte:byte()) % MODULUS
  end
  return (seed + math.floor(now * 1e6)) % MODULUS
end

return M
