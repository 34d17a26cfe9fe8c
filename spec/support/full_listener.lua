-- A listener whose backlog is full: further connection requests go unanswered.

local socket = require("socket")

local M = {}

---@return { url: string, close: fun(self) }
function M.start()
  local listener = socket.tcp()
  assert(listener:bind("127.0.0.1", 0))
  assert(listener:listen(0))
  local port = select(2, listener:getsockname())
  local filling = {}
  for i = 1, 4 do
    filling[i] = socket.tcp()
    filling[i]:settimeout(0)
    filling[i]:connect("127.0.0.1", port)
  end
  local listening = { url = "http://127.0.0.1:" .. port }
  function listening.close()
    for _, client in ipairs(filling) do
      client:close()
    end
    listener:close()
  end
  return listening
end

return M
