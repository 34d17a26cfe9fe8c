-- The files are made up, in the schemas of OFAC's sdn.xml and sdn_advanced.xml.
local entries = require "riskscreen.lists.entry"
local ofac = require "riskscreen.lists.ofac"

local EVM = "0x12ae66cdc592e10b60f9097a7b0d3c59fce29876"
local BTC = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"
local TRON = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"

local function simple(...)
  return ([[<?xml version="1.0" standalone="yes"?>
<sdnList xmlns="https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/XML">
  <publshInformation><Publish_Date>01/02/2026</Publish_Date><Record_Count>1</Record_Count></publshInformation>
  <sdnEntry>
    <uid>4711</uid>
    <lastName>EXAMPLE &amp; SONS</lastName>
    <sdnType>Entity</sdnType>
    <programList><program>CYBER2</program></programList>
    <idList>
      <id><uid>1</uid><idType>Registration Number</idType><idNumber>%s</idNumber></id>
      %s
    </idList>
    <akaList><aka><uid>9</uid><lastName>OTHER NAME</lastName></aka></akaList>
  </sdnEntry>
</sdnList>]]):format(BTC, table.concat({ ... }, "\n"))
end

local function id(symbol, address)
  return ("<id><uid>2</uid><idType>Digital Currency Address - %s</idType><idNumber>%s</idNumber></id>"):format(
    symbol,
    address
  )
end

local ADVANCED = ([[<?xml version="1.0" encoding="utf-8"?>
<Sanctions xmlns="https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/ADVANCED_XML">
  <DateOfIssue CalendarTypeID="1"><Year>2026</Year><Month>1</Month><Day>2</Day></DateOfIssue>
  <ReferenceValueSets>
    <FeatureTypeValues>
      <FeatureType ID="8" FeatureTypeGroupID="1">Birthdate</FeatureType>
      <FeatureType ID="344" FeatureTypeGroupID="1">Digital Currency Address - XBT</FeatureType>
      <FeatureType ID="345" FeatureTypeGroupID="1">Digital Currency Address - ETH</FeatureType>
      <FeatureType ID="444" FeatureTypeGroupID="1">Digital Currency Address - XMR</FeatureType>
    </FeatureTypeValues>
  </ReferenceValueSets>
  <DistinctParties>
    <DistinctParty FixedRef="4711">
      <Comment />
      <Profile ID="4711" PartySubTypeID="4">
        <Identity ID="1" FixedRef="4711" Primary="true" False="false">
          <Alias FixedRef="4711" AliasTypeID="1403" Primary="true" LowQuality="false">
            <DocumentedName ID="1" FixedRef="4711" DocNameStatusID="1">
              <DocumentedNamePart>
                <NamePartValue NamePartGroupID="1" ScriptID="215">DOE</NamePartValue>
              </DocumentedNamePart>
              <DocumentedNamePart>
                <NamePartValue NamePartGroupID="2" ScriptID="215">Jane</NamePartValue>
              </DocumentedNamePart>
            </DocumentedName>
            <DocumentedName ID="2" FixedRef="4711" DocNameStatusID="2">
              <DocumentedNamePart>
                <NamePartValue NamePartGroupID="1" ScriptID="220">ANOTHER</NamePartValue>
              </DocumentedNamePart>
            </DocumentedName>
          </Alias>
        </Identity>
        <Feature ID="1" FeatureTypeID="8">
          <FeatureVersion ID="1" ReliabilityID="1">
            <VersionDetail DetailTypeID="1432">1970</VersionDetail>
          </FeatureVersion>
        </Feature>
        <Feature ID="2" FeatureTypeID="344">
          <FeatureVersion ID="2" ReliabilityID="1"><Comment />
            <VersionDetail DetailTypeID="1432">%s</VersionDetail>
          </FeatureVersion>
        </Feature>
        <Feature ID="3" FeatureTypeID="345">
          <FeatureVersion ID="3" ReliabilityID="1">
            <VersionDetail DetailTypeID="1432">%s</VersionDetail>
          </FeatureVersion>
        </Feature>
        <Feature ID="4" FeatureTypeID="444">
          <FeatureVersion ID="4" ReliabilityID="1">
            <VersionDetail DetailTypeID="1432">4Aexample</VersionDetail>
          </FeatureVersion>
        </Feature>
      </Profile>
    </DistinctParty>
  </DistinctParties>
</Sanctions>]]):format(BTC, EVM)

-- The entries of a text, what was skipped, or the problem.
local function load(content, size)
  local at, found, skipped = 1, {}, {}
  local sink = {}
  function sink.row(row)
    local entry, problem = entries.read(row)
    found[#found + 1] = entry and { entry.places[1].scope, entry.places[1].address, entry.note } or problem
  end
  function sink.skipped(symbol, reason)
    skipped[#skipped + 1] = { symbol = symbol, reason = reason }
  end
  local ok, problem = ofac.load(function()
    local piece = content:sub(at, at + (size or 50) - 1)
    at = at + #piece
    return piece ~= "" and piece or nil
  end, sink)
  return ok and found, ok and skipped or problem
end

describe("sdn.xml", function()
  it("has the addresses of each entry, on every network, with number and name in the note", function()
    local found, skipped = load(simple(id("XBT", BTC), id("ETH", EVM), id("USDT", TRON), id("USDT", EVM)))
    assert.same({
      { "*", BTC, "OFAC SDN 4711: EXAMPLE & SONS (XBT)" },
      { "*", EVM, "OFAC SDN 4711: EXAMPLE & SONS (ETH)" },
      { "*", TRON, "OFAC SDN 4711: EXAMPLE & SONS (USDT)" },
      { "*", EVM, "OFAC SDN 4711: EXAMPLE & SONS (USDT)" },
    }, found)
    assert.same({}, skipped)
  end)

  it("is read in pieces of any size", function()
    local whole = load(simple(id("XBT", BTC)), 100000)
    assert.same(whole, (load(simple(id("XBT", BTC)), 1)))
  end)

  it("reports the symbols of networks that the service does not screen", function()
    local found, skipped = load(simple(id("XMR", "4Aexample"), id("XBT", BTC)))
    assert.equal(1, #found)
    assert.equal("XMR", skipped[1].symbol)
    assert.matches("does not screen", skipped[1].reason)
  end)

  it("checks an address by the network of its symbol", function()
    local networks =
      { XBT = "btc", ETH = "eth", ETC = "etc", BSC = "bsc", ARB = "arbitrum", LTC = "ltc", DOGE = "doge" }
    networks.TRX, networks.SOL = "tron", "solana"
    for symbol, network in pairs(networks) do
      local found, skipped = load(simple(id(symbol, "what")))
      assert.matches("not an address of the network " .. network, found[1])
      assert.same({}, skipped)
    end
  end)

  it("does not guess at the addresses of networks that the service does not screen", function()
    for _, symbol in ipairs { "XMR", "ZEC", "DASH", "BTG", "BSV", "BCH", "XVG", "XRP" } do
      local found, skipped = load(simple(id(symbol, "4Aexample")))
      assert.same({ 0, symbol }, { #found, skipped[1].symbol })
    end
  end)

  it("gives each entry its own number and name", function()
    local function entry(number, name, ...)
      return ("<sdnEntry><uid>%d</uid>%s<idList>%s</idList></sdnEntry>"):format(number, name, id(...))
    end
    local found =
      load("<sdnList>" .. entry(1, "<lastName>ONE</lastName>", "ETH", EVM) .. entry(2, "", "TRX", TRON) .. "</sdnList>")
    assert.same({ "OFAC SDN 1: ONE (ETH)", "OFAC SDN 2: ? (TRX)" }, { found[1][3], found[2][3] })
  end)

  it("reports a symbol that is not known, and keeps its address where it fits a network", function()
    local found, skipped = load(simple(id("NEW", EVM), id("ODD", "what")))
    assert.same({ "*", EVM, "OFAC SDN 4711: EXAMPLE & SONS (NEW)" }, found[1])
    assert.equal("'what' is not an address of any network", found[2])
    assert.same({ "NEW", "ODD" }, { skipped[1].symbol, skipped[2].symbol })
  end)

  it("reports an address that is none of its network", function()
    assert.matches("not an address of the network btc", load(simple(id("XBT", EVM)))[1])
  end)
end)

describe("sdn_advanced.xml", function()
  it("has the same addresses in another form", function()
    local found, skipped = load(ADVANCED)
    assert.same({
      { "*", BTC, "OFAC SDN 4711: DOE Jane (XBT)" },
      { "*", EVM, "OFAC SDN 4711: DOE Jane (ETH)" },
    }, found)
    assert.equal("XMR", skipped[1].symbol)
  end)
end)

describe("another XML", function()
  it("is refused", function()
    assert.matches("its root is <html>", (select(2, load "<html></html>")))
    assert.matches("line %d", (select(2, load(simple(id("XBT", BTC)):sub(1, -5)))))
    assert.is_false(load "" or false)
  end)

  it("is refused where it could define entities", function()
    local bomb = '<!DOCTYPE sdnList [<!ENTITY a "aaaa">]><sdnList></sdnList>'
    assert.matches("document type", (select(2, load(bomb))))
  end)

  it("is refused where an element has a very long text", function()
    assert.matches("more than 4096 bytes", (select(2, load(simple(id("XBT", ("1"):rep(5000)))))))
  end)
end)
