-- Runs `riskscreen screen --file` over many rows, ends it several times at random, and resumes it.

local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"

local M = {}

local signals = { "KILL", "INT", "KILL", "TERM" }
local ENDED = 128 -- a shell adds the number of the signal

local function write_input(path, rows)
  local file = assert(io.open(path, "wb"))
  file:write "customer,address,network\r\n"
  for number = 1, rows do
    file:write(('"c, %d",0x%040x,eth\r\n'):format(number, number))
  end
  file:close()
end

---The rows of the output: fields of each by line, without the time.
---@param path string
---@return string[]
function M.rows(path)
  local rows = {}
  for row in io.lines(path) do
    rows[#rows + 1] = row:gsub("%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ", "TIME")
  end
  return rows
end

---How often each request was made.
---@param targets string[]
---@return integer requests
---@return integer repeats
function M.repeats(targets)
  local seen, repeats = {}, 0
  for _, target in ipairs(targets) do
    repeats = repeats + (seen[target] and 1 or 0)
    seen[target] = true
  end
  return #targets, repeats
end

-- Ends the process that the shell becomes, once a file has so many lines. So a fast machine is not done before.
local WATCH =
  [[sh -c '(until [ "$(wc -l <%s)" -ge %d ]; do kill -0 $$ || exit; sleep 0.005; done; kill -%s $$) 2>/dev/null &
exec env %s']]

---@param options table `rows`, `ends` (times that it is ended, at random requests), `concurrency`, `seed`, `signals`,
---`flags`
---@return table outcome `output`, `input`, `ended` (the times that a run was ended), `requests`, `repeats`, `statuses`
---@return fun() remove
function M.run(options)
  local directory, remove = cli.directory()
  local sandbox = cli.sandbox()
  local input, output = directory .. "/input.csv", directory .. "/output.csv"
  write_input(input, options.rows)
  local base = ("%s %s screen -q --file %s -o %s --keep customer --concurrency %d %s"):format(
    sandbox.environment,
    cli.command,
    input,
    output,
    options.concurrency,
    (options.flags or ""):gsub("@", directory .. "/")
  )
  math.randomseed(options.seed)
  local ended, statuses = 0, {}
  local status
  repeat
    local is_last = ended >= options.ends
    local request = math.ceil((ended + math.random()) * options.rows / (options.ends + 1))
    local signal = (options.signals or signals)[ended % #(options.signals or signals) + 1]
    -- A run that was ended before it began has nothing to resume.
    local _, missing = commands.run(("test -e %s.state"):format(output))
    local text
    local line = base .. (missing == 0 and " --resume" or "")
    text, status = commands.run(is_last and line or WATCH:format(sandbox.log, request, signal, line))
    -- Lua's own program ends so when it is interrupted before the command has begun.
    if status == 1 and text:find("interrupted!", 1, true) then
      status = 130
    end
    statuses[#statuses + 1] = status
    if status == 4 then
      sandbox.close()
      error("the run was refused: " .. text)
    end
    ended = ended + (status >= ENDED and 1 or 0)
  until status < ENDED
  local requests, repeats = M.repeats(sandbox.targets())
  sandbox.close()
  return {
    directory = directory,
    input = input,
    output = output,
    ended = ended,
    statuses = statuses,
    requests = requests,
    repeats = repeats,
  },
    remove
end

---The faults of an outcome: rows that are missing, twice or out of order, and answers that were asked for again.
---@param outcome table
---@param options table those of the run
---@return string[]
function M.faults(outcome, options)
  local faults, rows = {}, M.rows(outcome.output)
  if outcome.ended < options.ends then
    faults[1] = ("the run was ended %d times, not %d"):format(outcome.ended, options.ends)
  end
  if #rows ~= options.rows + 1 then
    faults[#faults + 1] = ("%d rows in the output, not %d"):format(#rows - 1, options.rows)
  end
  for number = 1, options.rows do
    local row = rows[number + 1] or ""
    local expected = ("%d,0x%040x,eth,"):format(number + 1, number)
    if row:sub(1, #expected) ~= expected or not row:find(('"c, %d"\r$'):format(number)) then
      faults[#faults + 1] = ("row %d is %s"):format(number, row)
      break
    end
  end
  -- Only two kinds of rows may be asked for again: those under way at an end, and the answers of two turns of the loop.
  -- A kill may come before those are saved, and each of them has let the next request go.
  local most = outcome.ended * options.concurrency * 3
  if outcome.repeats > most then
    faults[#faults + 1] = ("%d requests were repeated, more than %d"):format(outcome.repeats, most)
  end
  return faults
end

return M
