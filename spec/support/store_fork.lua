-- A child of a fork writes to a store, after its parent has closed its own: store_fork.lua PATH inherited|new
local fork = require "spec.support.fork"
local riskscreen = require "riskscreen"

local path, way = arg[1], arg[2]

local store = assert(riskscreen.store.sqlite(path))
assert(store:space("a"):put("parent", "parent"))
local pid = fork.fork()
if pid == 0 then
  local own = way == "new" and assert(riskscreen.store.sqlite(path)) or store
  assert(own:space("a"):get "parent")
  while store:space("b"):get "closed" == nil do
    os.execute "sleep 0.01"
  end
  assert(own:space("a"):put("child", "child"))
  os.exit(0)
end
assert(store:space("b"):put("closed", "yes"))
store:close()
assert(fork.wait(pid) == 0)
