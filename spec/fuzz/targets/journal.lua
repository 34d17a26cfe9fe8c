-- Any bytes as the file of a journal. `verify` may call it whole only if every line has its hash and follows the line
-- before. Reading, replaying and going on with it must not raise anything but the library's errors.
local core = require "riskscreen.core"
local errors = require "riskscreen.errors"
local journals = require "riskscreen.journal"
local policies = require "riskscreen.policy"

local path = os.tmpname()
local policy = policies.new()

local function write(bytes)
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
end

local function hex(bytes)
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

-- Whether the chain holds, found out in another way than the library's.
local function is_whole(bytes)
  local previous, count = nil, 0
  for line in bytes:gmatch "([^\n]*)\n" do
    local content, hash = line:match '^(.*),"hash":"(%x+)"}$'
    local prev = content and content:match ',"prev":"(%x+)"$'
    if not prev or hex(core.sha256(content)) ~= hash or (previous and prev ~= previous) then
      return false
    end
    previous, count = hash, count + 1
  end
  return bytes == "" or (bytes:sub(-1) == "\n" and count > 0)
end

local function contained(fn)
  local ok, err = pcall(fn)
  assert(ok or errors.is(err), tostring(err))
end

return function(bytes)
  write(bytes)
  local report = assert(journals.verify { path })
  assert(not report.ok or is_whole(bytes), "a broken chain is called whole")
  assert(report.ok == (report.faults[1] == nil), "faults and ok differ")
  contained(function()
    for _ in journals.entries { path } do -- luacheck: ignore 542
    end
  end)
  contained(function()
    for row in journals.replay({ path }, policy) do
      assert(not row.changed or row.after, "changed without an action")
    end
  end)
  os.remove(path .. ".head")
  local journal, err = journals.file(path, { sync = false })
  assert(journal or errors.is(err), "no journal and no error")
end
