-- Random numbers for jitter, and tokens that no two programs share; never secrets. math.random belongs to the program,
-- and not every Lua seeds it.

local MULTIPLIER, MODULUS = 16807, 2147483647 -- of Park and Miller; products stay exact in a double

local TOKEN = 16 -- bytes of the system's random source

local M = {}

---A new generator.
---@param seed number
---@return fun(): number at least 0, less than 1
function M.new(seed)
  local state = math.floor(seed) % (MODULUS - 1) + 1
  return function()
    state = state * MULTIPLIER % MODULUS
    return (state - 1) / (MODULUS - 1)
  end
end

---A seed that differs between processes and between clients. It mixes two times and the address of a new table.
---@param now number seconds with fractions
---@return number
function M.seed(now)
  local seed = os.time() % MODULUS
  for byte in tostring({}):gmatch "%x" do
    seed = (seed * 31 + byte:byte()) % MODULUS
  end
  return (seed + math.floor(now * 1e6)) % MODULUS
end

---A text of 32 hexadecimal digits that no other call returns, in this program or another.
---@return string
function M.token()
  local source = assert(io.open("/dev/urandom", "rb"))
  source:setvbuf "no"
  local bytes = source:read(TOKEN)
  source:close()
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

return M
