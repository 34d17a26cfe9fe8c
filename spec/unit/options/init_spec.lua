local options = require "riskscreen.options"

local connection = setmetatable({}, { __name = "riskscreen.Redis" })

local KEY = "the-access-key"

-- As much of the runtime inside nginx as the options need.
local NGINX = {
  name = "nginx",
  shared_dict = function(name)
    return name == "riskscreen" and { name = name } or nil
  end,
}

local function given(more)
  local all = { base_url = "https://service.example", access_key = KEY }
  for name, value in pairs(more) do
    all[name] = value
  end
  return all
end

local function refused(more)
  local settings, message = options.check_client(given(more))
  assert.is_nil(settings)
  assert.is_string(message)
  assert.is_nil(message:find(KEY, 1, true))
  return message
end

describe("a client's options", function()
  it("have the documented defaults", function()
    local settings = assert(options.check_client(given {}))
    assert.equal(10, settings.timeout)
    assert.equal(3, settings.connect_timeout)
    assert.equal(16777216, settings.max_response_size)
    assert.equal("auto", settings.http_version)
    assert.is_true(settings.compression)
    assert.same(
      { granularity = "granularity", start_date = "startDate", end_date = "endDate", group_by = "groupBy" },
      settings.usage_parameters
    )
  end)

  it("are each described once, with a type and a meaning", function()
    local seen = {}
    for _, list in ipairs { options.client, options.call } do
      for _, option in ipairs(list) do
        assert.is_string(option.doc)
        assert.is_string(option.type)
        assert.is_nil(list == options.client and seen[option.name] or nil)
        seen[option.name] = true
      end
    end
  end)

  it("must hold a key and a base_url", function()
    local hint = " is required (got nil; if it comes from os.getenv, is the environment variable set?)"
    assert.equal("access_key" .. hint, select(2, options.check_client { base_url = "https://a.example" }))
    assert.equal("base_url" .. hint, select(2, options.check_client { access_key = KEY }))
  end)

  it("need no base_url with the option transport", function()
    assert.is_table(options.check_client { access_key = KEY, transport = print })
  end)

  it("may not have a name in braces that is no parameter of a published operation", function()
    local message = refused { endpoints = { kya_risk = { method = "GET", path = "/r/{key}/{adress}" } } }
    assert.matches("{key}, which is no parameter", message, 1, true)
    message = refused { endpoints = { kya_risk = { method = "GET", path = "/r/{adress}" } } }
    assert.matches("did you mean 'address'?", message, 1, true)
  end)

  it("suggest the nearest name", function()
    assert.matches("did you mean 'timeout'?", refused { timout = 3 }, 1, true)
  end)

  it("have retries on, and the rate limit, the breaker and hedging off", function()
    local settings = assert(options.check_client(given {}))
    local retry = { attempts = 3, base_delay = 0.1, max_delay = 5, max_retry_after = 60, budget = 0.2, reserve = 10 }
    assert.same(retry, settings.retry)
    assert.is_nil(settings.rate_limit)
    assert.is_false(settings.breaker)
    assert.is_false(settings.hedge)
  end)

  it("have the circuit breaker on inside nginx, unless it is switched off", function()
    assert.equal(5, assert(options.check_client(given {}, NGINX)).breaker.failures)
    assert.is_false(assert(options.check_client(given { breaker = false }, NGINX)).breaker)
  end)

  it("refuse shared state outside nginx", function()
    assert.equal("shared_dict is for clients inside nginx", refused { shared_dict = "riskscreen" })
    assert.equal("shared_as needs shared_dict", refused { shared_as = "name" })
  end)

  it("resolve a shared dict inside nginx", function()
    local settings = assert(options.check_client(given { shared_dict = "riskscreen" }, NGINX))
    assert.same({ name = "riskscreen" }, settings.shared_dict)
    local _, message = options.check_client(given { shared_dict = "other" }, NGINX)
    assert.equal("shared_dict must name a lua_shared_dict of the configuration (got 'other')", message)
  end)

  it("take true for a group's defaults, and false for off", function()
    local settings = assert(options.check_client(given { breaker = true, hedge = true, retry = false }))
    assert.equal(5, settings.breaker.failures)
    assert.equal("p95", settings.hedge.delay)
    assert.equal(1, settings.retry.attempts)
  end)

  it("name a group's bad setting by its path", function()
    assert.matches("^retry%.attempts must be between 1 and 10 requests", refused { retry = { attempts = 11 } })
    assert.matches(
      "unknown option 'cooldwon' in breaker; did you mean 'cooldown'",
      refused { breaker = { cooldwon = 1 } }
    )
  end)

  it("keep a flag that is off", function()
    assert.is_false(options.check_client(given { compression = false }).compression)
  end)

  it("do not change the caller's table", function()
    local mine = given { headers = { ["X-Trace"] = "1" }, endpoints = { kyt_result = { method = "GET", path = "/r" } } }
    local settings = options.check_client(mine)
    settings.headers["X-Trace"] = "2"
    settings.endpoints.kyt_result.path = "/other"
    assert.equal("1", mine.headers["X-Trace"])
    assert.equal("/r", mine.endpoints.kyt_result.path)
    assert.is_nil(mine.timeout)
  end)

  for _, case in ipairs {
    { "timeout", 0 },
    { "timeout", -1 },
    { "timeout", 0 / 0 },
    { "timeout", math.huge },
    { "timeout", "10" },
    { "connect_timeout", 0 },
    { "max_response_size", 100 },
    { "max_response_size", 2048.5 },
    { "http_version", "3" },
    { "http_version", 2 },
    { "compression", 1 },
    { "proxy", "proxy.example:8080" },
    { "proxy", "ftp://proxy.example" },
    { "proxy", "http://127.0.0.1\\@proxy.example:3128" },
    { "proxy", "http://proxy.example\\@127.0.0.1" },
    { "proxy", "http://127.0.0.1:1@@proxy.example" },
    { "proxy", "http://user:p@ss@localhost:1" },
    { "proxy", "http://proxy.example:1/@127.0.0.1" },
    { "proxy", "http://proxy.example/path" },
    { "proxy", "http://proxy.example?@127.0.0.1" },
    { "proxy", "http://proxy.example#@127.0.0.1" },
    { "proxy", "http://proxy.example:65536" },
    { "proxy", "http://proxy.example:80:80" },
    { "proxy", "http://[::1" },
    { "proxy", "http://[::1]x:1" },
    { "proxy", "http://[fe80::1%25eth0]:1" },
    { "proxy", "http://127.0.0.010" },
    { "proxy", "http://0x7f000001" },
    { "proxy", "http://127.0.0.1\0.proxy.example" },
    { "proxy", "http://127.0.0.1%40proxy.example" },
    { "ca_file", "" },
    { "ca_file", "a\0b" },
    { "client_key", "key.pem" },
    { "unix_socket", "" },
    { "user_agent", "a\r\nb" },
    { "user_agent", "" },
    { "policy", "strict" },
    { "clock", 5 },
    { "transport", {} },
    { "usage_parameters", { granularity = "a b" } },
    { "usage_parameters", { group = "a" } },
    { "usage_parameters", "a" },
    { "retry", 3 },
    { "retry", { attempts = 0 } },
    { "retry", { atempts = 2 } },
    { "retry", { budget = 2 } },
    { "rate_limit", true },
    { "rate_limit", {} },
    { "rate_limit", { rate = 0 } },
    { "rate_limit", { rate = 10, burst = 0.5 } },
    { "rate_limit.shared", { rate = 10, shared = {} } },
    { "rate_limit.shared", { rate = 10, shared = { redis = {} } } },
    { "rate_limit.shared", { rate = 10, burst = 1, shared = { redis = connection } } },
    { "rate_limit.shared", { rate = 10, shared = { redis = connection, away = "go on" } } },
    { "rate_limit.shared.share", { rate = 10, shared = { redis = connection, away = "share" } } },
    { "breaker", { share = 1.5 } },
    { "breaker", { cooldown = 0 } },
    { "hedge", { delay = "p50" } },
    { "hedge", { delay = 0 } },
    { "on", { request = true } },
    { "on", { requests = print } },
    { "random", 0.5 },
    { "runtime", { now = print } },
  } do
    it(("refuse %s = %s"):format(case[1], type(case[2]) == "table" and "{…}" or tostring(case[2])), function()
      assert.matches(case[1], refused { [case[1]:match "^[%w_]+"] = case[2] }, 1, true)
    end)
  end

  it("never show a value of the wrong type, which may be a secret", function()
    assert.equal("access_key must be a string or a function (got a number)", refused { access_key = 12345 })
    for _, proxy in ipairs {
      "ftp://user:secret@proxy",
      "http://user:secret@host\\",
      "http://user/secret@host",
      "secret@h",
    } do
      assert.is_nil(refused({ proxy = proxy }):find "secret")
    end
    assert.is_nil(refused({ base_url = "https://user:secret@service.example" }):find "secret")
  end)

  for _, key in ipairs {
    "",
    "a\nb",
    "a\r\nX: y",
    "a\0",
    "line-end\n",
    " key-of-it",
    "key-of-it ",
    "\tkey-of-it",
    "7-bytes",
  } do
    it(("refuse the key %q"):format(key), function()
      assert.matches("access_key", refused { access_key = key })
    end)
  end
end)

describe("a proxy", function()
  local function check(base_url, proxy)
    return options.check_client(given { base_url = base_url, proxy = proxy })
  end

  for _, proxy in ipairs {
    "http://proxy.example:8080",
    "http://user:password@10.0.0.1:3128",
    "https://proxy.example",
    "socks5h://proxy.example:1080",
    "http://127.0.0.1@proxy.example:1",
    "http://127.0.0.1:1@proxy.example:1",
    "http://localhost.proxy.example",
    "http://localhost:x@proxy.example",
  } do
    it("on another machine is refused for a plain base_url: " .. proxy, function()
      local settings, message = check("http://127.0.0.1:8080", proxy)
      assert.is_nil(settings)
      assert.matches("needs an https base_url", message, 1, true)
      assert.is_nil(message:find("password", 1, true))
      assert.is_table(check("https://service.example", proxy))
    end)
  end

  for _, proxy in ipairs { "http://127.0.0.1:3128", "http://user:p%40ss@localhost:1", "socks5://[::1]:1080" } do
    it("on this machine may have a plain base_url: " .. proxy, function()
      assert.is_table(check("http://127.0.0.1:8080", proxy))
    end)
  end
end)

describe("base_url", function()
  for url, expected in pairs {
    ["https://service.example"] = { "https://service.example", "" },
    ["https://service.example/"] = { "https://service.example", "" },
    ["HTTPS://Service.Example:8443"] = { "https://service.example:8443", "" },
    ["https://service.example/some/prefix/"] = { "https://service.example", "/some/prefix" },
    ["http://127.0.0.1:8080"] = { "http://127.0.0.1:8080", "" },
    ["http://127.200.0.9"] = { "http://127.200.0.9", "" },
    ["http://localhost:1"] = { "http://localhost:1", "" },
    ["http://[::1]:8080/x"] = { "http://[::1]:8080", "/x" },
    ["https://[2001:db8::1]"] = { "https://[2001:db8::1]", "" },
  } do
    it("may be " .. url, function()
      local base = assert(options.check_client(given { base_url = url })).base_url
      assert.same(expected, { base.origin, base.prefix })
    end)
  end

  for _, url in ipairs {
    "",
    "service.example",
    "ftp://service.example",
    "https://",
    "https:///path",
    "http://service.example",
    "http://127.0.0.1.evil.example",
    "http://127.0.0.256",
    "http://128.0.0.1",
    "http://127.1",
    "http://127.0.0.01",
    "https://10.1",
    "https://service.0x7f",
    "https://127.0.0.1\\@service.example",
    "https://service.example\\path",
    "http://0x7f000001",
    "http://localhost.evil.example",
    "http://[::2]",
    "http://127.0.0.1@evil.example",
    "https://user@service.example",
    "https://service.example?x=1",
    "https://service.example#x",
    "https://service.example:",
    "https://service.example:0",
    "https://service.example:65536",
    "https://service.example:8a",
    "https://service example",
    "https://service.example/a b",
    "https://service.example/a/../b",
    "https://service.example/%2e%2E/b",
    "https://service.example//evil.example",
    "https://service.example/a\r\nHost: evil.example",
    "https://service.example\\@evil.example",
  } do
    it(("may not be %q"):format(url), function()
      assert.matches("base_url", refused { base_url = url })
    end)
  end
end)

describe("extra headers", function()
  it("may have other names", function()
    assert.is_table(options.check_client(given { headers = { ["X-Request-Id"] = "a b\tc", ["tracestate"] = "a=b" } }))
  end)

  for name, value in pairs {
    ["X-Access-Key"] = "other",
    ["x-access-key"] = "other",
    ["Host"] = "evil.example",
    ["Content-Length"] = "0",
    ["transfer-encoding"] = "chunked",
    ["Accept"] = "text/html",
    ["User-Agent"] = "x",
    ["Traceparent"] = "00",
    ["X Y"] = "1",
    ["X:Y"] = "1",
    [""] = "1",
    ["X-Break"] = "a\r\nX-Access-Key: b",
    ["X-Zero"] = "a\0b",
    ["X-Number"] = 5,
  } do
    it(("may not be %q"):format(name), function()
      assert.matches("headers", refused { headers = { [name] = value } })
    end)
  end

  it("may not be given twice in different case", function()
    assert.matches("twice", refused { headers = { ["X-A"] = "1", ["x-a"] = "2" } })
  end)

  it("never show a value", function()
    assert.is_nil(refused({ headers = { ["Cookie"] = "secret\n" } }):find "secret")
  end)
end)

describe("endpoints", function()
  it("are kept by name", function()
    local endpoint = { method = "POST", path = "/api/v1/{requestId}", envelope = "usage" }
    assert.same(endpoint, options.check_client(given { endpoints = { kyt_result = endpoint } }).endpoints.kyt_result)
  end)

  for case, endpoints in pairs {
    ["an unknown name"] = { kyt_reslt = { method = "GET", path = "/r" } },
    ["no method"] = { kyt_result = { path = "/r" } },
    ["another method"] = { kyt_result = { method = "TRACE", path = "/r" } },
    ["no path"] = { kyt_result = { method = "GET" } },
    ["a path with a query"] = { kyt_result = { method = "GET", path = "/r?a=b" } },
    ["a path to another host"] = { kyt_result = { method = "GET", path = "//evil.example/r" } },
    ["a path with a dot segment"] = { kyt_result = { method = "GET", path = "/a/../r" } },
    ["an open brace"] = { kyt_result = { method = "GET", path = "/r/{requestId" } },
    ["an unknown field"] = { kyt_result = { method = "GET", path = "/r", query = "a" } },
    ["an unknown envelope"] = { kyt_result = { method = "GET", path = "/r", envelope = "none" } },
    ["a text"] = { kyt_result = "/r" },
  } do
    it("may not have " .. case, function()
      assert.matches("endpoints", refused { endpoints = endpoints })
    end)
  end

  it("suggest the nearest name", function()
    assert.matches("did you mean 'kyt_result'?", refused { endpoints = { kyt_reslt = {} } }, 1, true)
  end)
end)
