-- Reads the digital currency addresses in OFAC's lists, sdn.xml and sdn_advanced.xml, in pieces. An address counts on
-- every network: the sanction is against the person who has its key. Needs lua-expat.
local addresses = require "riskscreen.address"
local optional = require "riskscreen.util.optional"
local text = require "riskscreen.util.text"

local PREFIX = "^Digital Currency Address %- (.+)$"
local LONGEST_TEXT = 4096 -- bytes of an element that is of interest

-- The network by which addresses of a symbol are checked; false for tokens, whose addresses are of several networks.
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
  USDT = false,
  USDC = false,
}

-- Symbols of networks that the service does not screen.
local not_screened = { XMR = true, ZEC = true, DASH = true, BTG = true, BSV = true, BCH = true, XVG = true, XRP = true }

-- Words of kinds of identifiers that are reported where they have an address.
local may_be_addresses = text.words "address wallet digital virtual blockchain token"

local M = {}

---@class riskscreen.OfacState
---@field sink table with `row` and `skipped`
---@field line fun(): integer
---@field party table the entry that is read: its number and name
---@field id table of sdn.xml: the kind and the number of the identifier that is read
---@field kinds table<string, string> of sdn_advanced.xml: kinds of identifiers by the number of a feature's type
---@field kind? string of sdn_advanced.xml: the kind of the identifier that is read
---@field element? string the innermost element, until another one begins or ends in it
---@field content string[] its text

local function emit(state, symbol, address)
  local party = state.party
  symbol = symbol:match "^%s*(.-)%s*$"
  -- Some of these networks have forms of another one, and a key is good on both.
  if not_screened[symbol] and not addresses.spellings(address)[1] then
    return state.sink.skipped(symbol, "the service does not screen its network")
  elseif not not_screened[symbol] and networks[symbol] == nil then
    state.sink.skipped(symbol, "the symbol is not known; its addresses count where they fit a network")
  end
  state.sink.row {
    address = address,
    as = networks[symbol] or nil,
    note = ("OFAC SDN %s: %s (%s)"):format(party.number or "?", party.name or "?", symbol),
    line = state.line(),
  }
end

-- Takes an identifier that is an address. One whose kind is nearly that of addresses is left out and reported.
local function take(state, kind, content)
  local symbol, plain = kind:match(PREFIX), text.lower(kind):gsub("%s+", " ")
  if symbol then
    return emit(state, symbol, content)
  end
  local is_like = plain:find "digital currenc" or plain:find "virtual currenc" or plain:find "crypto"
  for _, word in ipairs(not is_like and may_be_addresses or {}) do
    is_like = is_like or plain:find(word, 1, true) and addresses.spellings(content)[1]
  end
  if is_like then
    state.sink.skipped(kind, "the spelling of this identifier is not known", true)
  end
end

-- The functions that are called at the start of an element, with its attributes, and at its end, with its text. The two
-- files have no name in common among them.
---@alias riskscreen.OfacHandler fun(state: riskscreen.OfacState, value: any)
---@type table<string, riskscreen.OfacHandler>, table<string, riskscreen.OfacHandler>
local starts, finishes = {}, {}

-- The elements of sdn.xml.

function starts.sdnEntry(state)
  state.party = {}
end

function starts.id(state)
  state.id = {}
end

function finishes.uid(state, content)
  state.party.number = state.party.number or content
end

function finishes.lastName(state, content)
  state.party.name = state.party.name or content
end

function finishes.idType(state, content)
  state.id.kind = content
end

function finishes.idNumber(state, content)
  state.id.number = content
end

function finishes.id(state)
  take(state, state.id.kind or "", state.id.number or "")
  state.id = {}
end

-- The elements of sdn_advanced.xml.

function starts.FeatureType(state, attributes)
  state.id = attributes.ID or ""
end

function finishes.FeatureType(state, content)
  state.kinds[state.id] = content or ""
end

function starts.DistinctParty(state, attributes)
  state.party = { number = attributes.FixedRef }
end

-- The parts of the first documented name.
function starts.DocumentedName(state)
  state.is_named = state.party.name ~= nil
end

function finishes.NamePartValue(state, content)
  if not state.is_named and content then
    state.party.name = state.party.name and state.party.name .. " " .. content or content
  end
end

function starts.Feature(state, attributes)
  state.kind = state.kinds[attributes.FeatureTypeID or ""]
end

function finishes.VersionDetail(state, content)
  if state.kind then
    take(state, state.kind, content or "")
  end
end

function finishes.Feature(state)
  state.kind = nil
end

local function new_parser(lxp, state)
  local is_begun
  local function start(_, name, attributes)
    name = name:match "[^:]*$"
    if not (is_begun or name == "sdnList" or name == "Sanctions") then
      error(("its root is <%s>, and not <sdnList> or <Sanctions>"):format(name), 0)
    elseif starts[name] then
      starts[name](state, attributes)
    end
    is_begun, state.element, state.content, state.size = true, name, {}, 0
  end
  local function finish(_, name)
    name = name:match "[^:]*$"
    if finishes[name] then
      finishes[name](state, state.element == name and text.trim(table.concat(state.content)) or nil)
    end
    state.element = nil
  end
  local function characters(_, content)
    if finishes[state.element or ""] then
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

---Reads pieces of a text. Calls `sink.row` for every address, and `sink.skipped` for those that are left out.
---@param read riskscreen.rows.Read
---@param sink { row: fun(row: riskscreen.ListRow), skipped: fun(symbol: string, reason: string,
---is_unknown?: boolean) }
---@return true|nil
---@return string|nil problem
function M.load(read, sink)
  local lxp = optional "lxp"
  if not lxp then
    return nil, "reading XML needs lua-expat: apt install lua-expat, or luarocks install luaexpat"
  end
  local parser
  local state = { sink = sink, party = {}, id = {}, kinds = {}, content = {}, size = 0 }
  function state.line()
    return (parser:pos())
  end
  parser = new_parser(lxp, state)
  local piece, problem
  repeat
    piece, problem = read()
    if not problem then
      local ok, parsed, message, line = pcall(parser.parse, parser, piece) -- without a piece it finishes
      local fault = not parsed and ("line %s: %s"):format(tostring(line), text.printable(tostring(message), 200)) or nil
      problem = not ok and tostring(parsed) or fault
    end
  until problem or not piece
  pcall(parser.close, parser)
  return not problem or nil, problem
end

return M
