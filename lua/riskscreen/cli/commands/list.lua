-- riskscreen list build, update, info and check: local deny and allow lists, without the service.

local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local configuration = require "riskscreen.cli.configuration"
local core = require "riskscreen.core"
local files = require "riskscreen.util.files"
local http = require "riskscreen.options.http"
local inputs = require "riskscreen.cli.input"
local json = require "riskscreen.json"
local lists = require "riskscreen.lists"
local option_of = require "riskscreen.cli.option"
local options = require "riskscreen.options.lists"
local runtime = require "riskscreen.runtime"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local DAY = 86400 -- seconds
local MIB = 1024 * 1024
local LATEST = 2 ^ 53 -- Unix seconds

local OFAC = "https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/SDN.XML"
local MAX_REDIRECTS = 5
local CONNECT_TIMEOUT = 10 -- seconds
local FETCHED, FACTS = ".source", ".source.json" -- after the list's name: the file that was fetched, and what it was

local redirects = tables.set { 301, 302, 303, 307, 308 }

local report_columns = { "file", "entries", "rows", "repeated", "invalid", "expired", "bytes" }

-- A compiled list may hold any number.
local function time_of(seconds)
  return seconds and seconds > 0 and seconds < LATEST and os.date("!%Y-%m-%dT%H:%M:%SZ", seconds) or nil
end

local function warn_of_expired(context, count)
  if (count or 0) > 0 then
    context:warn(text.count(count, "entry") .. " already expired")
  end
end

local function warn_of(context, report)
  for _, problem in ipairs(report.problems) do
    context:warn(lists.show_problem(problem))
  end
  local more = report.invalid - #report.problems
  if more > 0 then
    context:warn(text.count(more, "more row") .. " without an entry")
  end
  warn_of_expired(context, report.expired)
  for _, skipped in ipairs(report.skipped) do
    context:warn(("%s of %s: %s"):format(text.count(skipped.count, "address"), skipped.symbol, skipped.reason))
  end
end

-- Builds a list, and writes a summary of it. A failure has a status of its own.
local function build_list(context, settings, failed)
  inputs.refuse_stream(settings.output, "-o")
  local report, err = lists.build(settings)
  local facts = report or err.report
  local lacks_entries = facts and facts.invalid + facts.unknown > 0
  if facts then
    warn_of(context, facts)
  end
  if not report then
    -- Otherwise 5 says that the list is written.
    local is_strict = settings.strict and lacks_entries
    status.fail(err.kind == "storage" and status.unknown or is_strict and status.invalid_rows or failed, err.message)
  end
  local record = tables.pick(report, report_columns)
  record.file, record.bytes = settings.output, report.size
  context:write_record(report_columns, record)
  return lacks_entries and status.invalid_rows or status.done
end

local function run_build(context)
  local network = context.configuration.values.network
  if network and network.source:find "^%-" then
    status.misuse "-n does not narrow a list: rows without a network hold on every one. Give them a column network"
  end
  return build_list(context, tables.merge(context.options, { inputs = context.arguments.input }), status.usage)
end

-- The checked origin of a URL, and its target; or nil and the reason.
local function split(url)
  local origin, target = url:match "^(%a[%w+.-]*://[^/?#]*)([^#]*)"
  local base, reason = nil, "must be a URL such as https://host/path"
  if origin and not target:find "[^!-~]" then
    base, reason = http.base_url(origin)
  end
  return base, base and (target:find "^/" and target or "/" .. target) or reason
end

-- The URL of a redirection from a target of an origin.
local function resolved(location, origin, target)
  if location:find "^%a[%w+.-]*:" then
    return location
  elseif location:find "^//" then
    return origin:match "^[^/]*" .. location
  elseif not location:find "^/" then
    location = target:match(location:find "^%?" and "^[^?]*" or "^[^?]*/") .. location
  end
  return origin .. location
end

-- The answer to a request, after redirects; none leads from https to http.
local function fetch(url, headers, settings)
  local is_secure = false
  for redirections = 0, MAX_REDIRECTS do
    local base, target = split(url)
    if not base and redirections > 0 then
      status.fail(status.unknown, "the service redirects to a URL that " .. target)
    elseif not base then
      status.misuse("the URL of the list " .. target) -- it may hold a password
    elseif is_secure and not base.origin:find "^https:" then
      status.fail(status.unknown, "the service redirects from https to http")
    end
    is_secure = base.origin:find "^https:" ~= nil
    local given = { base_url = base, connect_timeout = CONNECT_TIMEOUT, concurrency = 1 }
    local send = runtime.transport(tables.merge(settings, given))
    local reply, failure = send { method = "GET", target = target, headers = headers, timeout = settings.timeout }
    if not reply then
      status.fail(status.unknown, "the list cannot be fetched: " .. tostring(failure.message or failure.kind))
    elseif not redirects[reply.status] or not reply.headers.location then
      return reply
    end
    url = resolved(reply.headers.location, base.origin, target)
  end
  status.fail(status.unknown, "the service redirects more than %d times", MAX_REDIRECTS)
end

-- The files that an update writes.
local function written(context)
  local output = context.options.output
  return { output, output .. FETCHED, output .. FACTS }
end

-- Fetches the list's source where it has changed. Returns the path of the source, whether it is new, and a function
-- that makes it the source of later updates.
local function fetch_source(output, url, settings)
  local kept = files.read(output .. FETCHED)
  local facts = kept and json.decode(files.read(output .. FACTS) or "")
  local headers = {}
  -- Only an unspoilt file may stand for the one that has not changed.
  local source = text.hex(core.sha256(url)) -- a URL may have a password or a token
  if type(facts) == "table" and facts.source == source and facts.digest == text.hex(core.sha256(kept)) then
    headers["If-None-Match"], headers["If-Modified-Since"] = facts.etag, facts.modified
  end
  local reply = fetch(url, headers, settings)
  if reply.status == 304 and next(headers) then
    return output .. FETCHED, false, function() end
  elseif reply.status ~= 200 then
    status.fail(status.unknown, "the list cannot be fetched: the service answered %d", reply.status)
  end
  local path = output .. FETCHED .. ".new"
  status.ensure_written(files.write(path, reply.body))
  facts = { source = source, digest = text.hex(core.sha256(reply.body)) }
  facts.etag, facts.modified = reply.headers.etag, reply.headers["last-modified"]
  return path,
    true,
    function()
      status.ensure_written(os.rename(path, output .. FETCHED))
      status.ensure_written(files.write(output .. FACTS, assert(json.encode(facts))))
    end
end

-- The file that was fetched is kept beside the list. One that has not changed is compiled again, so that the age of the
-- list is the age of the last look.
local function run_update(context)
  local given, proxy = context.options, context:setting "proxy"
  local _, problem = http.proxy(proxy or "http://none")
  if problem then
    status.misuse(configuration.with_source(context.configuration.values, "proxy " .. problem))
  end
  inputs.refuse_stream(given.output, "-o")
  local path, is_new, keep = fetch_source(given.output, given.url, {
    timeout = given.timeout,
    max_response_size = given.max_size,
    compression = true,
    proxy = proxy,
    ca_file = context:setting "ca_file",
  })
  local settings = tables.without(given, "url", "timeout", "max_size")
  settings.inputs, settings.title = path, settings.title or (given.url:gsub("[?#].*", ""))
  local ok, code = pcall(build_list, context, settings, status.unknown)
  if not ok and is_new then
    os.remove(path)
  end
  status.ensure(ok or nil, code)
  keep()
  context:tell(is_new and "the list has changed" or "the list has not changed since the last update")
  return code
end

local function load(path, kind)
  local list, fault = lists.load(path, kind)
  return list or status.fail(status.unknown, fault)
end

local function run_info(context)
  local records = {}
  for index, path in ipairs(context.arguments.file) do
    local facts = load(path, "allow").facts
    local record = tables.pick(facts, { "entries", "title" })
    record.file, record.bytes, record.built = path, facts.size, time_of(facts.built_at)
    if facts.rows then -- a compiled list does not say what its build has left out
      record.invalid, record.expired = facts.invalid, facts.expired
    end
    record.days = facts.built_at and math.floor((os.time() - facts.built_at) / DAY)
    records[index] = record
  end
  context:write_records({ "file", "entries", "built", "days", "invalid", "expired", "bytes", "title" }, records)
end

-- The record of the first entry of a list about a text, on one network or on all whose format fits; or nil and why the
-- text is no address.
local function find(list, address, network)
  local networks = network and { network } or addresses.networks_of(address)
  local problem = not networks[1] and "it is an address of no network; -n NETWORK explains why" or nil
  for _, name in ipairs(networks) do
    local canonical, fault = addresses.validate(address, name)
    problem = problem or fault
    local note, any_network, expires
    if canonical then
      note, any_network, expires = list.find(canonical, name)
    end
    if note == nil and canonical then
      status.fail(status.unknown, tostring(any_network)) -- why the list cannot be searched
    elseif note then
      network = not any_network and addresses.canonical_network(name) or network
      return { network = network, listed = true, expires = time_of(expires), note = note ~= "" and note or nil }
    end
  end
  return not problem and { network = network, listed = false } or nil, problem
end

local function run_check(context)
  local list = load(context.arguments.file)
  warn_of_expired(context, list.facts.expired)
  local records, any_listed, any_bad = {}, false, false
  for _, address in ipairs(context.arguments.address) do
    local record, problem = find(list, address, context:network())
    if record then
      record.address = address
      records[#records + 1] = record
      any_listed = any_listed or record.listed
    else
      context:warn(("%s: %s"):format(address, problem))
      any_bad = true
    end
  end
  context:write_records({ "address", "network", "listed", "expires", "note" }, records)
  return any_listed and status.block or any_bad and status.usage or status.done
end

local common = option_of.pick(options.build, { "output", "title", "strict", "address_check", "max_shrink" }, {
  output = { short = "o", argument = "FILE" },
})

local INVALID_ROWS = "rows or OFAC's identifiers are no entries; with --strict nothing is written"
local DAMAGED = "a file is damaged or cannot be read"

return {
  {
    name = "list update",
    summary = "Fetch OFAC's list if it has changed, and compile it.",
    description = "The old list counts until the new one is complete. A list that has lost more than max_shrink of its "
      .. "entries is not taken. What was fetched stays beside the list, so that the next update asks only for changes. "
      .. "examples/systemd has a timer.",
    options = tables.concat(common, {
      { name = "url", type = "string", argument = "URL", default = OFAC, doc = "Where the list is." },
      build.seconds("timeout", 300, "Time for the whole transfer.", 1),
      build.count("max_size", "bytes", 256 * MIB, 1024, 1024 * MIB, "The longest file that is taken."),
    }, inputs.options),
    examples = { { line = "list update -o /var/lib/riskscreen/ofac.rsl", what = "From a timer, once a day" } },
    statuses = {
      done = "the list is new, or made anew from the source that has not changed",
      unknown = "the source cannot be fetched or is refused; the old list is as it was",
      invalid_rows = INVALID_ROWS,
    },
    written = written,
    run = run_update,
  },
  {
    name = "list build",
    summary = "Compile list files and OFAC's XML to one file for the option `lists`.",
    description = "A row is an address, perhaps with network, note and expires. Without a network it counts on every "
      .. "network whose format fits. The old file counts until the new one is complete. OFAC's files are sdn.xml and "
      .. "sdn_advanced.xml.",
    arguments = { { name = "input", count = "+", doc = "Files: CSV, JSON, plain lists, or OFAC's XML." } },
    options = tables.concat(common, inputs.options),
    examples = {
      { line = "list build sdn.xml ours.csv --output deny.rsl", what = "One file of two lists" },
      { line = "list build ours.csv --output deny.rsl --strict", what = "Nothing is written if a row is no entry" },
    },
    statuses = { done = "the list is written", invalid_rows = INVALID_ROWS },
    run = run_build,
  },
  {
    name = "list info",
    summary = "Verify list files, and show their entries, age and size.",
    arguments = { { name = "file", count = "+", doc = "List files." } },
    examples = { { line = "list info deny.rsl", what = "What a file holds" } },
    statuses = { done = "every file is complete", unknown = DAMAGED },
    run = run_info,
  },
  {
    name = "list check",
    summary = "Verify a list file, and say whether addresses are on it.",
    arguments = { { name = "file", doc = "The list file." }, { name = "address", count = "*", doc = "Addresses." } },
    examples = {
      { line = "list check deny.rsl", what = "Whether the file is complete" },
      { line = "list check deny.rsl 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", what = "Whether it has an address" },
    },
    statuses = {
      done = "the file is complete, and has none of the addresses",
      block = "the file has one of the addresses",
      usage = "the file has none of the addresses, and a text is no address; the others are answered",
      unknown = DAMAGED,
    },
    run = run_check,
  },
}
