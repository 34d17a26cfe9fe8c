-- The contract over the sandbox's in-process transport.
local contract = require "spec.contract.suite"
local sandbox = require "riskscreen.sandbox"

describe("the contract, in-process:", function()
  contract(function(service, options)
    options.service = service
    -- No time passes: a delay is longer than the timeout or it is not.
    options.sleep = function() end
    local client = sandbox.client(options)
    return client, function()
      client:close()
    end
  end)
end)
