-- The options of a connection to Redis.
local build = require "riskscreen.options.build"
local http = require "riskscreen.options.http"
local text = require "riskscreen.util.text"

local DEFAULT_PORT = 6379
local DEFAULT_SENTINEL_PORT = 26379
local LONGEST_PATH = 107 -- bytes, of the address of a Unix socket
local MIB = 1024 * 1024
local NOT_EMPTY = build.forms.not_empty

local WANTED = "must be a URL such as redis://host:6379/0, rediss://host or unix:/path (%s)"

local function decode(encoded)
  return text.unescape((encoded:gsub("+", "%%2B")))
end

-- A host and a port, or nil.
local function host_of(authority, default_port)
  local host, port = http.authority(authority or "")
  return host and { host = host:match "^%[(.*)%]$" or host, port = port or default_port }
end

---@class riskscreen.RedisAddress
---@field host? string
---@field port? integer
---@field path? string of a Unix socket

---@class riskscreen.RedisUrl
---@field address riskscreen.RedisAddress
---@field tls boolean
---@field database integer
---@field username? string
---@field password? string

-- The checked URL. Messages do not show it, because it may hold a password.
local function url(value)
  local path = value:match "^unix:/?/?(/[^%z?#]+)$"
  if path then
    if #path > LONGEST_PATH then
      return nil, ("must have a path of at most %d bytes"):format(LONGEST_PATH)
    end
    return { address = { path = path }, tls = false, database = 0 }
  end
  local scheme, authority, rest = value:match "^(rediss?)://([^/?#]*)(.*)$"
  if not scheme then
    return nil, WANTED:format "it begins with none of these"
  end
  local user, host = http.split_user(authority)
  local address = host_of(host, DEFAULT_PORT)
  local database = rest:match "^/?$" and "0" or rest:match "^/(%d%d?%d?%d?)$"
  if not address then
    return nil, WANTED:format "host and port are not valid; '@' in a password is %40"
  elseif not database then
    return nil, WANTED:format "after the host comes only the number of a database"
  end
  local name, password = (user or ""):match "^([^:]*):?(.*)$"
  return {
    address = address,
    tls = scheme == "rediss",
    database = tonumber(database),
    username = name ~= "" and decode(name) or nil,
    password = password ~= "" and decode(password) or nil,
  }
end

local function password(doc)
  local option = build.text("password", NOT_EMPTY, doc)
  option.type = "string|function"
  return option
end

local function sentinel_hosts(value)
  return build.list_of(value, "texts such as host:26379", function(entry)
    return type(entry) == "string" and host_of(entry, DEFAULT_SENTINEL_PORT)
  end, 1)
end

local function prefix(value)
  if not value:find "^[%w_.:-]+$" or #value > 100 then
    return nil, "must be of letters, digits, '_', '.', ':' and '-'"
  end
  return value
end

local URL_TEXT = "`redis://[user:password@]host:port/database`, `rediss://` for TLS, or `unix:/path`. With `sentinels` "
  .. "the host is not used. In a password `@` is `%40`."
local PREFIX =
  "Beginning of all keys, which other programs must not use. Keys have it in braces: one hash slot of a Cluster."

---@type riskscreen.Option[]
return {
  build.checked("url", "string", url, URL_TEXT, url "redis://127.0.0.1:6379"),
  build.text("username", NOT_EMPTY, "User of Redis' ACL; by default the one of the URL."),
  password "The password, or a function that returns it before each connection; by default the one of the URL.",
  build.seconds("timeout", 1, "Time limit of a command, without connecting."),
  build.seconds("connect_timeout", 1, "Time limit of connecting to one server."),
  build.text("ca_file", build.forms.file, "PEM file of the trusted authorities for `rediss://`."),
  build.group("sentinels", {
    build.required(build.checked("hosts", "table", sentinel_hosts, "Texts such as `host:26379`.")),
    build.required(build.text("name", NOT_EMPTY, "Name of the master that the Sentinels watch.")),
    build.text("username", NOT_EMPTY, "User of the Sentinels' ACL."),
    password "Password of the Sentinels.",
  }, "The Sentinels to ask for the master."),
  build.checked("prefix", "string", prefix, PREFIX, "riskscreen"),
  build.count("max_reply", "bytes", 64 * MIB, 1024, 1024 * MIB, "Memory that one reply may take."),
  build.count("pool_size", "connections", 32, 1, 1024, "Idle connections of each worker that nginx keeps."),
  build.seconds("keepalive", 60, "How long nginx keeps an idle connection."),
}
