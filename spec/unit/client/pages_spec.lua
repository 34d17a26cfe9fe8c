local json = require "riskscreen.json"
local runtime = require "riskscreen.runtime"
local random = require "spec.support.random"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"

local tasks = runtime.tasks

local function item(number)
  return { address = ("0x%040x"):format(number), network = "eth", createdAt = 1767225600 + number }
end

local function items(from, to)
  local list = {}
  for number = from, to do
    list[#list + 1] = item(number)
  end
  return list
end

local function addresses(list)
  local all = {}
  for position, entry in ipairs(list) do
    all[position] = tonumber(entry.address:sub(3), 16)
  end
  return all
end

local function numbers(from, to)
  return addresses(items(from, to))
end

local function pagination(page, size, pages, count)
  return { current_page = page, per_page = size, total_pages = pages, total_items = count }
end

-- A client of a service that answers with `answer(page, size, nth)`: items and pagination, or nil and a reply.
local function client_of(answer)
  local asked = {}
  local client = riskscreen.new {
    access_key = "test-key",
    retry = false,
    transport = function(request)
      local page = tonumber(request.target:match "[?&]page=(%d+)")
      asked[#asked + 1] = page
      local size = tonumber(request.target:match "[?&]pageSize=(%d+)") or 10
      local data, described = answer(page, size, #asked, request)
      if not data then
        return described
      end
      data = data[1] and data or json.empty_array()
      return recorder.reply(200, { success = true, code = 1, msg = "SUCCESS", data = data, pagination = described })
    end,
  }
  return client, asked
end

-- One page of a list.
local function cut(list, page, size)
  local data = {}
  for position = (page - 1) * size + 1, math.min(page * size, #list) do
    data[#data + 1] = list[position]
  end
  return data, pagination(page, size, math.ceil(#list / size), #list)
end

-- A client of a list; `change[n]` is called with it before the n-th request is answered.
local function client_of_list(list, change)
  return client_of(function(page, size, nth)
    if change and change[nth] then
      change[nth](list)
    end
    return cut(list, page, size)
  end)
end

local function collect(iterate)
  local all = {}
  for entry in iterate do
    all[#all + 1] = entry
  end
  return all
end

-- The values of an iterator before it raises, and the raised error.
local function collect_until_raised(iterate)
  local all = {}
  local ok, err = pcall(function()
    for entry in iterate do
      all[#all + 1] = entry
    end
  end)
  assert.is_false(ok)
  return all, err
end

describe("walking a list", function()
  it("returns every item of every page, in order", function()
    local client = client_of_list(items(1, 25))
    assert.same(numbers(1, 25), addresses(client.blacklist:all {}))
  end)

  it("iterates over the items", function()
    local client = client_of_list(items(1, 25))
    assert.same(numbers(1, 25), addresses(collect(client.blacklist:each {})))
  end)

  describe("in pages that the service finds too long", function()
    local list = items(1, 25)
    local function refusing(reply)
      return client_of(function(page, size)
        if size > 10 then
          return nil, reply
        end
        return cut(list, page, size)
      end)
    end
    local refusal = { success = false, code = 4001, msg = "pageSize is too large", status = "FAIL" }

    for status, kind in pairs { [400] = "bad_request", [200] = "api" } do
      it("goes on with the service's own length after a refusal of kind " .. kind, function()
        local client, asked = refusing(recorder.reply(status, refusal))
        assert.same(numbers(1, 25), addresses(client.blacklist:all { pageSize = 100, prefetch = 2 }))
        assert.same({ 1, 1, 2, 3 }, asked)
      end)
    end

    it("fails where a page of another length would hold other items", function()
      local client, asked = refusing(recorder.reply(400, refusal))
      local all, err = client.blacklist:all { pageSize = 100, page = 2 }
      assert.is_nil(all)
      assert.same({ "bad_request", 2 }, { err.kind, err.page })
      assert.same({ 2 }, asked)
    end)

    it("fails after any other refusal at once", function()
      local client, asked = refusing(recorder.reply(401, refusal))
      assert.equal("unauthorized", select(2, client.blacklist:all { pageSize = 100 }).kind)
      assert.same({ 1 }, asked)
    end)
  end)

  it("iterates over the pages and their responses", function()
    local client = client_of_list(items(1, 5))
    local seen = {}
    for page, response in client.blacklist:pages { pageSize = 2 } do
      seen[#seen + 1] = { addresses(page), response.pagination.current_page }
    end
    assert.same({ { { 1, 2 }, 1 }, { { 3, 4 }, 2 }, { { 5 }, 3 } }, seen)
  end)

  it("works on the whitelist", function()
    local list = { { address = "T1", chain = "tron" }, { address = "T2", chain = "tron" } }
    assert.same(list, client_of_list(list).whitelist:all { pageSize = 1 })
  end)

  it("requests each page once", function()
    local client, asked = client_of_list(items(1, 25))
    client.blacklist:all()
    assert.same({ 1, 2, 3 }, asked)
  end)

  it("sends nothing before the first item is wanted", function()
    local client, asked = client_of_list(items(1, 25))
    client.blacklist:each { prefetch = 2 }
    assert.same({}, asked)
  end)

  it("begins at the given page", function()
    local client, asked = client_of_list(items(1, 25))
    assert.same(numbers(11, 25), addresses(client.blacklist:all { page = 2 }))
    assert.same({ 2, 3 }, asked)
  end)

  it("returns nothing when it begins after the end", function()
    assert.same({}, client_of_list(items(1, 5)).blacklist:all { page = 3 })
  end)

  it("returns nothing for an empty list", function()
    local client, asked = client_of_list {}
    assert.same({}, client.blacklist:all {})
    assert.same({ 1 }, asked)
  end)

  it("stops at the limit and requests no further page", function()
    local client, asked = client_of_list(items(1, 25))
    assert.same(numbers(1, 10), addresses(client.blacklist:all { limit = 10 }))
    assert.same(numbers(1, 12), addresses(client.blacklist:all { limit = 12 }))
    assert.same({ 1, 1, 2 }, asked)
  end)

  it("applies the call's options to each page", function()
    local seen = {}
    local client = client_of(function(page, size, _, request)
      seen[#seen + 1] = request.timeout .. " " .. request.headers["X-Trace"]
      return cut(items(1, 20), page, size)
    end)
    client.blacklist:all({}, { timeout = 4.5, headers = { ["X-Trace"] = "t" } })
    assert.same({ "4.5 t", "4.5 t" }, seen)
  end)

  it("does not change the caller's table", function()
    local given = { pageSize = 2, limit = 3, prefetch = 1 }
    client_of_list(items(1, 5)).blacklist:all(given)
    assert.same({ pageSize = 2, limit = 3, prefetch = 1 }, given)
  end)
end)

describe("a walk that fails", function()
  local function failing_on(page_that_fails, reply)
    return client_of(function(page, size)
      if page == page_that_fails then
        return nil, reply or recorder.reply(500, {})
      end
      return cut(items(1, 25), page, size)
    end)
  end

  it("raises the error object after the items before it", function()
    local got, err = collect_until_raised(failing_on(3).blacklist:each {})
    assert.same(numbers(1, 20), addresses(got))
    assert.is_true(riskscreen.errors.is(err))
    assert.equal("server", err.kind)
  end)

  it("raises from the iterator over pages", function()
    local got, err = collect_until_raised(failing_on(2).blacklist:pages {})
    assert.same({ 1, "server" }, { #got, err.kind })
  end)

  it("names the page at which it stopped", function()
    local _, err = failing_on(2).blacklist:all {}
    assert.equal(2, err.page)
  end)

  it("returns nil and the error from all()", function()
    local all, err = failing_on(2).blacklist:all {}
    assert.is_nil(all)
    assert.equal("server", err.kind)
  end)

  it("raises the same error again and sends nothing", function()
    local client, asked = failing_on(1)
    local iterate = client.blacklist:each {}
    local _, first = pcall(iterate)
    local _, second = pcall(iterate)
    assert.equal(first, second)
    assert.same({ 1 }, asked)
  end)

  it("returns nothing more after its end", function()
    local iterate = client_of_list(items(1, 1)).blacklist:each {}
    iterate()
    assert.same({ nil, nil }, { iterate(), iterate() })
  end)

  it("sends nothing when a parameter is wrong", function()
    local client, asked = client_of_list(items(1, 5))
    local _, err = collect_until_raised(client.blacklist:each { page = 0 })
    assert.same({ "invalid_argument", "page", false }, { err.kind, err.field, err.sent })
    assert.same({}, asked)
  end)

  for name, value in pairs { prefetch = 33, limit = 0, max_pages = 0 } do
    it("refuses a value out of range: " .. name, function()
      local _, err = client_of_list(items(1, 5)).blacklist:all { [name] = value }
      assert.same({ "invalid_argument", name }, { err.kind, err.field })
    end)
  end

  it("suggests the right name for a misspelt parameter", function()
    local _, err = client_of_list(items(1, 5)).blacklist:all { prefech = 1 }
    assert.matches("did you mean 'prefetch'?", err.message, 1, true)
  end)

  it("raises cancelled after the client was closed", function()
    local client = client_of_list(items(1, 25))
    local iterate = client.blacklist:pages {}
    iterate()
    client:close()
    local _, err = pcall(iterate)
    assert.equal("cancelled", err.kind)
  end)

  for _, name in ipairs { "pages", "each", "all" } do
    it("raises misuse at the caller's line: " .. name, function()
      local client = client_of_list {}
      local line = debug.getinfo(1, "l").currentline + 2
      local ok, message = pcall(function()
        client.blacklist[name](client.blacklist, 5)
      end)
      assert.is_false(ok)
      assert.matches("pages_spec.lua:" .. line .. ": parameters must be a table", message, 1, true)
    end)
  end
end)

describe("a list that changes while it is walked", function()
  local function remove_first(list)
    table.remove(list, 1)
  end

  local function insert_first(list)
    table.insert(list, 1, item(1000))
  end

  it("is read to its new end when it grows", function()
    local list = items(1, 20)
    local client = client_of_list(list, {
      [2] = function()
        list[21] = item(21)
      end,
    })
    assert.same(numbers(1, 21), addresses(client.blacklist:all {}))
  end)

  it("reports an item once that moved to a later page", function()
    local client = client_of_list(items(1, 20), { [2] = insert_first })
    assert.same(numbers(1, 20), addresses(client.blacklist:all {}))
  end)

  it("fails when it shrinks, because unread items may have moved to earlier pages", function()
    local client, asked = client_of_list(items(1, 30), { [2] = remove_first })
    local got, err = collect_until_raised(client.blacklist:each {})
    assert.same(numbers(1, 10), addresses(got))
    assert.same({ "protocol", 2, true }, { err.kind, err.page, err.retryable })
    assert.matches("the list became shorter", err.message, 1, true)
    assert.same({ 1, 2 }, asked)
  end)

  it("may move by a whole page", function()
    local client = client_of_list(items(1, 20), {
      [2] = function(list)
        for number = 110, 101, -1 do
          table.insert(list, 1, item(number))
        end
      end,
    })
    assert.same(numbers(1, 20), addresses(client.blacklist:all {}))
  end)

  it("fails when the last page vanished and the service repeats the page before", function()
    local list = items(1, 21)
    local client = client_of(function(page, size, nth)
      if nth == 3 then
        table.remove(list, 1)
      end
      return cut(list, math.min(page, math.ceil(#list / size)), size)
    end)
    local _, err = client.blacklist:all {}
    assert.matches("the list became shorter", err.message, 1, true)
  end)

  it("fails when total_pages alone is given and shrinks", function()
    local client = client_of(function(page, size)
      local data = cut(items(1, 30), page, size)
      return data, { total_pages = page == 1 and 3 or 2 }
    end)
    local _, err = client.blacklist:all {}
    assert.matches("the list became shorter", err.message, 1, true)
  end)

  it("fails after max_pages", function()
    local client, asked = client_of(function(page, size)
      return items(page * size + 1, page * size + size), pagination(page, size, page + 1, (page + 1) * size)
    end)
    local got, err = collect_until_raised(client.blacklist:each { max_pages = 7 })
    assert.same({ 70, 7, "protocol" }, { #got, #asked, err.kind })
    assert.matches("max_pages", err.message, 1, true)
  end)

  it("fails with an error, too, when the totals are as large as an answer may name", function()
    local client = client_of(function(page)
      return items(1, 1), pagination(page, 9e15, page, 9e15)
    end)
    local got, err = collect_until_raised(client.blacklist:each { page = 5000 })
    assert.same({ 1, "protocol" }, { #got, err.kind })
    assert.matches("there are 0 items from page 5000 on and gave 1", err.message, 1, true)
  end)

  for _, prefetch in ipairs { 0, 3 } do
    it("gives every item that stayed once, or fails: random changes, prefetch = " .. prefetch, function()
      for seed = random.SEED, random.SEED + 299 do
        local draw = random.new(seed)
        local list, next_number, changes, removals = items(1, 10 + draw.integer(30)), 100, 0, 0
        local stayed = {}
        for _, entry in ipairs(list) do
          stayed[entry] = true
        end
        local may_shrink = seed % 2 == 0
        local client = client_of(function(page, size, nth)
          local kind = nth > 1 and changes < 3 and draw.integer(4)
          if kind == 1 and may_shrink then
            stayed[table.remove(list, draw.integer(#list)) or false] = nil
            removals = removals + 1
          elseif kind == 2 then
            next_number = next_number + 1
            table.insert(list, draw.integer(#list), item(next_number))
          end
          changes = changes + (kind and kind <= 2 and 1 or 0)
          return cut(list, page, size)
        end)
        local all, err = client.blacklist:all { pageSize = draw.integer(4) + 1, prefetch = prefetch }
        if not all then
          assert.matches("the list became shorter", err.message, 1, true)
          assert.is_true(removals > 0, ("seed %d failed without a removal"):format(seed))
        end
        local times = {}
        for _, entry in ipairs(all or {}) do
          times[entry.address] = (times[entry.address] or 0) + 1
          assert.equal(1, times[entry.address], ("seed %d doubled %s"):format(seed, entry.address))
        end
        for entry in pairs(all and stayed or {}) do
          assert.equal(1, times[entry.address], ("seed %d lost %s"):format(seed, entry.address))
        end
      end
    end)
  end
end)

describe("two items of a list", function()
  local function walk(first, second)
    return #client_of_list({ first, second }).blacklist:all { pageSize = 1 }
  end

  it("are different when any field differs", function()
    local other = item(1)
    other.createdAt = other.createdAt + 1
    assert.equal(2, walk(item(1), other))
  end)

  it("are different when only one has risks", function()
    local other = item(1)
    other.risks = { { riskLevel = "high", riskType = "scam" } }
    assert.equal(2, walk(item(1), other))
  end)
end)

describe("an item", function()
  -- The same item with its fields set in a given order.
  local function build(from, to, step)
    local built = item(1)
    for number = from, to, step do
      built["field" .. number] = number
    end
    return built
  end

  it("is the same for any order of its fields", function()
    local client = client_of_list({ build(1, 40, 1), item(2), build(40, 1, -1), item(3) })
    assert.equal(3, #client.blacklist:all { pageSize = 2 })
  end)
end)

describe("a service that contradicts itself", function()
  local function walk(answer)
    return collect_until_raised(client_of(answer).blacklist:each {})
  end

  it("is detected when it returns another page", function()
    local _, err = walk(function(_, size)
      return items(1, 10), pagination(1, size, 3, 30)
    end)
    assert.same({ "protocol", 2 }, { err.kind, err.page })
    assert.matches("page 2 was asked for and page 1 came", err.message, 1, true)
  end)

  it("is detected when it repeats an earlier page", function()
    local got, err = walk(function(page, size)
      return cut(items(1, 30), math.min(page, 2), size), pagination(page, size, 3, 30)
    end)
    assert.same(numbers(1, 20), addresses(got))
    assert.matches("page 3 has nothing but items of earlier pages", err.message, 1, true)
  end)

  it("is detected at the end when its pages held fewer items than it counted", function()
    local got, err = walk(function(page, size)
      return page == 2 and {} or cut(items(1, 30), page, size), pagination(page, size, 3, 30)
    end)
    assert.equal(20, #got)
    assert.matches("30 items from page 1 on and gave 20", err.message, 1, true)
  end)

  it("is detected when the pages change their length", function()
    local _, err = walk(function(page)
      return items(page * 10 - 9, page * 10), pagination(page, page == 1 and 10 or 20, 3, 30)
    end)
    assert.matches("have become 20 items long; they were 10", err.message, 1, true)
  end)

  it("is detected when its items do not fit on its pages", function()
    local _, err = walk(function(page, size)
      return items(1, 10), pagination(page, size, 1, 30)
    end)
    assert.matches("30 items from page 1 on and gave 10", err.message, 1, true)
  end)

  it("is detected when there are items and no pages", function()
    local _, err = walk(function(page, size)
      return items(1, 10), pagination(page, size, 0, 0)
    end)
    assert.matches("page 1 has items and total_pages is 0", err.message, 1, true)
  end)
end)

describe("an empty page in the middle", function()
  it("does not end the list", function()
    local client = client_of(function(page, size)
      local data = { items(1, 10), {}, items(11, 15) }
      return data[page], pagination(page, size, 3, 15)
    end)
    assert.same(numbers(1, 15), addresses(client.blacklist:all {}))
  end)

  it("is skipped by the iterator over pages", function()
    local client = client_of(function(page, size)
      local data = { items(1, 10), {}, items(11, 15) }
      return data[page], pagination(page, size, 3, 15)
    end)
    assert.equal(2, #collect(client.blacklist:pages {}))
  end)
end)

describe("a list without pagination", function()
  local function client_without(pages)
    return client_of(function(page)
      return pages[page] or {}
    end)
  end

  it("does not end with a page shorter than one before it", function()
    local client, asked = client_without { items(1, 10), items(11, 13), items(14, 23) }
    assert.same(numbers(1, 23), addresses(client.blacklist:all {}))
    assert.same({ 1, 2, 3, 4 }, asked)
  end)

  it("may be empty", function()
    local client, asked = client_without {}
    assert.same({}, client.blacklist:all {})
    assert.same({ 1 }, asked)
  end)

  it("ends with an empty page", function()
    local client, asked = client_without { items(1, 10), items(11, 20) }
    assert.same(numbers(1, 20), addresses(client.blacklist:all {}))
    assert.same({ 1, 2, 3 }, asked)
  end)

  it("does not end with a first page shorter than pageSize", function()
    local client = client_without { items(1, 5), items(6, 10), items(11, 12) }
    assert.same(numbers(1, 12), addresses(client.blacklist:all { pageSize = 100 }))
  end)

  it("fails when every page is the same", function()
    local client, asked = client_of(function()
      return items(1, 10)
    end)
    local _, err = client.blacklist:all {}
    assert.same({ "protocol", 2 }, { err.kind, #asked })
  end)

  it("is not fetched ahead", function()
    local client, asked = client_without { items(1, 10), items(11, 12) }
    client.blacklist:all { prefetch = 5 }
    assert.same({ 1, 2, 3 }, asked)
  end)

  it("fails when its pages hold more than total_items", function()
    for _, total in ipairs { 0, 5, 15 } do
      local client = client_of(function(page, size)
        return cut(items(1, 30), page, size), { total_items = total, per_page = size }
      end)
      local list, err = client.blacklist:all {}
      assert.is_nil(list)
      assert.equal("protocol", err.kind)
    end
  end)

  it("ends by total_items alone", function()
    local client, asked = client_of(function(page, size)
      return cut(items(1, 20), page, size), { total_items = 20 }
    end)
    assert.same(numbers(1, 20), addresses(client.blacklist:all {}))
    assert.same({ 1, 2 }, asked)
  end)
end)

describe("pages fetched ahead", function()
  -- A client of a list. Page n arrives when the test calls let(n).
  local function gated(list, answer)
    local gates, open, ended = {}, {}, {}
    for page = 1, 10 do
      gates[page] = tasks.signal()
    end
    local client, asked = client_of(function(page, size)
      if not open[page] then
        gates[page]:wait()
      end
      ended[#ended + 1] = page
      return (answer or cut)(list, page, size)
    end)
    local function let(page)
      open[page] = true
      gates[page]:notify()
    end
    return client, asked, let, ended
  end

  it("are requested while the caller works", function()
    riskscreen.run(function()
      local client, asked, let = gated(items(1, 50))
      let(1)
      local iterate = client.blacklist:pages { prefetch = 2 }
      iterate()
      riskscreen.sleep(0)
      assert.same({ 1, 2, 3 }, asked)
      for page = 2, 5 do
        let(page)
      end
    end)
  end)

  it("are requested one by one as pages are taken", function()
    riskscreen.run(function()
      local client, asked, let = gated(items(1, 50))
      let(1)
      let(2)
      local iterate = client.blacklist:pages { prefetch = 2 }
      iterate()
      iterate()
      riskscreen.sleep(0)
      assert.same({ 1, 2, 3, 4 }, asked)
      for page = 3, 5 do
        let(page)
      end
    end)
  end)

  it("are reported in order, whatever order they arrive in", function()
    riskscreen.run(function()
      local client, _, let, ended = gated(items(1, 40))
      let(1)
      local iterate = client.blacklist:each { prefetch = 3 }
      local got = { iterate() }
      riskscreen.sleep(0)
      for page = 4, 2, -1 do
        let(page)
        riskscreen.sleep(0)
      end
      for entry in iterate do
        got[#got + 1] = entry
      end
      assert.same({ 1, 4, 3, 2 }, ended)
      assert.same(numbers(1, 40), addresses(got))
    end)
  end)

  it("end at the last page", function()
    local client, asked = client_of_list(items(1, 25))
    assert.equal(25, #client.blacklist:all { prefetch = 8 })
    assert.same({ 1, 2, 3 }, asked)
  end)

  it("end at the limit", function()
    local client, asked = client_of_list(items(1, 90))
    assert.equal(25, #client.blacklist:all { prefetch = 8, limit = 25 })
    assert.same({ 1, 2, 3 }, asked)
  end)

  it("end at max_pages", function()
    local client, asked = client_of_list(items(1, 90))
    client.blacklist:all { prefetch = 8, max_pages = 3 }
    assert.same({ 1, 2, 3 }, asked)
  end)

  it("fail after the items before them", function()
    local client = client_of(function(page, size)
      if page == 3 then
        return nil, recorder.reply(500, {})
      end
      return cut(items(1, 50), page, size)
    end)
    local got, err = collect_until_raised(client.blacklist:each { prefetch = 4 })
    assert.same(numbers(1, 20), addresses(got))
    assert.same({ "server", 3 }, { err.kind, err.page })
  end)

  it("stop when the caller takes no further item", function()
    local client, asked = client_of_list(items(1, 90))
    riskscreen.run(function()
      client.blacklist:each { prefetch = 2 }()
    end)
    assert.is_true(#asked <= 3)
  end)
end)
