-- Any bytes as the file of a journal; those after the last zero byte, if there is one, are its head file. `verify` may
-- call it whole only if every line has its hash and follows the line before. Reading, replaying and going on with it
-- must not raise anything but the library's errors.
local core = require "riskscreen.core"
local errors = require "riskscreen.errors"
local journals = require "riskscreen.journal"
local policies = require "riskscreen.policy"

local path = os.tmpname()
local policy = policies.new()
local decision = policy:decide { risk = { whitelist = false, risks = {} } }

local function write(name, bytes)
  local file = assert(io.open(name, "wb"))
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

local function check_report(report, bytes)
  assert(not report.ok or is_whole(bytes), "a broken chain is called whole")
  assert(report.ok == (report.faults[1] == nil), "faults and ok differ")
  for _, fault in ipairs(report.faults) do
    assert(type(fault.message) == "string", "a fault without a message")
  end
end

-- A journal that goes on stays as whole as it was.
local function go_on(was_ok)
  local journal, err = journals.file(path, { sync = false, on_failure = function() end })
  if not journal then
    assert(errors.is(err), "no journal and no error")
    return
  end
  local id, failure = journal:append(decision)
  assert(id or errors.is(failure), "no line and no error")
  local report = assert(journals.verify { path })
  assert(not (was_ok and id) or report.ok, "a whole journal is broken by its next line")
  journal:close()
end

return function(input)
  local bytes, head = input:match "^(.*)%z([^%z]*)$"
  bytes = bytes or input
  write(path, bytes)
  os.remove(path .. ".head")
  local report = assert(journals.verify { path })
  check_report(report, bytes)
  contained(function()
    for _ in journals.entries { path } do -- luacheck: ignore 542
    end
  end)
  contained(function()
    for row in journals.replay({ path }, policy) do
      assert(not row.changed or row.after, "changed without an action")
    end
  end)
  if head then
    write(path .. ".head", head)
    check_report(assert(journals.verify(path)), bytes)
  end
  go_on(report.ok)
end
