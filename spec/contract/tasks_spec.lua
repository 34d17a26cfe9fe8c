-- The contract over real HTTP, from a task: the call yields, and the loop drives the server meanwhile.
local contract = require "spec.contract.suite"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"

describe("the contract, in a task:", function()
  contract(function(service, options)
    local server = assert(sandbox.serve { service = service })
    options.base_url = server.url
    local client = riskscreen.new(options)
    local in_task = {}
    function in_task:call(name, parameters, call_options) -- luacheck: ignore 212
      return riskscreen.run(function()
        return client:call(name, parameters, call_options)
      end)
    end
    in_task.kyt = {}
    function in_task.kyt.screen(_, parameters)
      return riskscreen.run(function()
        return client.kyt:screen(parameters)
      end)
    end
    return in_task, function()
      client:close()
      server:close()
    end
  end)
end)
