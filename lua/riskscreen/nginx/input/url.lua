-- Sources in the URL: a parameter of the query, a segment of the path. A URL that two programs could read in two ways
-- is a problem. A value in the query is found by parameters.lua.
local parameters = require "riskscreen.nginx.input.parameters"
local unescape = require("riskscreen.util.text").unescape

local ngx = _G.ngx
local find = string.find

-- Whether nginx has cut the URL at a "#". The application behind it may take the rest for a part of the URL.
local function is_cut()
  return find(ngx.var.request_uri, "#", 1, true) ~= nil
end

local CUT = "a URL with '#' can be read in two ways"

local M = {}

---A reader of a parameter of the query. It also returns the query, so that the reader of a second parameter need not
---ask nginx again: that is most of the work.
---@param name string
---@return fun(query: string|nil): string|nil, string|nil, string|nil
function M.argument(name)
  local place = "the argument " .. name
  local read = parameters.reader(name)
  return function(query)
    if not query and is_cut() then
      return nil, CUT
    end
    query = query or ngx.var.args or ""
    local value, problem = read(query)
    return value, problem and (place .. " " .. problem), query
  end
end

-- Whether the path means the same before and after nginx has normalised it, and after another program has done so once
-- more. Some programs decode it again, cut a segment at ";", or accept overlong UTF-8 for ".".
local function is_plain(path)
  local lower = path:lower()
  return not (lower:find "%%2[5ef]" or lower:find "%%3b" or lower:find "%%5c")
    and not parameters.is_overlong(unescape(path))
    and not (lower:find "[;\\]" or lower:find("//", 1, true))
    and not (lower:find "/%.%.?[^%w]" or lower:find "/%.%.?$")
end

---Whether the path can be read in two ways.
---@return boolean
function M.is_doubtful()
  return is_cut() or not is_plain(ngx.var.request_uri:match "^[^?]*")
end

---A reader of a segment of the path.
---@param position integer
---@return riskscreen.nginx.Reader
function M.path_segment(position)
  local place = ("segment %d of the path"):format(position)
  return function()
    if M.is_doubtful() then
      return nil, place .. " is in a path that can be read in two ways"
    end
    local count = 0
    for segment in ngx.var.uri:gmatch "[^/]+" do
      count = count + 1
      if count == position then
        return segment
      end
    end
    return nil, place .. " is missing"
  end
end

return M
