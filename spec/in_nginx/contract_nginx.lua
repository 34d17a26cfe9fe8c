-- The contract inside nginx, called from a request and from a task of one. The sandbox is served by this process.
local contract = require "spec.contract.suite"
local errors = require "riskscreen.errors"
local nginx = require "spec.support.nginx"
local sandbox = require "riskscreen.sandbox"

local CALL = "return require('spec.support.nginx_calls').call(...)"
local CLOSE = "require('spec.support.nginx_calls').close(...)"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

for _, way in ipairs { { name = "in a request" }, { name = "in a task", in_task = true } } do
  describe("the contract, inside nginx " .. way.name .. ":", function()
    local server
    local last_id = 0

    setup(function()
      server = nginx.start {}
    end)

    teardown(function()
      server:stop(nginx.BROKEN_CONNECTIONS)
    end)

    contract(function(service, options)
      local its_server = assert(sandbox.serve { service = service })
      options.base_url = its_server.url
      last_id = last_id + 1
      local id = last_id
      local client = {}
      function client:call(operation, parameters, call_options) -- luacheck: ignore 212
        local told = server:eval(CALL, {
          id = id,
          options = options,
          operation = operation,
          parameters = parameters,
          call_options = call_options,
          in_task = way.in_task,
        })
        local results = { told.value, told.response }
        if told.err then
          results = { nil, errors.new(told.err.kind, told.err.message, told.err) }
        end
        return unpack(results, 1, told.n)
      end
      client.kyt = {}
      function client.kyt.screen(_, parameters)
        return client:call("kyt:screen", parameters)
      end
      return client, function()
        server:eval(CLOSE, id)
        its_server:close()
      end
    end)
  end)
end
