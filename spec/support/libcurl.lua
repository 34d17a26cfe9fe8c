local core = require "riskscreen.core"

local major, minor = core.curl_version:match "^libcurl/(%d+)%.(%d+)"

local function is_older_than(first, second)
  return tonumber(major) * 1000 + tonumber(minor) < first * 1000 + second
end

return {
  -- Before 7.80, libcurl sends a request again by itself if its kept-alive connection was dead. The core then gives
  -- requests that change something a new connection.
  resends = is_older_than(7, 80),
  -- Before 7.84, libcurl does not tell whether a connection over TLS speaks HTTP/2, so the core asks for 1.1 there.
  tells_http_2 = not is_older_than(7, 84),
  -- Before 7.87, ending a name lookup waits for the resolver.
  waits_for_lookups = is_older_than(7, 87),
  -- 7.74 takes the end of a connection of HTTP/2, and a reset, for the end of a body. 7.88 does not.
  takes_unended_streams = is_older_than(7, 88),
  -- 7.74 has no limit for the headers of all interim answers together. 7.88 of Debian has.
  limits_interim_answers = not is_older_than(7, 88),
  -- 7.74 takes a chunk's size that begins with 0x for 0, and 7.88 refuses it.
  reads_0x_as_0 = is_older_than(7, 88),
  -- 7.88 takes chunks whose last byte is missing for whole, and 8.14 does not.
  takes_cut_chunks = is_older_than(8, 14),
  -- From 8.18 on, libcurl joins a folded line to the line before it, as RFC 9112 asks (section 5.2).
  joins_folded_lines = not is_older_than(8, 18),
}
