-- Random numbers for jitter, and tokens that no other program has. math.random belongs to the program, and not every
-- Lua seeds it.
local optional = require "riskscreen.util.optional"
local text = require "riskscreen.util.text"

local MULTIPLIER, MODULUS = 16807, 2147483647 -- of Park and Miller; products stay exact in a double
local SOURCE = "/dev/urandom"

local system -- the module, looked for with the first token: not every program makes one; false without it

local M = {}

---A new generator, for jitter and never for secrets.
---@param seed number
---@return fun(): number at least 0, less than 1
function M.new(seed)
  local state = math.floor(seed) % (MODULUS - 1) + 1
  return function()
    state = state * MULTIPLIER % MODULUS
    return (state - 1) / (MODULUS - 1)
  end
end

---A new text from the system's random source. Two processes never have the same one, also after a fork.
---@param bytes? integer of randomness; by default 16
---@return string of hexadecimal digits, two for each byte
function M.token(bytes)
  if system == nil then
    system = optional "riskscreen.system" or false
  end
  local content = system and system.random(bytes or 16)
  if not content then
    local file = assert(io.open(SOURCE, "rb"))
    file:setvbuf "no"
    content = file:read(bytes or 16)
    file:close()
  end
  return text.hex(content)
end

---A seed that differs between processes and between clients.
---@return number
function M.seed()
  return tonumber(M.token(4), 16)
end

---A generator with a seed of its own. That of a forked child begins anew.
---@return fun(): number at least 0, less than 1
function M.jitter()
  local owner, generate = {}, nil
  return function()
    local is_forked = require "riskscreen.util.forked" -- only a program with a client loads it
    if is_forked(owner) or not generate then
      local ok, seed = pcall(M.seed) -- needs a descriptor where the core is not compiled
      generate = M.new(ok and seed or os.time())
    end
    return generate()
  end
end

return M
