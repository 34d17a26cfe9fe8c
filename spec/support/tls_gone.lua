-- Two requests over TLS, in a process of its own, because a server that has left may cause SIGPIPE. The environment
-- names the server's socket, its authorities and the command that ends it between the requests. Prints the status of
-- the first and the kind of the second's failure.
local core = require("riskscreen.core")

local loop = core.loop({})
local origin = loop:origin({
  base_url = "https://localhost",
  unix_socket = assert(os.getenv("SOCKET")),
  ca_file = assert(os.getenv("CA")),
})

local function result()
  local transfer = origin:send("GET", "/", nil, 20)
  while not loop:done(transfer) do
    loop:step()
  end
  return loop:take(transfer)
end

print((result()))
os.execute(assert(os.getenv("STOP")))
print(select(2, result()).kind)
