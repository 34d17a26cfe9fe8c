-- Injection into requests, from inside nginx.
local native_driver = require "spec.support.native_driver"
local nginx = require "spec.support.nginx"
local peer = require "spec.support.peer"
local suite = require "spec.injection.suite"

local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{}}'
local ANSWER = peer.response(BODY, "Content-Type: application/json\r\n")

suite(function()
  local target = peer.tcp(native_driver, function(connection)
    connection:send(ANSWER)
  end)
  local server = nginx.start {}
  local attacks = server:eval('return require("spec.injection.attack")(...)', target.url)
  server:stop()
  target:close()
  return attacks, target.requests
end)
