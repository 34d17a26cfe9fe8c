local peer = require "riskscreen.runtime.nginx.http.peer"

local function of(origin, more)
  local settings = { base_url = { origin = origin, prefix = "" }, concurrency = 8, http_version = "auto" }
  for name, value in pairs(more or {}) do
    settings[name] = value
  end
  return peer.of(settings)
end

describe("the peer of connections", function()
  for origin, expected in pairs {
    ["https://api.example"] = { "api.example", 443, "api.example", "api.example" },
    ["https://api.example:443"] = { "api.example", 443, "api.example", "api.example" },
    ["https://api.example:8443"] = { "api.example", 8443, "api.example:8443", "api.example" },
    ["http://127.0.0.1"] = { "127.0.0.1", 80, "127.0.0.1" },
    ["http://127.0.0.1:8080"] = { "127.0.0.1", 8080, "127.0.0.1:8080" },
    ["http://[::1]:8080"] = { "[::1]", 8080, "[::1]:8080" },
    ["http://[::1]"] = { "[::1]", 80, "[::1]" },
    ["http://localhost:8080"] = { "127.0.0.1", 8080, "localhost:8080" },
    ["https://localhost"] = { "127.0.0.1", 443, "localhost", "localhost" },
  } do
    it("follows from " .. origin, function()
      local found = of(origin)
      assert.same(expected, { found.host, found.port, found.authority, found.server_name })
    end)
  end

  it("is the Unix-domain socket of the settings, with the name of the URL", function()
    local found = of("https://api.example", { unix_socket = "/run/s" })
    assert.same({ "unix:/run/s", "api.example", "api.example" }, { found.host, found.authority, found.server_name })
    assert.is_nil(found.port)
  end)

  it(
    "are the same connections for equal settings, and others for any that differ in whom they reach or as whom",
    function()
      assert.equal(of("https://a.example").pool.pool, of("https://a.example:443").pool.pool)
      local seen = {}
      for _, found in ipairs {
        of "https://a.example",
        of "https://b.example",
        of "http://127.0.0.1:443",
        of "https://127.0.0.1",
        of "https://localhost",
        of("https://a.example", { unix_socket = "/s" }),
        of("https://a.example", { client_cert = "/s" }),
        of("https://a.example", { client_cert = "/s", client_key = "/t" }),
      } do
        assert.is_nil(seen[found.pool.pool])
        seen[found.pool.pool] = true
      end
    end
  )

  for name, more in pairs {
    proxy = { proxy = "http://user:secret@proxy:1" },
    ca_file = { ca_file = "/ca.pem" },
    http_version = { http_version = "2" },
  } do
    it("is refused with the option " .. name .. ", which cosockets cannot follow", function()
      local found, message = of("https://api.example", more)
      assert.is_nil(found)
      assert.truthy(message:find(name, 1, true))
      assert.is_nil(message:find("secret", 1, true))
    end)
  end
end)
