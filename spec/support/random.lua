-- A generator of numbers that are the same in every run and on every Lua.

-- The first seed of a spec with random inputs: the same in each run of the specs, and new in each `./dev fuzz`.
-- A failure shows its seed, and RISKSCREEN_SEED repeats it.
local M = { SEED = tonumber(os.getenv "RISKSCREEN_SEED") or 1 }

local quick = _VERSION ~= "Lua 5.4" or os.getenv "RISKSCREEN_QUICK_ROUNDS"

---The rounds of a spec with random inputs. Lua 5.4 runs all. A quarter shows where another Lua differs, and is enough
---for the sanitizers, with which the fuzzers run as well.
---@param count integer on Lua 5.4
---@return integer
function M.rounds(count)
  return quick and math.ceil(count / 4) or count
end

---@param seed integer
---@return { integer: (fun(limit: integer): integer), pick: (fun(list: any[]): any) }
function M.new(seed)
  local state = seed % 2147483647
  local self = {}

  -- From 1 to `limit`. Lehmer's generator: the products stay within a double's exact integers.
  function self.integer(limit)
    state = (state * 48271 + 11) % 2147483647
    return state % limit + 1
  end

  function self.pick(list)
    return list[self.integer(#list)]
  end

  return self
end

return M
