-- The progress of a verb on a terminal: one line that is drawn again.

local text = require "riskscreen.util.text"

local SHORTEST_BAR = 10 -- columns
local WIDEST_BAR = 30 -- columns

local M = {}

---@class riskscreen.cli.ProgressLine
---@field draw fun(content: string)
---@field clear fun() removes the line
---@field width? integer of the terminal; nil where nothing is drawn: with --quiet, or if stderr is no terminal

---The line of a verb. Each text of the command on stderr removes it.
---@param context riskscreen.cli.Context
---@return riskscreen.cli.ProgressLine
function M.line(context)
  local err, is_drawn = context.world.err, false
  local width = not context.quiet and context.world.columns(err) or nil
  local function write(content)
    err:write("\r", content, "\27[K")
    err:flush()
  end
  context.world.line = {
    width = width,
    draw = function(content)
      if width then
        write(content)
        is_drawn = true
      end
    end,
    clear = function()
      if is_drawn then
        write ""
        is_drawn = false
      end
    end,
  }
  return context.world.line
end

-- A duration for people: "1:02:03".
local function duration(seconds)
  local whole = math.floor(seconds + 0.5)
  return ("%d:%02d:%02d"):format(math.floor(whole / 3600), math.floor(whole / 60) % 60, whole % 60)
end

---The counts of the verdicts: "allow 90, review 4, block 2, unknown 1".
---@param counts table<riskscreen.Action, integer>
---@param separator? string
---@return string
function M.counts(counts, separator)
  local parts = {}
  for _, action in ipairs { "allow", "review", "block", "unknown" } do
    parts[#parts + 1] = ("%s %s"):format(action, text.grouped(counts[action] or 0))
  end
  return table.concat(parts, separator or ", ")
end

---The line of a run over a file. It has as much as fits, the most useful first.
---@param now { share?: number, rows: integer, rate: number, counts: table, left?: number }
---@param columns integer
---@return string
function M.of_run(now, columns)
  local room = columns - 1
  local percent = now.share and ("%3d%%"):format(math.floor(now.share * 100)) or text.grouped(now.rows) .. " rows"
  local rate = ("  %s/s"):format(text.grouped(math.floor(now.rate + 0.5)))
  local left = now.left and ("  %s left"):format(duration(now.left)) or ""
  local line, counts = percent .. rate .. left, "  " .. M.counts(now.counts, " ")
  if #line + #counts <= room then
    line = percent .. counts .. rate .. left
  end
  local width = math.min(room - #line - 3, WIDEST_BAR)
  if now.share and width >= SHORTEST_BAR then
    local full = math.floor(now.share * width)
    line = ("%s [%s%s]%s"):format(percent, ("#"):rep(full), (" "):rep(width - full), line:sub(#percent + 1))
  end
  return line:sub(1, room)
end

return M
