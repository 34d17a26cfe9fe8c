-- The certificate that a client shows: read from its files when the client is made, not while requests wait.

---@class riskscreen.cosocket.Identity
---@field certificates userdata
---@field key userdata

local M = {}

local function read(option, path)
  local file, message = io.open(path, "rb")
  if not file then
    return nil, ("%s cannot be read: %s"):format(option, message)
  end
  local content = file:read "*a"
  file:close()
  return content
end

---@param settings table a client's checked options
---@return riskscreen.cosocket.Identity|nil identity nil without a message where none is wanted
---@return string|nil message
function M.of(settings)
  if not settings.client_cert then
    return nil
  end
  local ssl = require "ngx.ssl"
  local certificate, wrong = read("client_cert", settings.client_cert)
  local key = certificate
  if certificate and settings.client_key then
    key, wrong = read("client_key", settings.client_key)
  end
  if not key then
    return nil, wrong
  end
  local identity = {}
  identity.certificates, wrong = ssl.parse_pem_cert(certificate)
  if not identity.certificates then
    return nil, "client_cert holds no certificate: " .. wrong
  end
  -- The library's words may not show what is in the file.
  identity.key = ssl.parse_pem_priv_key(key)
  if not identity.key then
    return nil, (settings.client_key and "client_key" or "client_cert") .. " holds no key that can be used"
  end
  return identity
end

return M
