-- A corpus of odd files, and mutations of it, through every verb that reads rows: the same rows, or the same refusal
-- before the first call.
local cjson = require "cjson"
local lists = require "riskscreen.lists"
local queues = require "riskscreen.queue"
local random = require "spec.support.random"
local report = require "riskscreen.report"
local riskscreen = require "riskscreen"
local run = require("spec.support.cli").run
local store = require "riskscreen.store"
local temporary = require "spec.support.temporary"

local MUTATIONS = 60
local A, B = "0x0000000000000000000000000000000000000001", "0x0000000000000000000000000000000000000002"
local BTC = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"

-- Every file has a column `action`, for the report.
local corpus = {
  "address,network,action\n" .. A .. ",eth,allow\n" .. BTC .. ",btc,block\n",
  "Wallet;Chain;Action\r\n" .. A .. ";ETH;allow\r\n" .. B .. ";bsc;block\r\n",
  "\239\187\191address\tnetwork\taction\n" .. A .. "\teth\treview\n",
  "address,network,action\r" .. A .. ",eth,allow\r" .. B .. ",eth,block\r",
  'address,network,action,text\n"' .. A .. '",eth,allow,"a ""b"", c"\n' .. B .. ',eth,block,"two\nlines"\n',
  "address,network,action,text\n" .. A .. ',eth,allow,5" rod\n' .. B .. ',eth,block,6" rod\n',
  "address,network,action,text\n" .. A .. ',eth,allow,"x\n' .. B .. ",eth,block,y\n",
  "address,network,action\n" .. A .. ",eth,allow,more\n",
  "address,network,action\n" .. A .. ",eth\n",
  "address,wallet,network,action\n" .. A .. ",x,eth,allow\n",
  "to_address,from_address,network,action\n" .. A .. "," .. B .. ",eth,allow\n",
  "address,network,from_chain,action\n" .. A .. ",eth,bsc,allow\n",
  "address,network,action\n",
  "",
  "address,network,action,text\n" .. A .. ",eth,allow,caf\233\n",
  "\255\254a\0d\0d\0r\0e\0s\0s\0",
  "PK\3\4 and so on",
  '{"address":"'
    .. A
    .. '","network":"eth","action":"allow"}\n{"address":"'
    .. B
    .. '","chain":"eth","action":"block"}\n',
  '[{"wallet":"' .. A .. '","network":"eth","action":"allow"}]',
  "address,network,action\nwhat,eth,allow\n" .. A .. ",eth,block\n\n,,\n",
}

-- A copy of a text with a few bytes that mean something put in, taken out or doubled.
local function mutated(text, numbers)
  for _ = 1, numbers.integer(3) do
    local at = numbers.integer(#text + 1)
    local what = numbers.pick { '"', ",", ";", "\n", "\r", "\t", "\255", "\0", "#", " ", "é", "\r\n" }
    local kind = numbers.integer(3)
    if kind == 1 then
      text = text:sub(1, at - 1) .. what .. text:sub(at)
    elseif kind == 2 then
      text = text:sub(1, at - 1) .. text:sub(at + 1)
    else
      local to = math.min(#text, at + numbers.integer(30))
      text = text:sub(1, to) .. text:sub(at, to) .. text:sub(to + 1)
    end
  end
  return text
end

-- The refusal without the name of the file.
local function refusal(message)
  return "refused: "
    .. (tostring(message):match "line %d+: [^\n]*" or tostring(message):match "in%.%w+: ([^\n]*)" or message)
end

-- An address and a network as every verb gives them. A text that is no address may be shown shortened.
local function subject(address, network)
  return tostring(address or "") .. " " .. tostring(network or ""):lower()
end

describe("every verb that reads rows", function()
  local path

  before_each(function()
    path = temporary.path "in.csv"
  end)

  after_each(temporary.clean)

  local ways = {}

  function ways.screen()
    local status, out, err = run { "screen", "--file", path, "-o", "-", "--jsonl", "--sandbox", "-n", "eth" }
    if status == 4 then
      assert.equal("", out)
      return refusal(err:gsub("^riskscreen: [^\n]*simulated[^\n]*\n", ""))
    end
    local list = {}
    for line in out:gmatch "[^\n]+" do
      local record = cjson.decode(line)
      list[#list + 1] = subject(record.address, record.network)
    end
    return table.concat(list, "\n")
  end

  function ways.screen_all()
    local client, list = riskscreen.sandbox.client {}, {}
    local file = assert(io.open(path, "rb"))
    local ok, err = pcall(function()
      for decision in client:screen_all { source = file, network = "eth" } do
        list[#list + 1] = subject(decision.input.address, decision.input.network or "eth")
      end
    end)
    file:close()
    assert(ok or #list == 0, "a call was made before the refusal")
    return ok and table.concat(list, "\n") or refusal((err.message:gsub("^the input", "in.csv")))
  end

  function ways.watch()
    local client, list = riskscreen.sandbox.client {}, {}
    local seen = client.screen
    function client.screen(self, request)
      list[#list + 1] = subject(request.address, request.network)
      return seen(self, request)
    end
    local watch = riskscreen.watch(client, {
      source = path,
      network = "eth",
      store = store.memory(),
      rate = 1000,
      on_change = function() end,
    })
    local summary, err = watch:once()
    return summary and table.concat(list, "\n") or refusal(err.message)
  end

  -- The queue itself is a stand-in: the rows that it is given count.
  function ways.queue()
    local list, new = {}, queues.new
    function queues.new()
      return {
        add = function(_, _, next_input)
          for input in next_input do
            list[#list + 1] = subject(input.address, input.network)
          end
          return { rows = #list, added = #list, invalid = 0 }
        end,
      }
    end
    local status, _, err = run { "queue", "add", path, "-n", "eth", "--redis", "redis://127.0.0.1:1" }
    queues.new = new
    if status == 4 then
      assert.same({}, list)
      return refusal(err)
    end
    assert.equal(0, status, err)
    return table.concat(list, "\n")
  end

  function ways.import()
    local status, out, err =
      run { "blacklist", "import", path, "--jsonl", "--sandbox", "-n", "eth", "--risk", "high/scam" }
    if status == 4 then
      return refusal(err)
    end
    local list = {}
    for line in out:gmatch "[^\n]+" do
      local record = cjson.decode(line)
      list[#list + 1] = subject(record.address, record.network)
    end
    return table.concat(list, "\n")
  end

  function ways.report()
    local output = temporary.path "report.html"
    local summary, err = report.write { input = path, output = output, time = 0 }
    if not summary then
      return refusal(err.message)
    end
    return summary.rows + summary.unreadable .. " rows"
  end

  function ways.list()
    local built, err = riskscreen.lists.build { inputs = path, output = temporary.path "out.rsl" }
    local counted = built or err.report -- a list of bad addresses has rows, and no entry
    return counted and counted.rows .. " rows" or refusal(err.message)
  end

  -- The list in use, without a build.
  function ways.deny()
    local loaded, fault = lists.load(path)
    return loaded and loaded.facts.rows .. " rows" or "refused: in.csv, " .. fault:gsub("^.-in%.csv[:,]? ?", "")
  end

  local function compare(content, what)
    temporary.write(path, content)
    local expected = ways.screen()
    local _, count = (expected == "" and "" or expected .. "\n"):gsub("\n", "")
    for name, way in pairs(ways) do
      local found = way()
      local wanted = expected
      if (name == "report" or name == "list" or name == "deny") and not expected:find "^refused" then
        wanted = count .. " rows"
      end
      if name == "watch" and not expected:find "^refused" and found ~= wanted then
        -- An address that stands twice is screened once.
        local seen, distinct = {}, {}
        for line in (expected .. "\n"):gmatch "(.-)\n" do
          distinct[#distinct + 1] = not seen[line] and line or nil
          seen[line] = true
        end
        wanted = table.concat(distinct, "\n")
      end
      local is_report = name == "report"
        and (content:find "^[%s\239\187\191]*[{%[]" or expected:find "no column 'address'")
      -- A list may have no unknown column, and no network in a column that is not read. The report needs another
      -- column, and goes on after a line of a journal that is torn.
      is_report = is_report or name == "report" and found:find "separated in two ways"
      is_report = is_report or name == "report" and expected:find "is not read, and it has"
      if
        is_report
        or found:find "is not a field of a list"
        or name ~= "report" and found:find "it has the network"
        or found:find "no column 'action'"
        or found:find "has no entry"
      then
        wanted = found
      end
      if found:find "^refused" and wanted:find "^refused" then
        found, wanted = found:match "line %d+" or "the file", wanted:match "line %d+" or "the file"
      end
      assert.equal(wanted, found, ("%s of %s: %q"):format(name, what, content))
    end
  end

  it("has the same rows, or the same refusal with the same line", function()
    for number, content in ipairs(corpus) do
      compare(content, "file " .. number)
    end
  end)

  it("has them also of mutations", function()
    local numbers = random.new(23)
    for number = 1, MUTATIONS do
      compare(mutated(numbers.pick(corpus), numbers), "mutation " .. number)
    end
  end)
end)
