-- A program that writes a journal is killed at random moments, again and again, and goes on each time. No line that it
-- was told is written may be lost, and the chain must hold. `./dev soak kills` runs it 200 times.
local journals = require "riskscreen.journal"
local program = require "spec.support.program"
local random = require "spec.support.random"
local temporary = require "spec.support.temporary"

local RUNS = tonumber(os.getenv "RISKSCREEN_KILLS" or 12)
local MOST_LINES = 40 -- of a run before it is killed
local MAX_SIZE = "20000" -- bytes of a file: a rotation now and then

describe("a program that is killed while it writes a journal", function()
  after_each(temporary.clean)

  it(("loses no line and breaks no chain, in %d runs"):format(RUNS), function()
    local path, integer = temporary.path "decisions.jsonl", random.new(random.SEED).integer
    local least = 0 -- lines that were reported as written
    for run = 1, RUNS do
      local writer = program.start("journal_writer", { path, "100000", MAX_SIZE })
      local reported = 0
      for _ = 1, integer(MOST_LINES) do
        assert.matches("^made ", writer:read())
        reported = reported + 1
      end
      reported = reported + #writer:kill()
      least = least + reported
      assert(journals.file(path)) -- repairs a torn line
      local report = journals.verify(path)
      assert.same({}, report.faults, "run " .. run)
      assert.is_true(report.lines == least or report.lines == least + 1, ("%d of %d"):format(report.lines, least))
      least = report.lines
    end
  end)
end)
