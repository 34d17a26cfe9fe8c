-- The TLS handshake of a cosocket: what nginx and lua-resty-core say of it, told apart. Verification is never left out.
local find, match = string.find, string.match

-- Failures that say nothing about a certificate.
local unverified = { ["handshake failed"] = true, closed = true, timeout = true }

-- Of a handshake that is over at once, as with a peer on the same machine, lua-resty-core does not return that the
-- certificate was refused: it returns true when it shall keep no session, and it raises when it may. It may.
local function attempt(sock, server_name)
  local ran, session, reason = pcall(sock.sslhandshake, sock, nil, server_name, true)
  if not ran then
    return false, "the certificate was refused"
  elseif type(session) == "cdata" then
    return true
  end
  reason = reason or "handshake failed"
  -- Before a failure that comes at once there may stand the number of an earlier one.
  local words = match(reason, "^%d+: (.*)$")
  return false, words and unverified[words] and words or reason
end

-- What the operator may have forgotten where the issuer is not known: the errors 18 to 22 of X.509.
local function hint_of(reason)
  local unknown = find(reason, "^1[89]: ") or find(reason, "^2[0-2]: ")
  return unknown and "; lua_ssl_trusted_certificate and lua_ssl_verify_depth say whom nginx trusts" or ""
end

---Shakes hands with a peer.
---@param sock table whose time-outs are set
---@param peer riskscreen.cosocket.Peer
---@return boolean done
---@return string|nil reason of a connection that was lost
---@return string|nil distrust what is wrong with the certificate
return function(sock, peer)
  if peer.identity then
    sock:setclientcert(peer.identity.certificates, peer.identity.key)
  end
  local done, reason = attempt(sock, peer.server_name)
  if done or unverified[reason] or not (find(reason, "certificate", 1, true) or find(reason, "^%d+: ")) then
    return done, reason
  end
  return false, nil, ("(%s)%s"):format(reason, hint_of(reason))
end
