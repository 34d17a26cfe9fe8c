-- Answers on the wire as bytes, each with what a client must make of it. This table is the owner of that rule: the
-- specs of both HTTP clients read it. A case has a status and a decoded value, or the kind of the failure. `kept` says
-- whether the connection may be used again. Where one client differs, a field with its name says so, with the reason:
-- a refusal by one alone is safe, two different values are not.
local loaded, libcurl = pcall(require, "spec.support.libcurl")
local tables = require "riskscreen.util.tables"
local zlib = require "zlib"

local BODY = '{"a":1}'
local VALUE = { a = 1 }
local LIMIT = 4096 -- bytes of a body that the clients of the specs accept

local M = { LIMIT = LIMIT, cases = {} }

local function answer(lines, body, status)
  return ("HTTP/1.1 %s\r\n"):format(status or "200 OK") .. (lines or "") .. "\r\n" .. (body or "")
end

-- An answer with a body of the announced length.
local function sized(lines, body, status)
  body = body or BODY
  return answer(("Content-Length: %d\r\n"):format(#body) .. (lines or ""), body, status)
end

local function chunks(text, rest)
  return ("%x\r\n%s\r\n"):format(#text, text) .. (rest or "0\r\n\r\n")
end

local function chunked(body, lines)
  return answer("Transfer-Encoding: chunked\r\n" .. (lines or ""), body or chunks(BODY))
end

local function compress(text, window)
  return (zlib.deflate(9, window)(text, "finish"))
end

local GZIP, RAW, ZLIB = 31, -15, 15 -- windows of zlib

local function add(name, bytes, outcome)
  local case = { name = name, bytes = bytes }
  for field, value in pairs(outcome) do
    case[field] = value
  end
  M.cases[#M.cases + 1] = case
end

local function value(name, bytes, more)
  local outcome = { status = 200, value = VALUE, kept = true }
  for field, content in pairs(more or {}) do
    outcome[field] = content
  end
  add(name, bytes, outcome)
end

local function refuse(name, bytes, more)
  local outcome = { kind = "protocol" }
  for field, content in pairs(more or {}) do
    outcome[field] = content
  end
  add(name, bytes, outcome)
end

local CLOSED = { kept = false }
local NETWORK = { kind = "network" }
local CUT = { kind = "network", reason = "libcurl waits for more, or has a limit of its own" }

-- The extent of the body

value("an announced length", sized())
value("an empty body", sized(nil, ""), { value = false })
value("a body without a length, up to the end of the connection", answer(nil, BODY), CLOSED)
value("a length that is given twice", sized "Content-Length: 7\r\n")
value("a length as a list of equal ones", answer("Content-Length: 7, 7\r\n", BODY))
value("a length with leading zeros", answer("Content-Length: 0007\r\n", BODY))
value("a length with space around it", answer("Content-Length: \t 7 \t\r\n", BODY))
for name, lines in pairs {
  ["two lengths"] = "Content-Length: 7\r\nContent-Length: 8\r\n",
  ["a list of two lengths"] = "Content-Length: 7, 8\r\n",
  ["a list of lengths that ends in a comma"] = "Content-Length: 7,\r\n",
  ["a list of lengths that begins with a comma"] = "Content-Length: ,7\r\n",
  ["a length in two spellings"] = "Content-Length: 7\r\nContent-Length: 07\r\n",
  ["a negative length"] = "Content-Length: -7\r\n",
  ["a length with a plus sign"] = "Content-Length: +7\r\n",
  ["a length in hexadecimal"] = "Content-Length: 0x7\r\n",
  ["a length with a unit"] = "Content-Length: 7 bytes\r\n",
  ["two numbers as a length"] = "Content-Length: 7 7\r\n",
  ["a length with a fraction"] = "Content-Length: 7.0\r\n",
  ["a length with an exponent"] = "Content-Length: 7e0\r\n",
  ["an empty length"] = "Content-Length:\r\n",
  ["a word as a length"] = "Content-Length: seven\r\n",
  ["a length beyond all numbers"] = "Content-Length: " .. ("9"):rep(40) .. "\r\n",
  ["a length that overflows to the right one"] = "Content-Length: 18446744073709551623\r\n",
  ["a length above the limit"] = ("Content-Length: %d\r\n"):format(LIMIT + 1),
  ["a length before chunks"] = "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n",
  ["a length behind chunks"] = "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n",
} do
  local body = lines:find "chunked" and chunks(BODY) or BODY
  refuse(name, answer(lines, body))
end
refuse("a length in Unicode digits", answer("Content-Length: \217\167\r\n", BODY))
refuse("a body above the limit, without a length", answer(nil, (" "):rep(LIMIT) .. "1"))
for name, bytes in pairs {
  ["nothing"] = "",
  ["half of a status line"] = "HTTP/1.1 200",
  ["half of a head"] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n",
  ["a head without its last byte"] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r",
  ["a body that is one byte short"] = sized(nil, BODY):sub(1, -2),
  ["no byte of a body"] = sized(nil, BODY):sub(1, -#BODY - 1),
  ["an interim answer alone"] = "HTTP/1.1 100 Continue\r\n\r\n",
  ["a chunk that is short"] = chunked "8\r\n{}",
  ["chunks without the last one"] = chunked(chunks(BODY, "")),
  ["a last chunk without its end"] = chunked(chunks(BODY, "0\r\n")),
  ["trailers without their end"] = chunked(chunks(BODY, "0\r\nX: y\r\n")),
} do
  refuse(name .. ", and the end of the connection", bytes, NETWORK)
end

-- More than the answer

value("a byte after a body", sized() .. "x", CLOSED)
value("a line end after a body", sized() .. "\r\n", CLOSED)
value("another answer after a body", sized() .. sized(nil, '{"stale":1}'), CLOSED)
value("another answer after chunks", chunked() .. sized(nil, '{"stale":1}'), CLOSED)
value("a body longer than its length", answer("Content-Length: 7\r\n", BODY .. "}"), CLOSED)

-- Answers without a body

for _, status in ipairs { "204 No Content", "304 Not Modified" } do
  local number = tonumber(status:match "%d+")
  value("a " .. number, answer(nil, nil, status), { status = number, value = false })
  value("a " .. number .. " with a length", answer("Content-Length: 7\r\n", nil, status), {
    status = number,
    value = false,
  })
  value("a " .. number .. " with a body", sized(nil, nil, status), { status = number, value = false, kept = false })
  value("a " .. number .. " with chunks", answer("Transfer-Encoding: chunked\r\n", chunks(BODY), status), {
    status = number,
    value = false,
    kept = false,
  })
end
value("to HEAD a length alone", answer "Content-Length: 7\r\n", { method = "HEAD", value = false })
value("to HEAD chunks that are announced", answer "Transfer-Encoding: chunked\r\n", { method = "HEAD", value = false })
value("to HEAD a body", sized(), { method = "HEAD", value = false, kept = false })
value("to HEAD a length above the limit", answer "Content-Length: 99999999\r\n", { method = "HEAD", value = false })

-- Interim answers

value("a 100 before the answer", answer(nil, nil, "100 Continue") .. sized())
value("several interim answers", (answer("Link: x\r\n", nil, "103 Early Hints")):rep(5) .. sized())
value("a 199 before the answer", answer(nil, nil, "199 Other") .. sized())
value("an interim answer with a length", answer("Content-Length: 7\r\n", nil, "103 Early Hints") .. sized())
value("an interim answer with chunks", answer("Transfer-Encoding: chunked\r\n", nil, "103 Early Hints") .. sized())
value("a compression in an interim answer", answer("Content-Encoding: gzip\r\n", nil, "103 Early Hints") .. sized())
value("an interim answer that closes", answer("Connection: close\r\n", nil, "103 Early Hints") .. sized(), {
  native = { status = 200, value = VALUE, kept = false, reason = "libcurl then closes the connection" },
})
refuse("an upgrade", answer(nil, BODY, "101 Switching Protocols"))
refuse(
  "an upgrade to HTTP/2",
  answer("Connection: Upgrade\r\nUpgrade: h2c\r\n", nil, "101 Switching Protocols") .. sized()
)
refuse("an upgrade before an answer", answer(nil, nil, "101 Switching Protocols") .. sized())
refuse("an interim answer with a malformed line", answer("bad\r\n", nil, "100 Continue") .. sized())
refuse("a body behind an interim answer", answer("Content-Length: 7\r\n", BODY, "103 Early Hints") .. sized())
refuse("a line end before the answer", "\r\n" .. sized())
refuse("a line end behind an interim answer", answer(nil, "\r\n", "100 Continue") .. sized())

-- The status line, which the native client also reads over TLS: for HTTP/2, libcurl writes such a line itself

local first = #M.cases + 1
value("no reason", sized(nil, nil, "200 "))
value("no reason and no space", sized(nil, nil, "200"))
value("a reason with a colon", sized(nil, nil, "200 X: y"))
value("a reason of other characters", sized(nil, nil, "200 \195\164\255 (1)"))
value("a 299", sized(nil, nil, "299 What Ever"), { status = 299 })
value("a 404", sized(nil, nil, "404 Not Found"), { status = 404 })
value("a 500", sized(nil, nil, "500 Internal"), { status = 500 })
value("a 600", sized(nil, nil, "600 Other"), { status = 600 })
value("a 999", sized(nil, nil, "999 Other"), { status = 999 })
for _, line in ipairs {
  "HTTP/ 200 OK",
  "HTTP 200 OK",
  "HTTP/1 200 OK",
  "HTTP/1. 200 OK",
  "HTTP/1.2 200 OK",
  "HTTP/1.10 200 OK",
  "HTTP/01.1 200 OK",
  "HTTP/0.9 200 OK",
  "HTTP/2 200 OK",
  "HTTP/2 200 ",
  "HTTP/2.0 200 OK",
  "HTTP/3 200 OK",
  "HTTPS/1.1 200 OK",
  "http/1.1 200 OK",
  "HTTP/1.1 2 00",
  "HTTP/1.1 20 OK",
  "HTTP/1.1 2000 OK",
  "HTTP/1.1 099 OK",
  "HTTP/1.1 000 OK",
  "HTTP/1.1 +200 OK",
  "HTTP/1.1 -200 OK",
  "HTTP/1.1 0x200 OK",
  "HTTP/1.1 20O OK",
  "HTTP/1.1 200OK",
  "HTTP/1.1 200.0 OK",
  "HTTP/1.1 OK 200",
  "HTTP/1.1  200 OK",
  "HTTP/1.1\t200 OK",
  "HTTP/1.1 200\tOK",
  "HTTP/1.1",
  "HTTP/1.1 ",
  " HTTP/1.1 200 OK",
  "\tHTTP/1.1 200 OK",
  "\239\187\191HTTP/1.1 200 OK",
  "HTTP/1.1 200 O\0K",
  "HTTP/1.1 200 OK\r",
  "HTTP/1.1 200 OK\rX: y",
  "HTTP/1.1 200 O\127K",
  "ICY 200 OK",
  "RTSP/1.0 200 OK",
  "SSH-2.0-OpenSSH_9.2",
  "GET / HTTP/1.1",
  "",
} do
  refuse(("the status line %q"):format(line):gsub("%c", "?"), line .. "\r\nContent-Length: 7\r\n\r\n" .. BODY)
end
refuse("a head as libcurl writes it for HTTP/2", "HTTP/2 200 \r\ncontent-length: 7\r\n\r\n" .. BODY)
M.status_lines = { tables.unpack(M.cases, first) }
refuse("a body without a head", BODY)
refuse("a second status line in the head", answer("HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n", BODY))
refuse(
  "a second status line that hides an encoding",
  answer("Content-Encoding: br\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n", BODY)
)

-- Header lines

value("a name in any case", answer("cOnTeNt-LeNgTh: 7\r\n", BODY))
value("names of all characters", sized "!#$%&'*+-.^_`|~0aZ: b\r\n")
value("values of all characters", sized "X: a\t\128\255b\r\nY:\r\nZ: :\r\n")
value("a repeated header", sized "X: 1\r\nx: 2\r\n")
value("an odd Content-Type", sized 'Content-Type: text/html; charset="utf-16"\r\n')
value("many headers", sized(("X: y\r\n"):rep(1000)))
value("a location", sized "Location: http://127.0.0.1:1/\r\n")
for _, status in ipairs { 301, 302, 303, 307, 308 } do
  value("a redirect " .. status, sized("Location: /other\r\n", nil, status .. " Moved"), { status = status })
end
for name, lines in pairs {
  ["without a colon"] = "X\r\n",
  ["without a name"] = ": x\r\n",
  ["with a space before the colon"] = "Content-Length : 7\r\n",
  ["with a tab before the colon"] = "Content-Length\t: 7\r\n",
  ["with a space before the name"] = " X: y\r\n",
  ["with a tab before the name"] = "\tX: y\r\n",
  ["with a space in the name"] = "X Y: z\r\n",
  ["with a NUL in the name"] = "X\0: y\r\n",
  ["with a NUL in the value"] = "X: y\0z\r\n",
  ["with a bare carriage return in the value"] = "X: y\rContent-Length: 9\r\n",
  ["with a bare carriage return before the line end"] = "X: y\r\r\n",
  ["with a bare line feed"] = "X: y\nContent-Length: 7\r\n",
  ["with a control character"] = "X: y\27z\r\n",
  ["with a DEL"] = "X: y\127z\r\n",
  ["with a byte above ASCII in the name"] = "X\195\164: y\r\n",
  ["with a name in parentheses"] = "X(1): y\r\n",
  ["with a quoted name"] = '"X": y\r\n',
} do
  refuse("a header line " .. name, answer(lines:find "^Content" and lines or "Content-Length: 7\r\n" .. lines, BODY))
end
local joined = { native = { status = 200, value = VALUE, reason = "this libcurl joins folded lines" } }
joined = loaded and libcurl.joins_folded_lines and joined or {}
refuse("a header line that is folded", sized "X: y\r\n z\r\n", joined)
refuse("a header line that is folded by a tab", sized "X: y\r\n\tz\r\n", joined)
refuse("a length that is folded", answer("Content-Length:\r\n 7\r\n", BODY), joined)
refuse("a transfer encoding that is folded", answer("Transfer-Encoding:\r\n chunked\r\n", chunks(BODY)), joined)
refuse("a head of bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 7\n\n" .. BODY)
refuse("a bare line feed behind the status line", "HTTP/1.1 200 OK\nContent-Length: 7\r\n\r\n" .. BODY)
refuse("a bare line feed as the end of the head", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\n" .. BODY)
refuse("a bare carriage return as the end of the head", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r" .. BODY, NETWORK)
refuse("a head above the limit", answer(("X: " .. ("x"):rep(1000) .. "\r\n"):rep(300)))
refuse("a header line above the limit", answer("X: " .. ("x"):rep(300 * 1024) .. "\r\n"))
local unlimited = { native = { status = 200, value = VALUE, reason = "this libcurl limits each head alone" } }
refuse(
  "interim answers above the limit",
  answer("X: " .. ("x"):rep(1000) .. "\r\n", nil, "103 Early"):rep(300) .. sized(),
  loaded and libcurl.limits_interim_answers and { native = CUT } or unlimited
)

-- Chunks

value("one chunk", chunked())
value("many chunks", chunked((BODY:gsub(".", "1\r\n%0\r\n")) .. "0\r\n\r\n"))
value("a chunk of line ends", chunked("6\r\n\r\n\r\n\r\n\r\n" .. chunks(BODY)))
value("no chunk", chunked "0\r\n\r\n", { value = false })
value("a size with leading zeros", chunked("0007\r\n" .. BODY .. "\r\n000\r\n\r\n"))
value("a size in capitals", chunked("A\r\n" .. BODY .. "   \r\n0\r\n\r\n"))
value("a chunk extension", chunked("7;a=b\r\n" .. BODY .. "\r\n0;x\r\n\r\n"))
value("a quoted chunk extension", chunked('7;a="b;\\"c"\r\n' .. BODY .. "\r\n0\r\n\r\n"))
value("a space behind a size", chunked("7 \r\n" .. BODY .. "\r\n0\r\n\r\n"))
value("a space before a chunk extension", chunked("7 ;a=b\r\n" .. BODY .. "\r\n0\r\n\r\n"))
value("trailers", chunked(chunks(BODY, "0\r\nX-A: b\r\nX-C: d\r\n\r\n")))
value("a length in the trailers", chunked(chunks(BODY, "0\r\nContent-Length: 3\r\n\r\n")))
value("an encoding in the trailers", chunked(chunks(BODY, "0\r\nContent-Encoding: gzip\r\n\r\n")))
value("a name of chunks in any case", answer("transfer-encoding: CHUNKED\r\n", chunks(BODY)))
for name, body in pairs {
  ["size that is none"] = "zz\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size that is empty"] = "\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size with a sign"] = "+7\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size that is negative"] = "-7\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size behind a space"] = " 7\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size that overflows to the right one"] = "10000000000000007\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size beyond all numbers"] = ("f"):rep(99) .. "\r\n" .. BODY,
  ["end that is missing"] = "7\r\n" .. BODY .. "0\r\n\r\n",
  ["end that comes late"] = "7\r\n" .. BODY .. " \r\n0\r\n\r\n",
  ["end of two other bytes"] = "7\r\n" .. BODY .. "xx0\r\n\r\n",
} do
  refuse("a chunk " .. name, chunked(body))
end
refuse("a chunk size above the limit", chunked("fffffff\r\n" .. BODY), { native = CUT })
refuse("a chunk size with a bare carriage return", chunked("7\r" .. BODY .. "\r\n0\r\n\r\n"), { native = CUT })
local lenient = { native = { status = 200, value = VALUE, reason = "libcurl's chunk parser reads up to a line feed" } }
for name, body in pairs {
  ["size with a word behind it"] = "7 a\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size with a letter behind it"] = "7g\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size with a NUL"] = "7\0\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["size with a bare line feed"] = "7\n" .. BODY .. "\r\n0\r\n\r\n",
  ["end with a bare line feed"] = "7\r\n" .. BODY .. "\n0\r\n\r\n",
  ["end that comes early"] = "8\r\n" .. BODY .. "\r\n0\r\n\r\n",
  ["list whose last one has a bare line feed"] = "7\r\n" .. BODY .. "\r\n0\n\r\n",
  ["trailer with a bare line feed"] = "7\r\n" .. BODY .. "\r\n0\r\nX: y\n\r\n",
  ["extension with a bare line feed"] = "7;a\n" .. BODY .. "\r\n0\r\n\r\n",
  ["extension with a bare carriage return"] = "7;a\rb\r\n" .. BODY .. "\r\n0\r\n\r\n",
} do
  refuse("a chunk " .. name, chunked(body), lenient)
end
refuse(
  "a chunk size as C writes it",
  chunked("0x7\r\n" .. BODY .. "\r\n0\r\n\r\n"),
  loaded and libcurl.reads_0x_as_0 and { native = { status = 200, reason = "libcurl finds no body" } } or nil
)
lenient = { kind = "network", native = lenient.native }
refuse("chunks of bare line feeds", chunked("7\n" .. BODY .. "\n0\n\n"), lenient)
refuse("chunks that end in bare line feeds", chunked("7\r\n" .. BODY .. "\r\n0\n\n"), lenient)
refuse("chunks that end in a bare line feed", chunked("7\r\n" .. BODY .. "\r\n0\r\n\n"), lenient)
refuse(
  "a last chunk without its last byte, and the end of the connection",
  chunked(chunks(BODY, "0\r\n\r")),
  loaded and not libcurl.takes_cut_chunks and { native = CUT } or lenient
)
refuse("a chunk extension without an end", chunked("7;" .. ("x"):rep(300 * 1024)), { native = CUT })
refuse(
  "trailers without an end",
  chunked(chunks(BODY, "0\r\n" .. ("X: " .. ("x"):rep(1000) .. "\r\n"):rep(300))),
  { native = CUT }
)
refuse("chunks above the limit", chunked(("10\r\n" .. (" "):rep(16) .. "\r\n"):rep(LIMIT / 16) .. chunks(BODY)))
for name, line in pairs {
  ["gzip and chunked"] = "gzip, chunked",
  ["chunked twice"] = "chunked, chunked",
  ["identity"] = "identity",
  ["another word"] = "xchunked",
  ["a parameter"] = "chunked;a=b",
  ["a quoted word"] = '"chunked"',
  ["nothing"] = "",
  ["a comma"] = "chunked,",
  ["a vertical tab"] = "\11chunked",
} do
  refuse("the transfer encoding " .. name, answer("Transfer-Encoding: " .. line .. "\r\n", chunks(BODY)))
end
refuse("two lines of chunked", answer("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunks(BODY)))
refuse("chunks and another encoding", answer("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n", chunks(BODY)))
refuse("chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" .. chunks(BODY))

-- Compression, which the native client asks for and undoes

local function compressed(name, encoding, body, more)
  refuse(name, sized("Content-Encoding: " .. encoding .. "\r\n", body), more)
end
local undone = { native = { status = 200, value = VALUE, reason = "it asks for gzip, and undoes it" } }
compressed("gzip", "gzip", compress(BODY, GZIP), undone)
compressed("gzip in capitals", "GZIP", compress(BODY, GZIP), undone)
value("the encoding identity", sized "Content-Encoding: identity\r\n")
for name, case in pairs {
  ["gzip with another checksum"] = { "gzip", compress(BODY, GZIP):sub(1, -9) .. ("x"):rep(8) },
  ["gzip and more"] = { "gzip", compress(BODY, GZIP) .. "x" },
  ["gzip twice, one behind the other"] = { "gzip", compress(BODY, GZIP) .. compress("  ", GZIP) },
  ["gzip that is none"] = { "gzip", BODY },
  ["gzip, gzip"] = { "gzip, gzip", compress(compress(BODY, GZIP), GZIP) },
  ["two lines of gzip"] = { "gzip\r\nContent-Encoding: gzip", compress(compress(BODY, GZIP), GZIP) },
  ["gzip, identity"] = { "gzip, identity", compress(BODY, GZIP) },
  ["x-gzip"] = { "x-gzip", compress(BODY, GZIP) },
  ["deflate"] = { "deflate", compress(BODY, ZLIB) },
  ["deflate without a head"] = { "deflate", compress(BODY, RAW) },
  ["deflate that is gzip"] = { "deflate", compress(BODY, GZIP) },
  ["brotli"] = { "br", "\11\3\128" .. BODY .. "\3" },
  ["zstd that is not"] = { "zstd", BODY },
  ["an encoding that nobody knows"] = { "rot13", BODY },
  ["an empty encoding"] = { "", BODY },
  ["nothing in a list"] = { ",", BODY },
  ["none"] = { "none", BODY },
  ["an encoding behind identity"] = { "identity, gzip", BODY },
} do
  compressed("the encoding " .. name, case[1], case[2])
end
local unchecked =
  { native = { status = 200, value = VALUE, reason = "libcurl does not tell how the compression ended" } }
compressed("gzip without its end", "gzip", compress(BODY, GZIP):sub(1, -9), unchecked)
compressed("gzip that is deflate", "gzip", compress(BODY, ZLIB), unchecked)
compressed("gzip of gzip", "gzip", compress(compress(BODY, GZIP), GZIP), {
  native = { status = 200, value = false, invalid = true, reason = "it undoes the one that is named" },
})
refuse(
  "a compressed body above the limit",
  sized("Content-Encoding: gzip\r\n", compress((" "):rep(LIMIT) .. "1", GZIP))
)

-- The connection

value("Connection: close", sized "Connection: close\r\n", CLOSED)
value("Connection: close in a list", sized "Connection: x, Close\r\n", CLOSED)
value("Connection: keep-alive", sized "Connection: keep-alive\r\n")
value("Connection: upgrade", sized "Connection: upgrade\r\nUpgrade: h2c\r\n")
value("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n" .. BODY, CLOSED)
value("HTTP/1.0 up to its end", "HTTP/1.0 200 OK\r\n\r\n" .. BODY, CLOSED)
value("HTTP/1.0 that is kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 7\r\n\r\n" .. BODY)

-- The body

value("a byte order mark", sized(nil, "\239\187\191" .. BODY), { value = false, invalid = true })
value("UTF-16", sized(nil, (BODY:gsub(".", "%0\0"))), { value = false, invalid = true })
value("Latin-1", sized(nil, '{"a":"\228"}'), { value = false, invalid = true })
value("a NUL after the body", sized(nil, BODY .. "\0"), { value = false, invalid = true })
value("two values", sized(nil, BODY .. BODY), { value = false, invalid = true })
value("a page", sized(nil, "<html>"), { value = false, invalid = true })
value("a member that is there twice", sized(nil, '{"a":1,"a":2}'), { value = false, invalid = true })

return M
