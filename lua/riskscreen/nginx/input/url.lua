-- Sources in the URL: a parameter of the query, a segment of the path. A URL that two programs could read in two ways
-- is a problem. A value in the query is found by parameters.lua. A reader gets what another server asks for
-- (answer.lua), and then reads the URL that this server names.
local parameters = require "riskscreen.nginx.input.parameters"
local unescape = require("riskscreen.util.text").unescape

local ngx = _G.ngx
local find = string.find

---@class riskscreen.nginx.Asked the request that another server asks about
---@field uri riskscreen.nginx.Reader of its path and query
---@field method riskscreen.nginx.Reader
---@field peer? string the address of that server, if it is not this nginx

local function target_of(asked)
  if asked then
    return asked.uri()
  end
  return ngx.var.request_uri
end

-- Whether nginx has cut the URL at a "#". The application behind it may take the rest for a part of the URL.
local function is_cut(target)
  return find(target, "#", 1, true) ~= nil
end

local CUT = "a URL with '#' can be read in two ways"

local M = {}

---A reader of a parameter of the query. It also returns the query, so that the reader of a second parameter need not
---ask nginx again: that is most of the work.
---@param name string
---@return fun(query: string|nil, asked: riskscreen.nginx.Asked|nil): string|nil, string|nil, string|nil
function M.argument(name)
  local place = "the argument " .. name
  local read = parameters.reader(name)
  return function(query, asked)
    if not query then
      local target, target_problem = target_of(asked)
      if not target or is_cut(target) then
        return nil, target_problem or CUT
      end
      query = asked and target:match "%?(.*)$" or not asked and ngx.var.args or ""
    end
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

local function is_doubtful(target)
  return is_cut(target) or not is_plain(target:match "^[^?]*")
end

-- nginx's own form of a plain path.
local function decoded(target)
  return unescape((target:match("^[^?]*"):gsub("%+", "%%2B")))
end

---Whether a text may be from a path that can be read in two ways. A rewrite may have replaced the path since.
---@param value string
---@param asked? riskscreen.nginx.Asked
---@return boolean
function M.is_doubtful(value, asked)
  local own, told = ngx.var.request_uri, asked and asked.uri() or ""
  return (is_doubtful(own) or is_doubtful(told))
    and find(ngx.var.uri .. own .. decoded(own) .. told .. decoded(told), value, 1, true) ~= nil
end

---A reader of a segment of the path.
---@param position integer
---@return riskscreen.nginx.Reader
function M.path_segment(position)
  local place = ("segment %d of the path"):format(position)
  return function(_, asked)
    local target, problem = target_of(asked)
    if not target or is_doubtful(target) then
      return nil, problem or place .. " is in a path that can be read in two ways"
    end
    local count = 0
    for segment in (asked and decoded(target) or ngx.var.uri):gmatch "[^/]+" do
      count = count + 1
      if count == position then
        return segment
      end
    end
    return nil, place .. " is missing"
  end
end

return M
