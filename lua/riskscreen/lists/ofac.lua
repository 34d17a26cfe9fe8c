-- Reads the digital currency addresses in OFAC's lists, sdn.xml and sdn_advanced.xml, in pieces. An address counts on
-- every network: the sanction is against the person who has its key. Needs lua-expat.
local addresses = require "riskscreen.address"
local optional = require "riskscreen.util.optional"
local text = require "riskscreen.util.text"

local PREFIX = "^Digital Currency Address %- (.+)$"
local LONGEST_TEXT = 4096 -- bytes of an element that is of interest

-- The network by which addresses of a symbol are checked. Those of tokens are of several networks.
local networks = {
  XBT = "btc",
  ETH = "eth",
  ETC = "etc",
  BSC = "bsc",
  ARB = "arbitrum",
  LTC = "ltc",
  DOGE = "doge",
  TRX = "tron",
  SOL = "solana",
}
local tokens = { USDT = true, USDC = true }

-- Symbols of networks that the service does not screen.
local not_screened = { XMR = true, ZEC = true, DASH = true, BTG = true, BSV = true, BCH = true, XVG = true, XRP = true }

local M = {}

---@class riskscreen.OfacState
---@field sink table with `row` and `skipped`
---@field line fun(): integer
---@field party table the entry that is read: its number and name
---@field symbols table<string, string|function> of sdn_advanced.xml: symbols by the number of a feature's type, or a
---function that reports an address of an unknown kind
---@field wanted? fun(content: string) takes the text of the element that is read
---@field content string[]

local function emit(state, symbol, address)
  local party = state.party
  local line = state.line()
  symbol = symbol:match "^%s*(.-)%s*$"
  -- Some of these networks have forms of another one, and a key is good on both.
  if not_screened[symbol] and not addresses.spellings(address)[1] then
    return state.sink.skipped(symbol, line, "the service does not screen its network")
  elseif not (not_screened[symbol] or networks[symbol] or tokens[symbol]) then
    state.sink.skipped(symbol, line, "the symbol is not known; its addresses count where they fit a network")
  end
  state.sink.row {
    address = address,
    as = networks[symbol],
    note = ("OFAC SDN %s: %s (%s)"):format(party.number or "?", party.name or "?", symbol),
    line = line,
  }
end

-- The symbol of a kind of identifier. One that is nearly such a kind is reported: its addresses are left out.
local function symbol_of(state, kind)
  local symbol = kind:match(PREFIX)
  local plain = kind:lower():gsub("%s+", " ")
  if not symbol and (plain:find "digital currenc" or plain:find "virtual currenc" or plain:find "crypto") then
    return nil,
      function()
        state.sink.skipped(kind, state.line(), "the spelling of this identifier is not known", true)
      end
  end
  return symbol
end

-- Keeps the first text of an element as a field.
local function keep(place, field)
  return place and not place[field] and function(content)
    place[field] = content
  end
end

-- The handlers of the elements of sdn.xml. A handler may return a function that takes the text of the element.
local simple = {}

function simple.sdnEntry(state)
  state.party, state.id = {}, nil
end

function simple.uid(state)
  return keep(state.party, "number")
end

function simple.lastName(state)
  return keep(state.party, "name")
end

function simple.id(state)
  state.id = {}
end

function simple.idType(state)
  return keep(state.id, "kind")
end

function simple.idNumber(state)
  return keep(state.id, "number")
end

local simple_end = {}

function simple_end.id(state)
  local symbol, report = symbol_of(state, state.id and state.id.kind or "")
  if symbol then
    emit(state, symbol, state.id.number or "")
  elseif report then
    report()
  end
  state.id = nil
end

-- The same for sdn_advanced.xml.
local advanced = {}

function advanced.FeatureType(state, attributes)
  return function(content)
    local symbol, report = symbol_of(state, content)
    state.symbols[attributes.ID or ""] = symbol or report
  end
end

function advanced.DistinctParty(state, attributes)
  state.party = { number = attributes.FixedRef }
end

-- The parts of the first documented name.
function advanced.DocumentedName(state)
  state.is_named = state.party.name ~= nil
end

function advanced.NamePartValue(state)
  return not state.is_named
    and function(content)
      state.party.name = state.party.name and state.party.name .. " " .. content or content
    end
end

function advanced.Feature(state, attributes)
  state.symbol = state.symbols[attributes.FeatureTypeID or ""]
end

function advanced.VersionDetail(state)
  local symbol = state.symbol
  if type(symbol) == "function" then
    return symbol
  end
  return symbol and function(content)
    emit(state, symbol, content)
  end
end

local advanced_end = {}

function advanced_end.Feature(state)
  state.symbol = nil
end

local roots = {
  sdnList = { start = simple, finish = simple_end },
  Sanctions = { start = advanced, finish = advanced_end },
}

local function new_parser(lxp, state)
  local handlers
  local function start(_, name, attributes)
    name = name:match "[^:]*$"
    if not handlers then
      handlers = roots[name] or error(("its root is <%s>, and not <sdnList> or <Sanctions>"):format(name), 0)
      return
    end
    local handler = handlers.start[name]
    state.wanted = handler and handler(state, attributes) or nil
    state.content, state.size = {}, 0
  end
  local function finish(_, name)
    name = name:match "[^:]*$"
    local wanted = state.wanted
    state.wanted = nil
    if wanted then
      wanted((table.concat(state.content):match "^%s*(.-)%s*$"))
    end
    local handler = handlers.finish[name]
    if handler then
      handler(state)
    end
  end
  local function characters(_, content)
    if state.wanted then
      state.size = state.size + #content
      if state.size > LONGEST_TEXT then
        error(("an element has more than %d bytes of text"):format(LONGEST_TEXT), 0)
      end
      table.insert(state.content, content)
    end
  end
  -- Neither file has one, and a document type can define entities that grow without end.
  local function doctype()
    error("it has a document type", 0)
  end
  return lxp.new { StartElement = start, EndElement = finish, CharacterData = characters, StartDoctypeDecl = doctype }
end

-- Runs the parser over one piece; without a piece it finishes.
local function feed(parser, piece)
  local ok, parsed, message, line = pcall(parser.parse, parser, piece)
  if not ok then
    return nil, tostring(parsed)
  elseif not parsed then
    return nil, ("line %s: %s"):format(tostring(line), text.printable(tostring(message), 200))
  end
  return true
end

---Reads pieces of a text. Calls `sink.row` for every address, and `sink.skipped` for those that are left out.
---@param read riskscreen.rows.Read
---@param sink { row: fun(row: riskscreen.ListRow), skipped: fun(symbol: string, line: integer, reason: string,
---is_unknown?: boolean) }
---@return true|nil
---@return string|nil problem
function M.load(read, sink)
  local lxp = optional "lxp"
  if not lxp then
    return nil, "reading XML needs lua-expat: install it with luarocks install luaexpat, or Debian's package lua-expat"
  end
  local parser
  local state = { sink = sink, party = {}, symbols = {}, content = {}, size = 0 }
  function state.line()
    return (parser:pos())
  end
  parser = new_parser(lxp, state)
  local ok, problem = true, nil
  while ok do
    local piece, failure = read()
    if failure then
      ok, problem = nil, failure
    else
      ok, problem = feed(parser, piece)
    end
    if not piece then
      break
    end
  end
  pcall(parser.close, parser)
  return ok, problem
end

return M
