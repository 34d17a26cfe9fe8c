-- riskscreen list update: fetches OFAC's list if it has changed. The file that was fetched is kept beside the list. One
-- that has not changed is compiled again, so that the age of the list is the age of the last look.
local core = require "riskscreen.core"
local files = require "riskscreen.util.files"
local http = require "riskscreen.options.http"
local inputs = require "riskscreen.cli.input"
local json = require "riskscreen.json"
local runtime = require "riskscreen.runtime"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MAX_REDIRECTS = 5
local CONNECT_TIMEOUT = 10 -- seconds
local FETCHED, FACTS = ".source", ".source.json" -- after the list's name: the file that was fetched, and what it was

local redirects = tables.set { 301, 302, 303, 307, 308 }

local M = { URL = "https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/SDN.XML" }

-- The checked origin of a URL, and its target; or nil and the reason.
local function split(url)
  local origin, target = url:match "^(%a[%w+.-]*://[^/?#]*)([^#]*)"
  local base, reason = nil, "must be a URL such as https://host/path"
  if origin and not target:find "[^!-~]" then
    base, reason = http.base_url(origin)
  end
  return base, base and (target:find "^/" and target or "/" .. target) or reason
end

-- The URL of a redirection from a target of an origin.
local function resolved(location, origin, target)
  if location:find "^%a[%w+.-]*:" then
    return location
  elseif location:find "^//" then
    return origin:match "^[^/]*" .. location
  elseif not location:find "^/" then
    location = target:match(location:find "^%?" and "^[^?]*" or "^[^?]*/") .. location
  end
  return origin .. location
end

-- The answer to a request, after redirects; none leads from https to http.
local function fetch(url, headers, settings)
  local is_secure = url:find "^https:" ~= nil
  for redirections = 0, MAX_REDIRECTS do
    local base, target = split(url)
    if not base and redirections > 0 then
      status.fail(status.unknown, "the service redirects to a URL that " .. target)
    elseif not base then
      status.misuse("the URL of the list " .. target) -- it may hold a password
    elseif is_secure and not base.origin:find "^https:" then
      status.fail(status.unknown, "the service redirects from https to http")
    end
    local given = { base_url = base, connect_timeout = CONNECT_TIMEOUT, concurrency = 1 }
    local send = runtime.transport(tables.merge(settings, given))
    local reply, failure = send { method = "GET", target = target, headers = headers, timeout = settings.timeout }
    if not reply then
      status.fail(status.unknown, "the list cannot be fetched: " .. tostring(failure.message or failure.kind))
    elseif not redirects[reply.status] or not reply.headers.location then
      return reply
    end
    url = resolved(reply.headers.location, base.origin, target)
  end
  status.fail(status.unknown, ("the service redirects more than %d times"):format(MAX_REDIRECTS))
end

---The files that an update writes.
---@param context riskscreen.cli.Context
---@return string[]
function M.written(context)
  local output = context.options.output
  return tables.concat(inputs.written(output), inputs.written(output .. FETCHED), inputs.written(output .. FACTS))
end

---Fetches the list's source where it has changed.
---@param output string the list
---@param url string
---@param settings { timeout: number, max_response_size: integer, proxy?: string, ca_file?: string }
---@return string path of the source, to compile
---@return boolean is_new
---@return fun() keep makes it the source of later updates
function M.fetch(output, url, settings)
  local kept = files.read(output .. FETCHED)
  local facts = kept and json.decode(files.read(output .. FACTS) or "")
  local headers = {}
  -- Only an unspoilt file may stand for the one that has not changed.
  local source = text.hex(core.sha256(url)) -- a URL may have a password or a token
  if type(facts) == "table" and facts.source == source and facts.digest == text.hex(core.sha256(kept)) then
    headers["If-None-Match"], headers["If-Modified-Since"] = facts.etag, facts.modified
  end
  local reply = fetch(url, headers, settings)
  if reply.status == 304 and next(headers) then
    return output .. FETCHED, false, function() end
  elseif reply.status ~= 200 then
    status.fail(status.unknown, ("the list cannot be fetched: the service answered %d"):format(reply.status))
  end
  local path = output .. FETCHED .. ".new"
  status.ensure_written(files.write(path, reply.body))
  facts = { source = source, digest = text.hex(core.sha256(reply.body)) }
  facts.etag, facts.modified = reply.headers.etag, reply.headers["last-modified"]
  return path,
    true,
    function()
      status.ensure_written(os.rename(path, output .. FETCHED))
      status.ensure_written(files.write(output .. FACTS, assert(json.encode(facts))))
    end
end

return M
