-- The inputs that the fuzzers of Lua code start from, and those that once found something, on this Lua.
local function names_in(directory)
  local names, list = {}, assert(io.popen("ls " .. directory))
  for name in list:lines() do
    names[#names + 1] = name
  end
  list:close()
  return names
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  return bytes
end

local targets = {
  "response",
  "policy",
  "webhook",
  "verdict",
  "shared_verdict",
  "journal",
  "lists",
  "rows",
  "report",
  "encoder",
  "redis_wire",
}
for _, target in ipairs(targets) do
  describe("the fuzzer of " .. target, function()
    local run = require("spec.fuzz.targets." .. target)
    local directory = "spec/fuzz/corpus/" .. target
    for _, name in ipairs(names_in(directory)) do
      it("finds nothing wrong with " .. name, function()
        run(read(directory .. "/" .. name))
      end)
    end
  end)
end
