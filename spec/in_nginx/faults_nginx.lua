-- The fault matrix inside nginx: every fault with every class of operation, called from a request and from a task of
-- one. The servers with the faults are in this process.
local busted = require "busted"
local cell = require "spec.faults.cell"
local classes = require "spec.faults.classes"
local errors = require "riskscreen.errors"
local expectation = require "spec.faults.expectation"
local fault_server = require "spec.support.fault_server"
local faults = require "spec.faults.faults"
local native = require "riskscreen.runtime.native"
local nginx = require "spec.support.nginx"

local assert, describe, it, setup, teardown = busted.assert, busted.describe, busted.it, busted.setup, busted.teardown

local MOST_KEPT = 32 -- descriptors: connections of this process to nginx, and what nginx has not yet seen closed

local server
local last_id = 0

setup(function()
  server = nginx.start { http = ("lua_ssl_trusted_certificate %s;"):format(fault_server.authority()) }
end)

teardown(function()
  assert.is_nil(server:log():find(cell.key, 1, true))
  server:stop(nginx.BROKEN_CONNECTIONS)
  fault_server.stop_tls()
end)

-- An error as it was inside nginx.
local function revived(told)
  if told.strange then
    return told
  end
  return errors.new(told.kind, told.message, told)
end

-- The results of the call inside nginx.
local function results_of(told)
  assert(not told.leaked, "the key is in what was returned")
  if told.decision then
    for index, err in ipairs(told.decision.errors) do
      told.decision.errors[index] = revived(err)
    end
    return told.decision
  elseif told.err then
    return nil, revived(told.err)
  end
  return true, {}
end

local position_of = {}
for position, class in ipairs(classes) do
  position_of[class] = position
end

-- A client inside nginx.
local function inside(in_task)
  return function(given)
    last_id = last_id + 1
    local id = last_id
    local options = cell.options(given)
    -- The trusted authorities are set in nginx's configuration.
    options.ca_file = nil
    return {
      call = function(class, timeout)
        local asked = {
          id = id,
          options = options,
          key = cell.key,
          class = position_of[class],
          timeout = timeout,
          in_task = in_task,
        }
        return results_of(server:eval("return require('spec.support.nginx_faults').call(...)", asked))
      end,
      close = function()
        server:eval("require('spec.support.nginx_faults').close(...)", id)
      end,
    }
  end
end

local function count_descriptors()
  return server:eval "return require('spec.support.nginx_faults').count_descriptors()"
end

for _, way in ipairs { { name = "a request", in_task = false }, { name = "a task", in_task = true } } do
  local first
  for _, general in ipairs(faults) do
    local fault = cell.over_cosockets(general)
    describe(("%s in %s inside nginx:"):format(fault.name, way.name), function()
      local outcomes = {}
      local kept

      setup(function()
        first = first or count_descriptors()
        local bodies = {}
        for _, class in ipairs(classes) do
          bodies[#bodies + 1] = cell.applies(fault, class)
              and function()
                outcomes[class] = cell.run(fault, class, inside(way.in_task))
              end
            or nil
        end
        native.tasks.gather(bodies)
        kept = count_descriptors() - first
      end)

      for _, class in ipairs(classes) do
        if cell.applies(fault, class) then
          local expected = cell.expected(fault, class)
          it(class.name .. expectation.summary(expected), function()
            expectation.check(expected, class, outcomes[class])
          end)
        end
      end

      it("leaves nothing behind", function()
        assert.is_true(kept <= MOST_KEPT, kept .. " descriptors more than at the beginning")
      end)
    end)
  end
end
