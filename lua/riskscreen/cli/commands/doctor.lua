-- riskscreen doctor: checks installation, configuration, TLS, key, clock and limits, and makes a test call.

local addresses = require "riskscreen.address"
local configuration = require "riskscreen.cli.configuration"
local date = require "riskscreen.util.date"
local optional = require "riskscreen.util.optional"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local version = require "riskscreen.version"

local MOST_CLOCK_DIFFERENCE = 60 -- seconds
local TEST_ADDRESS = "0x0000000000000000000000000000000000000000"
local TEST_NETWORK = "eth"

-- What the command can do without.
local optional_modules = {
  { "riskscreen.server", "the sandbox and webhooks need riskscreen.server: build with libmicrohttpd" },
  { "riskscreen.hiredis", "queues need riskscreen.hiredis: build with libhiredis-dev" },
  { "dbd.sqlite3", "screen --file, watch and stores need lua-dbi: apt install lua-dbi-sqlite3" },
  { "zlib", ".gz files need lua-zlib: apt install lua-zlib" },
  { "lxp", "OFAC's XML needs lua-expat: apt install lua-expat" },
}

local causes = {
  tls = { "tls", "the server's certificate is not trusted: set ca_file, or mend the server" },
  unauthorized = { "key", "the service refused the access key: check it, and whether it was rotated" },
  network = { "connection", "no connection: check base_url, the name server, a firewall, or set proxy" },
  timeout = { "connection", "no answer in time: check the network, or set timeout" },
  rate_limited = { "limits", "the rate limit or the quota is reached: set rate_limit.rate, or ask for more" },
}

-- Each check adds its results: "ok", "warning", "failed" or "skipped", a detail and advice.
local function check_installation(add)
  local lua = rawget(_G, "jit") and jit.version or _VERSION -- luacheck: ignore 113
  add("installation", "ok", ("riskscreen %s, %s, %s"):format(version, lua, require("riskscreen.core").curl_version))
  local missing = {}
  for _, entry in ipairs(optional_modules) do
    missing[#missing + 1] = not optional(entry[1]) and entry[2] or nil
  end
  local detail = missing[1] and "optional modules are missing" or table.concat(tables.pluck(optional_modules, 1), ", ")
  add("modules", missing[1] and "skipped" or "ok", detail, missing[1] and table.concat(missing, "; "))
  -- The same address with one letter wrong must not pass.
  local is_right = addresses.validate("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "eth")
    and not addresses.validate("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "eth")
  local advice = not is_right and "build the library again" or nil
  add("addresses", is_right and "ok" or "failed", "checksums of addresses are computed", advice)
end

local function check_configuration(settings, add)
  local url, key = configuration.shown(settings, "base_url"), configuration.key_place(settings)
  if url and key then
    add("configuration", "ok", ("%s (from %s), key from %s"):format(url, settings.values.base_url.source, key))
  elseif key then
    local advice = "set RISKSCREEN_BASE_URL, or base_url in a profile"
    add("configuration", "failed", "there is an access key and no base_url", advice)
  elseif url then
    local advice = "set RISKSCREEN_ACCESS_KEY, access_key_file or access_key_command"
    add("configuration", "failed", "there is no access key", advice)
  else
    local advice = "set base_url and an access key; config show lists all"
    add("configuration", "warning", "no service is configured: the sandbox answers", advice)
  end
end

-- One test call tells about connection, TLS, key, clock and limits at once.
local function check_call(context, add)
  local opened, client, source = pcall(context.client, context)
  if not opened then
    add("test call", "failed", tostring(client))
    return
  end
  local value, other = client.kya:risk({ address = TEST_ADDRESS, network = TEST_NETWORK }, { retry = false })
  if value == nil then
    local cause = causes[other.kind] or { "test call", "read the message; riskscreen call repeats it" }
    add(cause[1], "failed", (tostring(other):gsub("^riskscreen: ", "")), cause[2])
    return
  end
  add("connection", "ok", ("answered in %.0f ms"):format((other.elapsed or 0) * 1000))
  if source then
    add("tls", "skipped", "the sandbox is in this process")
  elseif context:setting("base_url"):find "^https:" then
    add("tls", "ok", "the certificate is trusted")
  else
    add("tls", "warning", "plain http to this machine", "use https for the service itself")
  end
  add("key", "ok", "the service took it")
  local sent = other.headers and other.headers.date and date.parse_http_date(other.headers.date)
  local difference = sent and math.abs(os.time() - sent)
  local is_far = difference and difference > MOST_CLOCK_DIFFERENCE
  local detail = difference and ("this machine and the service differ by %d s"):format(difference)
  local result = is_far and "warning" or difference and "ok" or "skipped"
  add("clock", result, detail or "the answer has no date", is_far and "set the clock: ntp" or nil)
  local rate = context:setting "rate_limit.rate"
  if rate then
    add("limits", "ok", ("rate_limit.rate is %g calls a second"):format(rate))
  else
    add("limits", "warning", "no rate limit is set", "set rate_limit.rate to what your account allows")
  end
  add("test call", "ok", ("the risks of %s on %s: %d"):format(TEST_ADDRESS, TEST_NETWORK, #(value.risks or {})))
end

local function run(context)
  local output, code = context:output { "check", "result", "detail", "advice" }, status.done
  local codes = { warning = status.review, failed = status.block }
  local function add(check, result, detail, advice)
    output:add { check = check, result = result, detail = detail, advice = advice or nil }
    code = math.max(code, codes[result] or status.done)
  end
  check_installation(add)
  check_configuration(context.configuration, add)
  check_call(context, add)
  output:finish()
  return code
end

return {
  name = "doctor",
  summary = "Check installation, configuration, TLS, key, clock and limits, with a test call.",
  description = "The test call asks for the risks of the zero address, and costs what such a call costs.",
  examples = { { line = "doctor --profile production", what = "Before the first run" } },
  statuses = {
    { status = status.done, what = "everything is in order" },
    { status = status.review, what = "something needs attention" },
    { status = status.block, what = "something does not work" },
  },
  run = run,
}
