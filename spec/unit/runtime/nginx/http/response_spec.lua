-- Answers that arrive whole, byte by byte, and cut at every place.
local answer = require "riskscreen.runtime.nginx.http.response"
local head = require "riskscreen.runtime.nginx.http.head"
local random = require "spec.support.random"

local LIMIT = 1000 -- bytes of a body

-- A connection that receives these pieces and then ends.
local function connection_of(pieces)
  local connection = { peer = { title = "peer:1" }, phase = "first_byte" }
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
  local its_head, body, failure = answer.read(connection, head.parser(), LIMIT, method or "GET")
  return its_head, body or failure, connection.fate
end

-- The pieces of a text: whole, byte by byte, and in two at each place.
local function cuts(text)
  local list = { { text } }
  local bytes = {}
  for position = 1, #text do
    bytes[position] = text:sub(position, position)
    if position < #text then
      list[#list + 1] = { text:sub(1, position), text:sub(position + 1) }
    end
  end
  list[#list + 1] = bytes
  return list
end

local CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

local sound = {
  { "an announced length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", "kept" },
  { "an empty body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "kept" },
  { "a close", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "hello", "closed" },
  { "no length", "HTTP/1.1 200 OK\r\n\r\nhello\r\n\r\nHTTP/1.1", "hello\r\n\r\nHTTP/1.1", "closed" },
  { "no body", "HTTP/1.1 204 No Content\r\n\r\n", "", "kept" },
  { "a 304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n", "", "kept" },
  { "one chunk", CHUNKED .. "5\r\nhello\r\n0\r\n\r\n", "hello", "kept" },
  { "no chunk", CHUNKED .. "0\r\n\r\n", "", "kept" },
  {
    "chunks that hold line ends",
    CHUNKED .. "4\r\n\r\n\r\n\r\n02\r\nlo\r\n000a;x=y\r\n0123456789\r\n0\r\n\r\n",
    "\r\n\r\nlo0123456789",
    "kept",
  },
  { "trailers", CHUNKED .. "5 \r\nhello\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\n", "hello", "kept" },
  {
    "interim answers",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    "x",
    "kept",
  },
}

local function describe_fate(fate)
  return fate == "kept" and "and may be used again" or "and is then closed"
end

describe("an answer", function()
  for _, case in ipairs(sound) do
    it(("with %s is read however it is cut, %s"):format(case[1], describe_fate(case[4])), function()
      for _, pieces in ipairs(cuts(case[2])) do
        local its_head, body, fate = read(pieces)
        assert.is_not_nil(its_head, type(body) == "table" and body.message)
        assert.same({ case[3], case[4] }, { body, fate })
      end
    end)
  end

  it("to HEAD has no body whatever it announces", function()
    for _, pieces in ipairs(cuts "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") do
      local its_head, body, fate = read(pieces, "HEAD")
      assert.same({ 200, "", "kept" }, { its_head.status, body, fate })
    end
  end)

  it("with bytes after it is read, and its connection closed", function()
    for _, text in ipairs {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      CHUNKED .. "5\r\nhello\r\n0\r\n\r\n",
      "HTTP/1.1 204 OK\r\n\r\n",
    } do
      local its_head, body, fate = read { text .. "H" }
      assert.is_not_nil(its_head, type(body) == "table" and body.message)
      assert.equal("closed", fate)
    end
  end)

  it("that ends early anywhere is a failure of the network, and nothing is decoded", function()
    for _, text in ipairs {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      CHUNKED .. "5\r\nhello\r\n0\r\nX-A: b\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    } do
      for size = 0, #text - 1 do
        local its_head, failure, fate = read { size > 0 and text:sub(1, size) or nil }
        assert.is_nil(its_head)
        assert.same({ "network", "closed" }, { failure.kind, fate })
      end
    end
  end)
end)

local long = ("X-Filler: " .. ("x"):rep(990) .. "\r\n")

local refused = {
  ["something else than HTTP"] = "SSH-2.0-OpenSSH_9.2\r\n",
  ["a body without a head"] = '{"a":1}',
  ["lines that end in line feeds alone"] = "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
  ["an upgrade"] = "HTTP/1.1 101 Switching Protocols\r\n\r\n",
  ["a malformed line"] = "HTTP/1.1 200 OK\r\nbad\r\n\r\n",
  ["a malformed interim answer"] = "HTTP/1.1 100 Continue\r\nbad\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  ["headers above the limit"] = "HTTP/1.1 200 OK\r\n" .. long:rep(300) .. "\r\n",
  ["a line above the limit"] = "HTTP/1.1 200 OK\r\nX: " .. ("x"):rep(300 * 1024),
  ["interim answers above the limit"] = ("HTTP/1.1 103 Early\r\n" .. long .. "\r\n"):rep(300),
  ["a compressed body"] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
  ["an announced length above the limit"] = "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
  ["an announced length beyond all numbers"] = "HTTP/1.1 200 OK\r\nContent-Length: " .. ("9"):rep(99) .. "\r\n\r\n",
  ["a body above the limit"] = "HTTP/1.1 200 OK\r\n\r\n" .. ("x"):rep(1001),
  ["a chunk above the limit"] = CHUNKED .. "3e9\r\n",
  ["a chunk beyond all numbers"] = CHUNKED .. ("f"):rep(99) .. "\r\n",
  ["chunks above the limit"] = CHUNKED .. ("a\r\n0123456789\r\n"):rep(101),
  ["a chunk size that is none"] = CHUNKED .. "zz\r\n",
  ["an empty chunk size"] = CHUNKED .. "\r\n",
  ["a negative chunk size"] = CHUNKED .. "-1\r\n",
  ["a chunk size as C writes it"] = CHUNKED .. "0x1\r\nx\r\n",
  ["a chunk that is longer than it says"] = CHUNKED .. "4\r\nhello\r\n0\r\n\r\n",
  ["a chunk without its line end"] = CHUNKED .. "5\r\nhello0\r\n\r\n",
  ["a chunk size with a bare line feed"] = CHUNKED .. "5\nhello\r\n",
  ["a chunk extension without an end"] = CHUNKED .. "1;" .. ("x"):rep(8192),
  ["trailers without an end"] = CHUNKED .. "0\r\n" .. long:rep(300),
}

describe("an answer is refused, and its connection closed,", function()
  for name, text in pairs(refused) do
    it("with " .. name, function()
      local bytewise = {}
      for position = 1, math.min(#text, 2000) do
        bytewise[position] = text:sub(position, position)
      end
      bytewise[#bytewise + 1] = #text > 2000 and text:sub(2001) or nil
      for _, pieces in ipairs { { text }, bytewise } do
        local its_head, failure, fate = read(pieces)
        assert.is_nil(its_head)
        assert.same({ "protocol", "closed" }, { failure.kind, fate }, failure.message)
      end
    end)
  end
end)

-- The status and the body, or the kind of the failure. Pieces after the end of an answer are not read.
local function outcome_of(pieces)
  local its_head, body = read(pieces)
  return { its_head and its_head.status or body.kind, its_head and body }
end

describe("a damaged answer", function()
  it("raises nothing and has the same result for every cut", function()
    local next_number = random.new(20261121).integer
    local damage = { "\r", "\n", "\r\n", "\0", " ", ":", ";", ",", "0", "f", "HTTP/1.1 200 OK\r\n", "\255", "" }
    for _ = 1, 1500 do
      local text = sound[next_number(#sound)][2]
      for _ = 1, next_number(3) do
        local from = next_number(#text + 1)
        text = text:sub(1, from - 1) .. damage[next_number(#damage)] .. text:sub(from + next_number(3) - 1)
      end
      local pieces = cuts(text)
      local whole = outcome_of(pieces[1])
      assert.same(whole, outcome_of(pieces[#pieces]), text)
      assert.same(whole, outcome_of(pieces[next_number(#pieces)]), text)
    end
  end)
end)
