-- The one reader of files of addresses. rows_sweep_spec.lua in integration/ holds every verb to it.
local lfs = require "lfs"
local random = require "spec.support.random"
local rows = require "riskscreen.rows"
local temporary = require "spec.support.temporary"
local words = require("riskscreen.util.text").words
local zlib = require "zlib"

local A, B = "0x0000000000000000000000000000000000000001", "0x0000000000000000000000000000000000000002"

describe("a file of rows", function()
  after_each(temporary.clean)

  -- The rows of a text, each with its line, address and network first; and the error.
  local function read(content, options)
    local path = temporary.path "rows"
    temporary.write(path, content)
    options = options or {}
    options.name = "F"
    local input, err = rows.open(path, options)
    local found = {}
    while input do
      local row
      row, err = input:next()
      if not row then
        input:close()
        break
      end
      found[#found + 1] = row
    end
    return found, err and err.message, err
  end

  local function subjects(content, options)
    local list, message = read(content, options)
    for index, row in ipairs(list) do
      list[index] = ("%d %s %s"):format(row.line, row.address, tostring(row.network))
    end
    return list, message
  end

  local function refused(content, problem, options)
    local _, message, err = read(content, options)
    assert.matches(problem, tostring(message), 1, true)
    assert.equal("invalid_argument", err.kind)
  end

  it("has its columns by the names that people use, in any case and order", function()
    local list = read(("id,Network,note, WALLET Address \r\n7, ETH,x, %s \r\n"):format(A))
    assert.same({ { line = 2, address = A, network = "eth", fields = { id = "7", note = "x" } } }, list)
    local headers = "address,network wallet,chain Wallet-Address,BlockChain ADDR,Network walletAddress,chain "
      .. "depositAddress,network to_address,network Recipient,chain"
    for _, header in ipairs(words(headers)) do
      assert.same({ "2 " .. A .. " btc" }, (subjects(header .. "\n" .. A .. ",BTC\n")), header)
    end
    assert.same({ "2 q nil" }, (subjects("a,b\nq,r\n", { address_column = "A" })))
    assert.same({ "2 q r" }, (subjects("a,b\nq,r\n", { address_column = "A", network_column = "b" })))
    refused("a,b\n", "has no column 'c'; its columns are a, b", { address_column = "a", network_column = "c" })
    refused("sep=;\naddress;network\n", "its first line is: sep=;, a line of Excel's own: remove it")
    refused("id,wallett\n1,2\n", "has no column 'address', and its first line is: id,wallett; did you mean 'wallet'?")
    refused("id,wallett\n1,2\n", "--address-column NAME names it")
  end)

  it("has no row of nothing but separators, with which tables of Excel end", function()
    local rows_of_file = { "2 " .. A .. " eth", "4 " .. B .. " eth" }
    assert.same(rows_of_file, (subjects("address;network\n" .. A .. ";eth\n;\n" .. B .. ';eth\n ; \n"";\n;\n')))
    refused("address;network\n;\n", "it has no rows")
    refused("address;network\n" .. A .. ";eth\n;;\n", "line 3: it has 3 fields")
  end)

  it("is refused where a column that is not read has another network than the one that counts", function()
    local settles = ": --network-column NAME names it, --ignore-columns NAME passes it over"
    for _, name in ipairs { "Netz", "Network (L1)", "Protocol", "red" } do
      for cell, shown in pairs { bsc = "'bsc'", [" Tron "] = "' Tron '", ETHEREUM = "'ETHEREUM'" } do
        local fault = "line 3: the column '%s' is not read, and it has the network %s" .. settles
        local rest = ("address,%s\n%s,\n%s,%s\n"):format(name, A, B, cell)
        refused(rest, fault:format(name, shown), { network = "ltc" })
        refused(rest, fault:format(name, shown))
        assert.same(
          { "2 " .. A .. " nil", "3 " .. B .. " nil" },
          (subjects(rest, { ignore_columns = { name:upper() } }))
        )
        local _, message = subjects(('{"address":"%s","%s":"%s"}\n'):format(A, name, cell), { network = "ltc" })
        assert.matches("the column", message, 1, true)
      end
    end
    local own = "address,coin,note\n" .. A .. ",ETH,on a chain\n"
    assert.same({ "2 " .. A .. " nil" }, (subjects(own, { network = "ethereum" })))
    assert.same({ "2 " .. A .. " bsc" }, (subjects("address,coin,chain\n" .. A .. ",eth,bsc\n")))
  end)

  it("is refused for such a column also in a row whose network is empty", function()
    for _, cell in ipairs { "", " " } do
      local rest = ("address,network,coin\n%s,tron,bsc\n%s,%s,bsc\n"):format(A, B, cell)
      refused(rest, "line 3: the column 'coin' is not read, and it has the network 'bsc'", { network = "eth" })
      refused(rest, "line 3: the column 'coin' is not read")
      local both = { "2 " .. A .. " tron", "3 " .. B .. " nil" }
      assert.same(both, (subjects(rest, { network = "eth", ignore_columns = { "coin" } })))
      assert.same(both, (subjects(rest, { network = "bsc" })))
    end
    for _, value in ipairs { '""', "null", '" "' } do
      local rest = ('{"address":"%s","network":%s,"coin":"bsc"}\n'):format(A, value)
      refused(rest, "line 1: the column 'coin' is not read, and it has the network 'bsc'", { network = "eth" })
      assert.same({ "1 " .. A .. " nil" }, (subjects(rest, { network = "bsc" })))
    end
    assert.same({ "1 " .. A .. " nil" }, (subjects(A .. ",,bsc\n", { network = "eth" })))
    refused("wallet,net2,chain,chain2\n" .. A .. ",bsc,,\n", "the column 'net2'", { network_column = "chain" })
  end)

  it("is refused where a column that is not read may hold the address", function()
    local advice = ": --address-column NAME names it, --ignore-columns NAME passes it over"
    local fault = "the column '%s' is not read, and it has the address '%s'" .. advice
    local pairs_of_names = words(
      "from_address,to_address fromAddress,toAddress FROM_ADDRESS,TO_ADDRESS From-Address,address sender,recipient "
        .. "Sender,address receiver,wallet source,address destination,recipient from,address to,address input,address "
        .. "outputs,address source_wallet,wallet withdrawalAddress,depositAddress withdrawal_address,deposit_address "
        .. "Absender,address Empfänger,Wallet Absenderadresse,address Quelladresse,addr Ziel,address "
        .. "walletFrom,address counterparty,crypto_address beneficiary_wallet,address payer,wallet_address"
    )
    for _, pair in ipairs(pairs_of_names) do
      local other, own = pair:match "(.+),(.+)"
      for header, row in pairs {
        [other .. "," .. own] = A .. "," .. B .. ",eth\n",
        [own .. "," .. other] = B .. "," .. A .. ",eth\n",
      } do
        refused(header .. ",network\n" .. row, "line 2: " .. fault:format(other, A))
        local given = { ignore_columns = { other } }
        assert.same({ "2 " .. B .. " eth" }, (subjects(header .. ",network\n" .. row, given)), header)
        given = { address_column = other }
        assert.same({ "2 " .. A .. " eth" }, (subjects(header .. ",network\n" .. row, given)), header)
      end
      local object = ('{"%s":"%s","%s":"%s"}\n'):format(other, A, own, B)
      refused(object, "line 1: " .. fault:format(other, A))
      refused("[" .. object .. "]", fault:format(other, A))
      for _, form in ipairs { '["%s"]', '{"id":"%s"}', '[null,1,{"a":[["","x"],{"b":"%s"}]}]' } do
        local within = ('{"%s":%s,"%s":"%s"}\n'):format(other, form:format(A), own, B)
        refused(within, "line 1: " .. fault:format(other, A))
        assert.same({ "1 " .. B .. " nil" }, (subjects(within, { ignore_columns = { other } })))
        assert.same({ "1 " .. B .. " nil" }, (subjects((within:gsub(A, B)))))
      end
      assert.same({ "1 " .. A .. " nil" }, (subjects(object, { address_column = other })))
    end
    refused("address,,note\n" .. A .. "," .. B .. ",x\n", "line 2: the column '' is not read, and it has the address")
    local hidden = A .. "\226\128\139"
    refused("to_address,from_address\n," .. A .. "\n", "line 2: " .. fault:format("from_address", A))
    refused("address,from\n" .. B .. ",\n" .. B .. "," .. hidden .. "\n", "line 3: the column 'from' is not read")
  end)

  it("may have such a column without an address, and addresses in columns of other names", function()
    local header = "address,from,to,source,email_address,wallet_name,sender,input,deposit,token,network\n"
    local row = A .. ",2026-01-01,2026-02-01,manual,someone-with-a-name@example.com,main,Alice & Sons,,0.25," .. B
    assert.same({ "2 " .. A .. " eth" }, (subjects(header .. row .. ",eth\n")))
    assert.same({ "2 " .. A .. " nil" }, (subjects("address,account\n" .. A .. "," .. B .. "\n")))
    local url = "https://explorer.example.com/address/" .. A
    assert.same({ "2 " .. A .. " nil" }, (subjects("address,address_link\n" .. A .. "," .. url .. "\n")))
  end)

  it("is refused where a second column for networks has another one than the row", function()
    local fault = "line 3: the column '%s' is not read, and it has the network 'bsc'"
    for _, name in ipairs { "from_chain", "toChain", "chain_from", "source_network", "Netzwerk", "blockchain_name" } do
      local content = ("address,network,%s\n%s,eth,Ethereum\n%s,ETH,bsc\n"):format(name, A, B)
      refused(content, fault:format(name))
      local both = { "2 " .. A .. " eth", "3 " .. B .. " eth" }
      assert.same(both, (subjects(content, { ignore_columns = { name } })))
      assert.same(both, (subjects(content, { network_column = "network" })))
      refused(('{"address":"%s","network":"eth","%s":"bsc"}\n'):format(A, name), "the column '" .. name .. "'")
      refused(('{"address":"%s","network":"eth","%s":["bsc"]}\n'):format(A, name), "the column '" .. name .. "'")
    end
    refused("address,from_chain,to_chain\n" .. A .. ",eth,bsc\n", "is not read as the network")
    assert.same({ "2 " .. A .. " eth" }, (subjects("address,network,chain_id,coin\n" .. A .. ",eth,1,bsc\n")))
  end)

  it("is refused where a column is like that of the network and would be passed over", function()
    for _, name in ipairs { "netwrok", "NET", "networks", "Network Name", "chain_id", "crypto chain" } do
      local fault = "did you mean 'network'? --network-column NAME names it"
      refused("address," .. name .. "\n" .. A .. ",bsc\n", fault)
      refused(('{"address":"%s","%s":"bsc"}\n'):format(A, name), fault)
      local content = "address," .. name .. "\n" .. A .. ",bsc\n"
      assert.same({ "2 " .. A .. " bsc" }, (subjects(content, { network_column = name })))
      assert.same({ "2 " .. A .. " eth" }, (subjects(("address,network,%s\n%s,eth,x\n"):format(name, A))))
    end
    assert.same({ "2 " .. A .. " nil" }, (subjects("address,note,name,network_fee,set\n" .. A .. ",a,b,c,d\n")))
  end)

  it("is refused for such a column also after another file was read that ignores it", function()
    for _, name in ipairs { "netwrk", "netwrok_id" } do
      local rest, list = ("address,%s\n%s,56\n"):format(name, A), ('{"address":"%s","%s":56}\n'):format(A, name)
      assert.same({ "2 " .. A .. " nil" }, (subjects(rest, { ignore_columns = { name } })))
      refused(rest, "did you mean 'network'?", { network = "eth" })
      refused(list, "did you mean 'network'?", { network = "eth" })
    end
  end)

  it("of JSON is refused for such a field also where a row lacks the column that was named", function()
    local first = ('{"address":"%s","net":"eth"}\n'):format(A)
    for field, fault in pairs { chian = "did you mean 'network'?", coin = "the column 'coin' is not read" } do
      local list, given = first .. ('{"address":"%s","%s":"bsc"}\n'):format(B, field), { network_column = "net" }
      local found, message = subjects(list, given)
      assert.same({ "1 " .. A .. " eth" }, found)
      assert.matches(fault, message, 1, true)
      given.ignore_columns = { field }
      assert.same({ "1 " .. A .. " eth", "2 " .. B .. " nil" }, (subjects(list, given)))
    end
  end)

  it("names the files that help where one of OFAC's tables is given", function()
    for _, row in ipairs {
      '36,"AEROCARIBBEAN AIRLINES",-0- ,"CUBA",-0- ,-0- ,"a ""b"" c"',
      '36,12,"aka","AERO-CARIBBEAN",-0- ',
      '36,25,-0- ,"Havana","Cuba",-0- ',
    } do
      local advice = "a table of OFAC's, without columns of addresses: take its sdn.xml, or `riskscreen list update`"
      refused(row .. "\r\n", advice)
      refused(row .. "\r\n", advice, { address_column = "x" })
    end
  end)

  it("tells at once that columns of addresses and of networks are missing", function()
    local both = "--address-column NAME names it, and --network-column NAME that of the networks"
    refused("Adresse;Netz\n" .. A .. ";eth\n", "did you mean 'address'? Or " .. both)
    refused("Konto;Netz\n" .. A .. ";eth\n", ". " .. both)
    for content, options in pairs {
      ["Adresse;network\n"] = {},
      ["Adresse;Chain\n"] = {},
      ["Adresse;Netz\n"] = { network = "eth" },
      ["Adresse;netz\n"] = { network_column = "netz" },
    } do
      local _, message = read(content .. A .. ";eth\n", options)
      assert.matches("%-%-address%-column NAME names it$", message)
    end
  end)

  it("names the line of JSON where a byte says little", function()
    local content = ('[\n{"address":"%s"},\n\n{"address":}\n]\n'):format(A)
    refused(content, "F, line 4: expected a value, got '}' at byte")
    refused("\239\187\191" .. content:gsub("\n", "\r\n"), "F, line 4: expected a value")
    refused(content:gsub("\n", "\r"), "F, line 4: expected a value")
    refused("[\n", "F: expected a value, got the end of the text")
    refused('["x"]\n{', "F, line 2: ")
    refused('["x",\n{"a":1,\n"a":2}]', "F, line 3: duplicate name")
  end)

  it("takes an account for an address only where the caller says so", function()
    refused(("account,network\n%s,eth\n"):format(A), "has no column 'address', and its first line is: account,network")
    local given = { address_column = "account" }
    for _, name in ipairs { "adress", "customer_address", "network" } do
      local subject = "2 " .. A .. (name == "network" and " b" or " nil")
      assert.same({ subject }, (subjects(("account,%s\n%s,b\n"):format(name, A), given)), name)
    end
    assert.same({ "1 " .. A .. " nil" }, (subjects(('{"account":"%s","wallet":"%s"}\n'):format(A, B), given)))
  end)

  it("of JSON has no address where it names none, or null, and an account stands beside it", function()
    local both = ('{"address":"%s","account":"%s"}\n'):format(A, B)
    local alone, null = ('{"account":"%s"}\n'):format(B), ('{"address":null,"account":"%s"}\n'):format(B)
    assert.same({ "1  nil" }, (subjects(null)))
    assert.same({ "1  nil" }, (subjects("[" .. null .. "]")))
    assert.same({ "1 " .. A .. " nil", "2  nil", "3  nil" }, (subjects(both .. alone .. null)))
    assert.same({ "1  nil", "2 " .. A .. " nil" }, (subjects(alone .. both)))
    refused(('{"address":null,"wallet":"%s"}\n'):format(A), "two columns name the address, 'address' and 'wallet'")
    refused(('{"address":"%s","network":null,"chain":"bsc"}\n'):format(A), "two columns name the network")
    assert.same({ note = "x" }, read(('{"address":"%s","note":"x","more":null}\n'):format(A))[1].fields)
  end)

  it("is refused where its first line could be a row or a header", function()
    for _, line in ipairs { A .. ",eth,wallet", A .. ";Address", A .. ",address,x", A .. "\teth\tADDR" } do
      refused(line .. "\n", "F, line 1: it could be a header, and it begins with the address '" .. A .. "'")
    end
  end)

  it("may be exported by a spreadsheet: a byte order mark, semicolons or tabs, quotes", function()
    assert.same({ "2 " .. A .. " eth" }, (subjects('\239\187\191"address";"network"\r\n"' .. A .. '";"eth"\r\n')))
    assert.same({ "2 " .. A .. " eth" }, (subjects("address\tnetwork\n" .. A .. "\teth\n")))
    for _, quote in ipairs { "", '"' } do
      local content = ("'address'|'network'\n'" .. A .. "'|'eth'\n"):gsub("'", quote)
      assert.same({ "2 " .. A .. " eth" }, (subjects(content, { delimiter = "|" })))
    end
    local list = read('address,note\n"' .. A .. '","a,""b""\r\nc"\r\n\r\n' .. B .. ",\r\n")
    assert.same({ 'a,"b"\r\nc', "" }, { list[1].fields.note, list[2].fields.note })
    assert.same({ 2, 5 }, { list[1].line, list[2].line })
  end)

  it("may be a plain list, with networks after a comma or a space, notes and comments", function()
    assert.same({ "1 " .. A .. " nil", "2 " .. B .. " nil" }, (subjects(A .. "\n" .. B)))
    local content = "# ours\n\n" .. A .. ' eth # why 5" \n' .. B .. ",btc\n  # end\n"
    assert.same({ "3 " .. A .. " eth", "4 " .. B .. " btc" }, (subjects((content:gsub('5"', "not")))))
    assert.equal(" why not ", read((content:gsub('5"', "not")))[1].fields.note)
    local list = read(A .. ",eth,why,2026-12-31\n")
    assert.same({ note = "why", expires = "2026-12-31" }, list[1].fields)
    refused(A .. " eth since May\n", "more fields than")
    refused(A .. ' # 5" \n' .. B .. ' # 6" \n', "line 1")
  end)

  it("has a note behind '#' in a list whose separator is named, and keeps the columns behind such a sign", function()
    for separator, option in pairs { [","] = false, ["|"] = "|", ["#"] = "#" } do
      local note = separator == "#" and "case 5" or "case #5"
      local line = table.concat({ A, "btc", note, "2020-01-31" }, separator)
      local list = read(line .. "\n", { delimiter = option or nil })
      assert.same({ note = note, expires = "2020-01-31" }, list[1].fields)
      assert.equal("btc", list[1].network)
    end
    assert.same({ note = " why" }, read(A .. "|btc # why\n", { delimiter = "|" })[1].fields)
  end)

  it("may be JSON lines or an array, of texts and objects", function()
    local list = read('{"Wallet":"x","chain":"ETH","n":1}\n\n"y"\n')
    assert.same({ "x", "eth", { n = 1 } }, { list[1].address, list[1].network, list[1].fields })
    assert.same({ "y", 3 }, { list[2].address, list[2].line })
    refused('{"address":"x"}\n{\n', "F, line 2: ")
    refused('{"address":"x"}\n[1]\n', "F, line 2: it is not an object")
    refused('{"address":"x","address":"y"}\n', "F, line 1: duplicate name")
    assert.same({ "1 x nil", "2 y btc" }, (subjects('["x", {"address":"y","network":"btc"}]')))
    refused('{"address":"x","wallet":"y"}\n', "two columns name the address")
    refused("[1", "F: ")
    refused('["x", [2]]', "F, line 2: it is not an object")
    refused('["x"]\n\255', "not UTF-8")
    assert.same({ "1 1 nil" }, (subjects '[{"address":1}]'))
  end)

  it("may be gzip, also of several members, and is told by its bytes", function()
    local function packed(text)
      return (zlib.deflate(nil, 31)(text, "finish"))
    end
    local content = packed("address,network\n" .. A .. ",eth\n") .. packed(B .. ",eth\n")
    assert.same({ "2 " .. A .. " eth", "3 " .. B .. " eth" }, (subjects(content)))
    refused(content:sub(1, -6), "ends early")
    refused(content:sub(1, 30) .. ("x"):rep(20) .. content:sub(51), "damaged")
  end)

  it("reads a network of JSON that is no text as one that is unknown, and not as none", function()
    local list = subjects('{"address":"' .. A .. '","network":false}\n{"address":"' .. A .. '","network":null}\n')
    assert.same({ "1 " .. A .. " false", "2 " .. A .. " nil" }, list)
    list = read('{"address":"' .. A .. '","network":false}\n')
    assert.equal("string", type(list[1].network))
  end)

  it("may have longer rows where the library has written it", function()
    local row = A .. "," .. ("x"):rep(5 * 1024 * 1024) .. ",allow\n"
    refused("address,note,action\n" .. row, "line 2: the line is longer than 4194304 bytes")
    assert.equal(1, #read("address,note,action\n" .. row, { needs = { "action" } }))
    assert.equal(1, #read('address,note,action\n"' .. A .. '"' .. row:sub(#A + 1), { needs = { "action" } }))
    row = A .. "," .. ("x"):rep(33 * 1024 * 1024) .. ",allow\n"
    refused("address,note,action\n" .. row, "line 2: the line is longer than 33554432 bytes", { needs = { "action" } })
  end)

  it("may have a torn last row in a file of decisions, whose writer was killed", function()
    local whole = "address,action,note\n" .. A .. ',allow,"a\nb"\n'
    for torn, fault in pairs {
      [B .. ",al"] = "the row is not complete: it has 2 fields, and the first line has 3",
      [B .. ',allow,"x'] = "the row is not complete: a quote has no end",
    } do
      local list = read(whole .. torn, { needs = { "action" } })
      assert.equal(2, #list)
      assert.equal(4, list[2].line)
      assert.equal(fault, list[2].fault)
      refused(whole .. torn, "line 4: ")
      refused(whole .. torn .. "\n" .. B .. ",allow,x\n", "line 4: ", { needs = { "action" } })
    end
  end)

  it("of the command has no last row that lacks its end: its last cell may be cut", function()
    local header, row = "address,action,reasons,time\r\n", A .. ',allow,"a\r\nb",2026-11-28T10:00:00Z'
    for length = 1, #row + 1 do
      local cut = (row .. "\r"):sub(1, length)
      local is_in_quotes = select(2, cut:gsub('"', "")) == 1 and cut:find "\n"
      local content = header .. row .. "\r\n" .. cut
      if is_in_quotes then
        refused(content, "F, line 4: a quote has no end", { needs = { "action" } })
      else
        local list = read(content, { needs = { "action" } })
        assert.same({ 2, 2, 4 }, { #list, list[1].line, list[2].line }, cut)
        assert.matches("the row is not complete: ", tostring(list[2].fault), 1, true)
      end
    end
    for _, other in ipairs {
      header .. row .. "\r\n",
      "address,action\r\n" .. A .. ",allow",
      header:gsub("\r", "") .. row,
    } do
      assert.is_nil(read(other, { needs = { "action" } })[1].fault, other)
    end
  end)

  it("ends its lines with LF, CRLF or CR", function()
    for _, ending in ipairs { "\n", "\r\n", "\r" } do
      local content = table.concat({ "address,note", A .. ',"a' .. ending .. 'b"', B .. ",x" }, ending)
      for _, last in ipairs { "", ending } do
        local list = read(content .. last)
        assert.same({ 2, 4 }, { list[1].line, list[2].line })
        assert.equal("a" .. ending .. "b", list[1].fields.note)
      end
    end
    refused("address,note\n" .. A .. ",a\r" .. B .. ",b\n", "line 2: its end is not that of the first line")
    for _, content in ipairs { "address\n%s\r\n%s\n", "address\r\n%s\n%s\r\n" } do
      assert.same({ "2 " .. A .. " nil", "3 " .. B .. " nil" }, (subjects(content:format(A, B))))
    end
    refused("address,note\r" .. A .. ",a\n" .. B .. ",b\r", "line 2: its end is not that of the first line")
  end)

  it("is refused with the line where two programs could read it in two ways", function()
    local header = "address,note\n" .. A .. ",x\n"
    refused(header .. A .. ',5" rod\n' .. B .. ',6" rod\n', "F, line 3: a quote stands within a field")
    refused(header .. A .. ',"x\n' .. B .. ",y\n", "F, line 3: a quote has no end")
    refused(header .. A .. ',"x"y\n', "F, line 3: text follows a closing quote")
    refused(header .. '"' .. A .. '",x\r' .. B .. "\n", "F, line 3: its end is not that of the first line")
    refused(A .. "\n" .. A .. '# 5"\n' .. B .. '# 6"\n', "F, line 2: a quote in its note has no end")
    refused(A .. ' eth\n"' .. B .. '" eth\n', "F, line 2: a quote stands in a plain list")
    refused(header .. A .. ",x,y\n", "F, line 3: it has 3 fields, and the first line has 2")
    refused(header .. A .. "\n", "F, line 3: it has 1 field, and the first line has 2")
    refused("address\n" .. A .. ";eth\n", "F, line 2: it has 2 fields, and the first line has 1")
    refused("address,wallet\n", "two columns name the address, 'address' and 'wallet': --address-column")
    refused("to_address,depositAddress\n", "two columns name the address")
    refused("address,network,chain\n", "two columns name the network")
    refused("address,id,ID\n", "two columns are called 'ID'")
    refused(A .. "\n" .. B .. ",btc\n", "F, line 2: it has 2 fields, and the first line has 1")
    refused(A .. "\n" .. B .. " btc\n", "F, line 2: it has 2 fields, and the first line has 1")
    refused("address,x;address\n", "--delimiter")
    assert.same({ "2 q nil" }, (subjects("address,wallet\nq,r\n", { address_column = "address" })))
    assert.same({ "2 q nil" }, (subjects("account,address\n7,q\n")))
  end)

  it("is UTF-8, or what the caller says", function()
    local content = "address,note\n" .. A .. ",caf\233\n"
    refused(
      content,
      "F, line 2: it has bytes that are not UTF-8: save the file as UTF-8, or give its encoding: --encoding latin1"
    )
    assert.equal("café", read(content, { encoding = "latin1" })[1].fields.note)
    refused("address,note\n" .. A .. ",\237\160\128\n", "not UTF-8")
    assert.equal("né€😀", read("address,note\n" .. A .. ",né€😀\n")[1].fields.note)
    refused("\255\254a\0d\0", "it is UTF-16")
    refused("\254\255\0a\0d", "it is UTF-16")
    refused("a\0d\0d\0", "it is UTF-16")
    refused("PK\3\4" .. ("x"):rep(30), "it is a workbook")
    refused("\137RSL\r\n\26\n", "it is a compiled list")
    refused("<sdnList/>", "it is XML")
    refused("<html><table>", "it is XML or HTML: save its rows as CSV")
  end)

  it("has rows, unless the caller says that it may be empty", function()
    for _, content in ipairs { "", "\n\n", "address\n", "[]" } do
      refused(content, "F: it has no rows")
      assert.same({ {} }, { read(content, { allow_empty = true }) })
    end
  end)

  it("keeps a row whose address is bad, and ends after too many of them", function()
    assert.same({ "2 what nil", "3  nil" }, (subjects("address,n\nwhat,\n,1\n")))
    local path = temporary.path "rows"
    temporary.write(path, "address\nx\n")
    local input = rows.open(path, { max_invalid = 2 })
    assert.is_nil(input:invalid(2, "bad"))
    assert.is_nil(input:invalid(3, "bad"))
    assert.matches("line 4: more invalid rows than 2, the last one is this: bad", input:invalid(4, "bad").message)
    input:close()
  end)

  it("has the columns that are to be kept", function()
    local keep = { "Note" }
    refused("address,id\n" .. A .. ",1\n", "--keep: the file has no column 'Note'; its columns are address, id", {
      keep = keep,
    })
    for _, content in ipairs { "address,note\n" .. A .. ",x\n", A .. ",,x\n", A .. "#x\n" } do
      local path = temporary.path "rows"
      temporary.write(path, content)
      local input = assert(rows.open(path, { keep = keep }))
      assert.equal("x", input:field(input:next(), "Note"))
      input:close()
    end
    refused(A .. "\n", "--keep: the file has no column 'id'", { keep = { "id" } })
  end)

  it("is checked to its end before its first row where the caller asks for it", function()
    local list, message = read("address,n\n" .. A .. ",1\n" .. B .. ",2,3\n", { checked_first = true })
    assert.same({}, list)
    assert.matches("line 3", message, 1, true)
    assert.equal(1, #read("address,n\n" .. A .. ",1\n", { checked_first = true }))
  end)

  it("holds no more than 4 MiB of a row", function()
    local long = ("x"):rep(6000000)
    refused("address,note\n" .. A .. "," .. long .. "\n", "F, line 2: the line is longer than 4194304 bytes")
    refused("address,note\n" .. A .. ',"' .. ("xxx\n"):rep(1048577) .. '"\n', "F, line 2: a quote has no end")
  end)

  it("is read in linear time, whatever is in it", function()
    local before = os.clock()
    for _, rest in ipairs {
      '"' .. ("x\n"):rep(500000),
      '"' .. ('"'):rep(1000000),
      (" "):rep(1000000) .. "x",
      ('"x",'):rep(300000),
    } do
      read("address,note\n" .. A .. "," .. rest)
    end
    read(("x"):rep(6000000))
    read(("address\n" .. ("\r"):rep(6000000)))
    assert.is_true(os.clock() - before < 20)
  end)

  it("has one kind, however its bytes come", function()
    local content = ('\239\187\191 \n\n   \n{"address":"%s"}\n'):format(A)
    for size = 1, #content do
      local from = 1 - size
      local pipe = {
        read = function()
          from = from + size
          return from <= #content and content:sub(from, from + size - 1) or nil
        end,
      }
      assert.equal(A, assert(rows.open(pipe, { name = "F" })):next().address)
    end
  end)

  it("gives back any fields, in pieces of any size", function()
    local numbers = random.new(20)
    local parts = { "a", '"', ",", ";", "\n", "\r\n", "é", " ", "\0" }
    for _ = 1, 200 do
      local expected, lines = {}, { "x,address" }
      for row = 1, 3 do
        local text = ""
        for _ = 1, numbers.integer(5) - 1 do
          text = text .. numbers.pick(parts)
        end
        expected[row], lines[row + 1] = text, '"' .. text:gsub('"', '""') .. '",a'
      end
      local content, size, from = table.concat(lines, "\n") .. "\n", numbers.integer(9), 1
      local source = {}
      function source.read()
        local piece = content:sub(from, from + size - 1)
        from = from + #piece
        return piece ~= "" and piece or nil
      end
      local found = {}
      for row in assert(rows.open(source, {})):each() do
        found[#found + 1] = row.fields.x
      end
      assert.same(expected, found)
    end
  end)

  it("cannot be read where the disk fails", function()
    local source = {}
    function source.read()
      return nil, "disk gone"
    end
    local _, err = rows.open(source, { name = "F" })
    assert.matches("F: the file cannot be read: disk gone", err.message, 1, true)
  end)
end)

describe("a file that is changed while it is read", function()
  after_each(temporary.clean)

  local PIECES = 4000 -- rows, which are several pieces of the file

  -- A file of rows that was written a while ago, so that its times tell of any change.
  local function make(from, to, step)
    local lines = { "address,network" }
    for number = from, to, step do
      lines[#lines + 1] = ("0x%040x,eth"):format(number)
    end
    local path, content = temporary.path "rows.csv", table.concat(lines, "\n") .. "\n"
    temporary.write(path, content)
    assert(lfs.touch(path, 1700000000))
    return path, content
  end

  -- The rows up to the end of a file, and the error.
  local function rest(input)
    local count = 0
    while true do
      local row, err = input:next()
      if not row then
        return count, err
      end
      count = count + 1
    end
  end

  it("gives out no row of its new content", function()
    local _, other = make(PIECES, 1, -1)
    local path = make(1, PIECES, 1)
    for _, options in ipairs { { checked_first = true }, {} } do
      make(1, PIECES, 1)
      local input = assert(rows.open(path, options))
      assert(input:next())
      temporary.write(path, other)
      local count, err = rest(input)
      assert.is_true(count < PIECES - 1)
      assert.equal(path .. ": it was changed while it was read", err.message)
    end
  end)

  it("is refused also where its times were set back, or where it was read ahead", function()
    local path, content = make(1, 3, 1)
    local input = assert(rows.open(path, { checked_first = true }))
    assert(os.execute("sleep 0.02")) -- so that the clock of the file system goes on
    temporary.write(path, (content:gsub("1,eth", "9,eth")))
    assert(lfs.touch(path, 1700000000))
    local count, err = rest(input)
    assert.same({ 3, true }, { count, err ~= nil })
  end)

  it("is read to its end where another file has taken its name", function()
    local path = make(1, PIECES, 1)
    local input = assert(rows.open(path, { checked_first = true }))
    temporary.write(path .. ".new", "address\n")
    assert(os.rename(path .. ".new", path))
    assert.same({ PIECES }, { rest(input) })
  end)

  it("may grow where it holds decisions", function()
    local path = temporary.path "results.csv"
    temporary.write(path, "address,action\n" .. A .. ",allow\n")
    assert(lfs.touch(path, 1700000000))
    local input = assert(rows.open(path, { needs = { "action" } }))
    local file = assert(io.open(path, "ab"))
    file:write(B, ",allow\n")
    file:close()
    local _, err = rest(input)
    assert.is_nil(err)
  end)
end)
