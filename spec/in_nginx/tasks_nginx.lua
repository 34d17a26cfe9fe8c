-- The specs of tasks, and of what is made of tasks, inside nginx: the same examples as everywhere.
local nginx = require "spec.support.nginx"
local shadow = require "spec.support.shadow"

local function each_inside_nginx(path, without)
  describe(path .. ", inside nginx:", function()
    local server

    setup(function()
      server = nginx.start {}
    end)

    teardown(function()
      server:stop()
    end)

    shadow.state(path, function()
      return server
    end, without)
  end)
end

local HTTP = { ["over HTTP"] = "nginx serves no sandbox" }

each_inside_nginx("spec/unit/runtime/tasks_spec.lua", {
  ["run refuses a task that yields by itself"] = "nginx resumes it",
  ["run refuses a wait that can never end"] = "nginx cannot know",
  ["makes waits block only until it returns"] = "no wait blocks",
  ["in a function that a function of C calls a task's wait blocks"] = "no wait blocks",
  ["in a pcall, a task that is started is a child"] = "nginx starts none inside a function of C",
  ["a failure that nobody awaits is reported once"] = "it is in nginx's log",
  ["the loop resumes tasks in step only"] = "nginx drives everything",
  ["the loop leaves work beyond its budget to the next step"] = "nginx drives everything",
})
each_inside_nginx "spec/unit/client/map_spec.lua"
each_inside_nginx "spec/unit/client/pages_spec.lua"
each_inside_nginx("spec/unit/client/bulk_spec.lua", HTTP)
each_inside_nginx("spec/unit/client/screen_spec.lua", {
  ["over HTTP"] = HTTP["over HTTP"],
  ["does not show such a key in a journal"] = "it makes a file with lfs, which writes a global variable",
  ["ends with the failure of a task that it has spawned"] = "a transport has a thread of its own",
})
each_inside_nginx("spec/unit/client/screen_all_spec.lua", {
  ["over HTTP"] = HTTP["over HTTP"],
  ["bounds its connections"] = HTTP["over HTTP"],
})
each_inside_nginx "spec/unit/call/hedge_spec.lua"
each_inside_nginx "spec/unit/call/limiter/init_spec.lua"
each_inside_nginx("spec/unit/call/init_spec.lua", {
  ["a client's circuit breaker is off by default"] = "nginx has it on",
})
each_inside_nginx "spec/unit/client/init_spec.lua"
each_inside_nginx "spec/unit/call/client_hooks_spec.lua"
each_inside_nginx "spec/unit/kyt/init_spec.lua"
each_inside_nginx "spec/unit/kyt/await_spec.lua"
each_inside_nginx("spec/unit/webhook/inbox_spec.lua", {
  ["answers a delivery also where on_failure raises"] = "the failures are in nginx's log",
})
