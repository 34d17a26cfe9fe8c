-- Injection into requests, from a plain Lua program.
local attack = require "spec.injection.attack"
local native_driver = require "spec.support.native_driver"
local peer = require "spec.support.peer"
local suite = require "spec.injection.suite"

local ANSWER =
  peer.response('{"success":true,"code":1,"msg":"SUCCESS","data":{}}', "Content-Type: application/json\r\n")

local function server()
  return peer.tcp(native_driver, function(connection)
    connection:send(ANSWER)
  end)
end

suite(function()
  local target = server()
  local attacks = attack(target.url)
  target:close()
  return attacks, target.requests
end)
