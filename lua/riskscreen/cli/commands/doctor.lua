-- riskscreen doctor: checks installation, configuration, TLS, key, clock and limits, and makes a test call.

local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local configuration = require "riskscreen.cli.configuration"
local date = require "riskscreen.util.date"
local inputs = require "riskscreen.cli.input"
local json = require "riskscreen.json"
local measure = require "riskscreen.cli.measure"
local missing = require "riskscreen.util.missing"
local option_of = require "riskscreen.cli.option"
local optional = require "riskscreen.util.optional"
local status = require "riskscreen.cli.status"
local text = require "riskscreen.util.text"
local version = require "riskscreen.version"

local MOST_CLOCK_DIFFERENCE = 60 -- seconds
local TEST_ADDRESS = "0x0000000000000000000000000000000000000000"
local TEST_NETWORK = "eth"

-- For the sandbox and webhooks, runs over files and stores, .gz files, and OFAC's XML.
local optional_modules = { "riskscreen.server", "dbd.sqlite3", "zlib", "lxp" }

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
  local lacking = {}
  for _, name in ipairs(optional_modules) do
    local module, problem = optional(name)
    lacking[#lacking + 1] = not module and (missing.explain(problem) or problem) or nil
  end
  local detail = lacking[1] and "optional modules are missing" or table.concat(optional_modules, ", ")
  add("modules", lacking[1] and "skipped" or "ok", detail, lacking[1] and table.concat(lacking, "; "))
  -- The same address with one letter wrong must not pass.
  local is_right = addresses.validate("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "eth")
    and not addresses.validate("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "eth")
  local advice = not is_right and "build the library again" or nil
  add("addresses", is_right and "ok" or "failed", "checksums of addresses are computed", advice)
end

local function check_configuration(settings, add)
  local url, key = configuration.shown(settings, "base_url"), configuration.key_place(settings)
  local need_url = not url and "riskscreen config set base_url URL" or nil
  local need_key = not key and "set RISKSCREEN_ACCESS_KEY, access_key_file or access_key_command" or nil
  if need_url and need_key then
    add("configuration", "warning", "no service is configured: the sandbox answers", need_url .. "; " .. need_key)
  elseif need_url or need_key then
    local detail = need_url and "there is an access key and no base_url" or "there is no access key"
    add("configuration", "failed", detail, need_url or need_key)
  else
    add("configuration", "ok", ("%s (from %s), key from %s"):format(url, settings.values.base_url.source, key))
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
  elseif text.lower(context:setting "base_url"):find "^https:" then
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
    add("limits", "ok", ("rate_limit.rate is %g a second"):format(rate))
  else
    add("limits", "warning", "no rate limit is set", "set rate_limit.rate to what your account allows")
  end
  add("test call", "ok", ("the risks of %s on %s: %d"):format(TEST_ADDRESS, TEST_NETWORK, #(value.risks or {})))
end

-- The table of the assumptions, and the profile of a sandbox that does as the service.
local function run_assumptions(context, out)
  local options, code = context.options, status.done
  context:tell(("at most %s, each costs what such a call costs"):format(text.count(options.budget, "request")))
  local measured = measure.run(context:client(), options, options.budget)
  local rows, profile = measure.rows(measured)
  context:write_records({ "assumption", "assumed", "seen", "result", "set" }, rows)
  for _, row in ipairs(rows) do
    code = row.result == "differs" and status.review or code
  end
  context:tell("sent: " .. text.count(measured.sent, "request"))
  if out then
    status.ensure_written(out:write(assert(json.encode(profile)), "\n"))
  end
  return code
end

local function run(context)
  local imitation = context.options.imitation
  if context.options.assumptions then
    if not imitation then
      return run_assumptions(context)
    end
    return inputs.replacing(imitation, function(out)
      return run_assumptions(context, out)
    end)
  end
  for _, name in ipairs { "address", "risky_address", "request_id", "write", "imitation" } do
    if context.options[name] then
      status.misuse(option_of.flag(name) .. " is for --assumptions")
    end
  end
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
  description = "The test call asks for the risks of the zero address, and costs what such a call costs. With "
    .. "--assumptions it asks instead what the interface leaves open. It writes nothing there without --write.",
  options = {
    build.flag("assumptions", nil, "Show what the service does where the interface leaves it open."),
    build.count("budget", "requests", 20, 1, 100, "Most requests for that."),
    option_of.text("address", "ADDRESS", "An EVM address without risks, owner and counterparties."),
    option_of.text("risky_address", "ADDRESS", "An EVM address with a risk of the service's own, to see its name."),
    option_of.text("request_id", "ID", "A transaction that has its result, to see its status."),
    build.flag("write", nil, "Also send an addition to the blacklist that the service should refuse."),
    option_of.text("imitation", "FILE", "Write the profile of a sandbox that does as the service."),
  },
  written = function(context)
    return { context.options.imitation }
  end,
  examples = {
    { line = "doctor --profile production", what = "Before the first run" },
    { line = "doctor --assumptions --budget 16", what = "Before the account goes live" },
  },
  statuses = {
    done = "everything is in order",
    review = "something needs attention, or differs from what is assumed",
    block = "something does not work",
  },
  run = run,
}
