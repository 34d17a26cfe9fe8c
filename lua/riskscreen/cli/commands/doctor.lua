-- riskscreen doctor: checks installation, configuration, TLS, key, clock and limits, and makes a test call.

local addresses = require "riskscreen.address"
local configuration = require "riskscreen.cli.configuration"
local date = require "riskscreen.util.date"
local optional = require "riskscreen.util.optional"
local status = require "riskscreen.cli.status"
local version = require "riskscreen.version"

local MOST_CLOCK_DIFFERENCE = 60 -- seconds
local TEST_ADDRESS = "0x0000000000000000000000000000000000000000"
local TEST_NETWORK = "eth"

local columns = { "check", "result", "detail", "advice" }

-- Each check returns a result ("ok", "warning", "failed" or "skipped"), a detail and advice.
local checks = {}

function checks.installation()
  local core = require "riskscreen.core"
  local lua = rawget(_G, "jit") and jit.version or _VERSION -- luacheck: ignore 113
  return "ok", ("riskscreen %s, %s, %s"):format(version, lua, core.curl_version)
end

function checks.modules()
  local missing = {}
  for _, entry in ipairs {
    { "riskscreen.server", "the sandbox and webhooks" },
    { "riskscreen.hiredis", "queues" },
    { "dbd.sqlite3", "screen --file, watch and stores" },
    { "zlib", ".gz files" },
    { "lxp", "OFAC's XML" },
  } do
    local found, reason = optional(entry[1])
    if not found then
      missing[#missing + 1] = ("for %s: %s"):format(entry[2], reason)
    end
  end
  if missing[1] then
    return "warning", "optional modules are missing", table.concat(missing, "; ")
  end
  return "ok", "riskscreen.server, riskscreen.hiredis, lua-dbi, lua-zlib, lua-expat"
end

function checks.addresses()
  -- The same address with one letter wrong must not pass.
  local valid = addresses.validate("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "eth")
  local invalid = addresses.validate("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "eth")
  if not valid or invalid then
    return "failed", "checksums of addresses are computed wrongly", "build the library again"
  end
  return "ok", "checksums of addresses are computed"
end

function checks.configuration(context)
  local settings = context.configuration
  local url, key = configuration.get(settings, "base_url"), configuration.key_place(settings, context.world.getenv)
  if not url and not key then
    return "warning",
      "no service is configured: the sandbox answers",
      "set base_url and an access key; config show lists all"
  elseif not url then
    return "failed", "there is an access key and no base_url", "set RISKSCREEN_BASE_URL, or base_url in a profile"
  elseif not key then
    return "failed", "there is no access key", "set RISKSCREEN_ACCESS_KEY, access_key_file or access_key_command"
  end
  return "ok", ("%s (from %s), key from %s"):format(url, settings.values.base_url.source, key)
end

local causes = {
  tls = { "tls", "the server's certificate is not trusted: set ca_file, or mend the server" },
  unauthorized = { "key", "the service refused the access key: check it, and whether it was rotated" },
  network = { "connection", "no connection: check base_url, the name server, a firewall, or set proxy" },
  timeout = { "connection", "no answer in time: check the network, or set timeout" },
  rate_limited = { "limits", "the rate limit or the quota is reached: set rate_limit.rate, or ask for more" },
}

-- The results of one test call, which tells about connection, TLS, key, clock and limits at once.
local function test_call(context, add)
  local opened, client, source = pcall(context.client, context)
  if not opened then
    add("test call", "failed", tostring(client))
    return
  end
  local url = configuration.get(context.configuration, "base_url") or ""
  local value, other = client.kya:risk({ address = TEST_ADDRESS, network = TEST_NETWORK }, { retry = false })
  if value == nil then
    local cause = causes[other.kind] or { "test call", "read the message; riskscreen call repeats it" }
    add(cause[1], "failed", (tostring(other):gsub("^riskscreen: ", "")), cause[2])
    return
  end
  local times = other.times or {}
  add("connection", "ok", ("answered in %.0f ms"):format((other.elapsed or 0) * 1000))
  if source then
    add("tls", "skipped", "the sandbox is in this process")
  elseif url:find "^https:" then
    add(
      "tls",
      "ok",
      ("the certificate is trusted%s"):format(times.tls and (", %.0f ms"):format(times.tls * 1000) or "")
    )
  else
    add("tls", "warning", "plain http to this machine", "use https for the service itself")
  end
  add("key", "ok", "the service took it")
  local sent = other.headers and other.headers.date and date.parse_http_date(other.headers.date)
  local difference = sent and math.abs(os.time() - sent)
  if not difference then
    add("clock", "skipped", "the answer has no date")
  elseif difference > MOST_CLOCK_DIFFERENCE then
    add("clock", "warning", ("this machine and the service differ by %d s"):format(difference), "set the clock: ntp")
  else
    add("clock", "ok", ("%d s beside the service's"):format(difference))
  end
  local rate = configuration.get(context.configuration, "rate_limit.rate")
  if rate then
    add("limits", "ok", ("rate_limit.rate is %g calls a second"):format(rate))
  else
    add("limits", "warning", "no rate limit is set", "set rate_limit.rate to what your account allows")
  end
  add("test call", "ok", ("the risks of %s on %s: %d"):format(TEST_ADDRESS, TEST_NETWORK, #(value.risks or {})))
end

local function run(context)
  local output, worst = context:output(columns), "ok"
  local function add(check, result, detail, advice)
    output:add { check = check, result = result, detail = detail, advice = advice }
    if result == "failed" or (result == "warning" and worst == "ok") then
      worst = result
    end
  end
  for _, name in ipairs { "installation", "modules", "addresses", "configuration" } do
    add(name, checks[name](context))
  end
  test_call(context, add)
  output:finish()
  return worst == "ok" and status.done or worst == "warning" and status.review or status.block
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
