-- `riskscreen screen --file --dry-run`: what a run would do, without a call.

local addresses = require "riskscreen.address"
local lookups = require "riskscreen.policy.lookups"
local policies = require "riskscreen.policy"
local progress_line = require "riskscreen.cli.progress"
local status = require "riskscreen.cli.status"

local M = {}

---Reads the whole file and says what a run would do, without a call.
---@param run riskscreen.cli.Run
---@return integer status
function M.tell(run)
  local context = run.context
  local network, policy = context:network(), context:policy() or policies.new()
  local level = context.options.address_check
  local wanted = lookups.wanted(policy, context.options.include)
  local figures = { rows = 0, addresses = 0, invalid = 0, calls = 0 }
  for row in run.input:each() do
    figures.rows = figures.rows + 1
    local its_network = row.network or network
    local valid, problem = addresses.validate(row.address, its_network, level)
    if valid then
      figures.addresses = figures.addresses + 1
      for _, lookup in ipairs(wanted) do
        figures.calls = figures.calls + (lookups.applies(lookup, its_network) and 1 or 0)
      end
    else
      figures.invalid = figures.invalid + 1
      run.input:count_invalid(row.line, problem)
      run:report_invalid { line = row.line, invalid = problem }
    end
  end
  run.input:close()
  local rate = context.options.rate or context:setting "rate_limit.rate"
  local cost = context.options.cost
  figures.credits = cost and figures.calls * cost or nil
  figures.seconds = rate and figures.calls / rate or nil
  if context.format ~= "table" then
    context:write_record({ "rows", "addresses", "invalid", "calls", "credits", "seconds" }, figures)
  elseif not context.quiet then
    local grouped = progress_line.grouped
    context.world.out:write(
      ("rows       %s\n"):format(grouped(figures.rows)),
      ("addresses  %s\n"):format(grouped(figures.addresses)),
      ("invalid    %s\n"):format(grouped(figures.invalid)),
      ("calls      %s at most: a repeated address is asked for once\n"):format(grouped(figures.calls)),
      ("credits    %s\n"):format(
        cost and ("%g"):format(figures.credits)
          or "unknown: the service publishes no prices; --cost N is the price of a call"
      ),
      ("time       %s\n"):format(
        rate and progress_line.duration(figures.seconds) .. " at " .. ("%g"):format(rate) .. " calls a second"
          or "unknown without --rate"
      )
    )
  end
  return figures.invalid > 0 and status.invalid_rows or status.done
end

return M
