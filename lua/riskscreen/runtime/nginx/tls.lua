-- The TLS handshake of nginx's cosockets, for HTTP and Redis.
local find, match = string.find, string.match

-- Handshake failures that say nothing about a certificate.
local connection_failures = { ["handshake failed"] = true, closed = true, timeout = true }

local M = {}

---Shakes hands. A handshake may end at once with a refused certificate. Then lua-resty-core raises if it may keep the
---session, and returns true if it may not. So it may keep it.
---@param sock table a connected cosocket
---@param server_name string that the certificate must have
---@return boolean done
---@return string|nil reason
---@return boolean|nil is_refused the certificate is refused
function M.shake_hands(sock, server_name)
  local ran, session, reason = pcall(sock.sslhandshake, sock, nil, server_name, true)
  if not ran then
    return false, "the certificate was refused", true
  elseif type(session) == "cdata" then
    return true
  end
  reason = reason or "handshake failed"
  -- A failure at once may have the number of an earlier failure before it.
  local words = match(reason, "^%d+: (.*)$")
  reason = words and connection_failures[words] and words or reason
  local is_about_certificate = find(reason, "certificate", 1, true) or find(reason, "^%d+: ")
  return false, reason, is_about_certificate ~= nil and not connection_failures[reason]
end

return M
