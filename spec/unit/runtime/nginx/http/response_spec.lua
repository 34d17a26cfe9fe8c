-- The answers of spec/support/wire.lua as they arrive: whole, byte by byte, and cut at every place.
local answer = require "riskscreen.runtime.nginx.http.response"
local head = require "riskscreen.runtime.nginx.http.head"
local json = require "riskscreen.json"
local mutations = require "spec.support.wire_mutations"
local random = require "spec.support.random"
local wire = require "spec.support.wire"

local LONGEST = 400 -- bytes of an answer that is cut at every place
local PIECE = 1000 -- bytes of a longer one

-- A connection that receives these pieces and then ends.
local function connection_of(pieces)
  local connection = { peer = { title = "peer:1" }, phase = "first_byte", text = "", at = 1 }
  local position = 0
  function connection:receive()
    position = position + 1
    if not pieces[position] then
      return nil, "closed"
    end
    self.phase = "body"
    return pieces[position]
  end
  function connection:fail(kind, message)
    self.fate = "closed"
    return nil, { kind = kind, message = message, phase = self.phase }
  end
  function connection:lose(_, message)
    return self:fail("network", message)
  end
  function connection:refuse(message)
    return self:fail("protocol", message)
  end
  function connection:keep()
    self.fate = "kept"
  end
  function connection:close()
    self.fate = "closed"
  end
  return connection
end

local function read(pieces, method)
  local connection = connection_of(pieces)
  local its_head, body, failure = answer.read(connection, head.parser(), wire.LIMIT, method or "GET")
  return its_head, body or failure, connection.fate
end

-- The pieces of a text: whole, byte by byte, and in two at each place.
local function cuts(text)
  local list, size = { { text } }, #text <= LONGEST and 1 or PIECE
  local pieces = {}
  for position = 1, #text, size do
    pieces[#pieces + 1] = text:sub(position, position + size - 1)
    if position > 1 and size == 1 then
      list[#list + 1] = { text:sub(1, position - 1), text:sub(position) }
    end
  end
  list[#list + 1] = pieces
  return list
end

-- The result that a case of the table names, in the form of `outcome_of`.
local function wanted_of(case)
  if case.kind then
    return { kind = case.kind, fate = "closed" }
  end
  local value = not case.invalid and case.value or nil
  return { status = case.status, value = value, fate = case.kept and "kept" or "closed" }
end

local decoder = json.decoder { duplicates = "refuse" }

local function outcome_of(pieces, method)
  local its_head, body, fate = read(pieces, method)
  if not its_head then
    return { kind = body.kind, fate = fate }
  end
  return { status = its_head.status, value = body ~= "" and decoder:decode(body) or nil, fate = fate }
end

describe("an answer", function()
  local sound = {}

  for _, case in ipairs(wire.cases) do
    if case.kept then
      sound[#sound + 1] = case
    end
    it("of " .. case.name .. " is read or refused, and its connection kept or closed, however it is cut", function()
      for _, pieces in ipairs(cuts(case.bytes)) do
        local outcome, wanted = outcome_of(pieces, case.method), wanted_of(case)
        if #pieces > 1 and case.kept == false then
          -- Pieces after the end of an answer are not read; nginx keeps no connection that has some.
          outcome.fate = wanted.fate
        end
        assert.same(wanted, outcome)
      end
    end)
  end

  it("that ends early anywhere is a failure of the network, and nothing is decoded", function()
    for _, case in ipairs(sound) do
      local has_body = case.value and not case.method
      for size = 0, #case.bytes <= LONGEST and has_body and #case.bytes - 1 or -1 do
        assert.same({ kind = "network", fate = "closed" }, outcome_of { size > 0 and case.bytes:sub(1, size) or nil })
      end
    end
  end)
end)

describe("a damaged answer", function()
  it("raises nothing and has the same result for every cut", function()
    local numbers = random.new(20261123).integer
    for _, case in ipairs(mutations.make(1500, 20261121)) do
      local pieces = cuts(case.bytes)
      local whole = outcome_of(pieces[1])
      for _, other in ipairs { pieces[#pieces], pieces[numbers(#pieces)] } do
        local outcome = outcome_of(other)
        -- Pieces after the end of an answer are not read.
        outcome.fate = whole.fate
        assert.same(whole, outcome, case.bytes)
      end
    end
  end)
end)
