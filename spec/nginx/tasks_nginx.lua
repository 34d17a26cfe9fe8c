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

each_inside_nginx("spec/task_spec.lua", {
  ["run refuses a task that yields by itself"] = "nginx resumes it",
  ["run refuses a wait that can never end"] = "nginx cannot know",
  ["is a place where waits block, and nothing after it is"] = "no wait blocks",
  ["a failure that nobody awaits is reported once"] = "it is in nginx's log",
  ["the loop resumes tasks from step alone"] = "nginx drives everything",
  ["the loop leaves for the next step what does not fit its budget"] = "nginx drives everything",
})
each_inside_nginx "spec/map_spec.lua"
each_inside_nginx("spec/pages_spec.lua", {
  ["pages fetched ahead are asked for anew when the list became shorter"] = "how many are under way by then differs",
})
each_inside_nginx("spec/bulk_spec.lua", HTTP)
each_inside_nginx("spec/screen_spec.lua", {
  ["over HTTP"] = HTTP["over HTTP"],
  ["bounds its connections, however many"] = HTTP["over HTTP"],
})
each_inside_nginx "spec/hedge_spec.lua"
each_inside_nginx "spec/limiter_spec.lua"
each_inside_nginx("spec/attempts_spec.lua", {
  ["a client's circuit breaker is off unless it is asked for"] = "nginx has it on",
})
each_inside_nginx "spec/client_spec.lua"
each_inside_nginx "spec/client_hooks_spec.lua"
each_inside_nginx "spec/kyt_spec.lua"
each_inside_nginx "spec/kyt/pending_spec.lua"
each_inside_nginx "spec/inbox_spec.lua"
