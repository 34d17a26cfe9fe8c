-- Reads and removes the entries of a queue's streams. Entries of other programs are removed, and counted in the status
-- as `foreign`.
local kept = require "riskscreen.json.kept"
local redis = require "riskscreen.redis"
local scripts = require "riskscreen.queue.scripts"
local tables = require "riskscreen.util.tables"

local M = {}

---The arguments of a script, and the positions and ids of entries behind them.
---@param arguments (string|number)[]
---@param list { position: string, id: string }[]
---@return (string|number)[] arguments
function M.pairs(arguments, list)
  for _, entry in ipairs(list) do
    arguments[#arguments + 1], arguments[#arguments + 2] = entry.position, entry.id or ""
  end
  return arguments
end

---Removes entries of a stream.
---@param queue riskscreen.Queue
---@param stream "jobs"|"results"|"dead"
---@param list { position: string, id: string }[]
---@param counted? string the count of them in the status
---@return integer|nil removed
---@return riskscreen.Error|nil err
function M.remove(queue, stream, list, counted)
  local arguments = M.pairs({ queue.base, stream, queue.group, counted or "" }, list)
  return queue.redis:script(scripts.remove, queue.keys, arguments)
end

---The entries of a reply, as tables of their fields.
---@param queue riskscreen.Queue
---@param stream "jobs"|"results"|"dead"
---@param reply any[]
---@return { position: string, id: string, item: string }[]
---@return string|nil last position of the reply
function M.read(queue, stream, reply)
  local own, foreign, last = {}, {}, nil
  for _, entry in ipairs(reply) do
    last = entry[1]
    if entry[2] then -- one that was claimed may have been removed
      local fields = tables.merge({ id = "", item = "" }, redis.fields(entry[2]))
      fields.position = last
      local list = fields.item ~= "" and fields.id:find ".+/%d+$" and own or foreign
      list[#list + 1] = fields
    end
  end
  if foreign[1] then
    M.remove(queue, stream, foreign, "foreign")
  end
  return own, last
end

---A result or a dead letter. Its input is one member, so that it never takes the place of a member of the outcome.
---@param outcome table
---@param entry { id: string, item: string, position?: string }
---@return riskscreen.QueueResult
function M.result(outcome, entry)
  local source, row = entry.id:match "^(.+)/(%d+)$"
  return tables.merge(outcome, {
    position = entry.position,
    id = entry.id,
    source = source,
    row = tonumber(row),
    input = kept.decode(entry.item),
  })
end

return M
