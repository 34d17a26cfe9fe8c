-- The contract over real HTTP, blocking: the call that waits also drives the server in the same process.
local contract = require "spec.contract.suite"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"

describe("the contract, over HTTP:", function()
  contract(function(service, options)
    local server = assert(sandbox.serve { service = service })
    options.base_url = server.url
    local client = riskscreen.new(options)
    return client, function()
      client:close()
      server:close()
    end
  end)
end)
