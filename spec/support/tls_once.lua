-- One request over TLS in a process of its own, because OpenSSL reads its configuration once. The environment names the
-- socket, the authorities and perhaps the client's certificate. Prints the failure or the status.
local driver = require("spec.support.driver")

local drive = driver.new()
local origin = drive.loop:origin({
  base_url = "https://localhost",
  unix_socket = assert(os.getenv("SOCKET")),
  ca_file = assert(os.getenv("CA")),
  client_cert = os.getenv("CERT"),
  client_key = os.getenv("KEY"),
})
local result, failure = drive:result(origin:send("GET", "/", nil, 20))
if failure then
  print(("%s %s %s %s"):format(failure.kind, failure.phase, tostring(failure.sent), failure.message))
else
  print(result.status)
end
