local access_key = require "riskscreen.call.access_key"
local riskscreen = require "riskscreen"
local virtual_time = require "riskscreen.runtime.virtual"

local KEY = "a.B%c/d+e="
local redact = access_key.redactor(KEY)

describe("redaction of the access key", function()
  it("takes the key out of every place", function()
    assert.equal("x [redacted] y [redacted]", redact("x " .. KEY .. " y " .. KEY))
  end)

  for what, spelling in pairs {
    ["percent-encoded"] = "a.B%25c%2Fd%2Be%3D",
    ["percent-encoded in lower case"] = "a.B%25c%2fd%2be%3d",
    ["percent-encoded completely"] = "%61%2e%42%25%63%2f%64%2b%65%3d",
    ["percent-encoded in part"] = "a.B%25c/d%2be=",
    ["percent-encoded twice"] = "a.B%2525c%252Fd%252Be%253D",
    ["escaped for JSON"] = "a.B%c\\/d+e=",
    ["escaped by numbers for JSON"] = "a.B%c\\u002fd\\u002Be\\u003d",
    ["escaped for JSON in JSON"] = "a.B%c\\\\\\/d+e=",
    ["escaped for HTML"] = "a.B&#37;c&#47;d&#43;e&#61;",
    ["escaped for HTML in hexadecimal"] = "a.B%c&#x2F;d&#X2b;e&#x3d;",
    ["escaped for HTML without semicolons"] = "a.B%c&#47d&#43e=",
    ["escaped for HTML in JSON"] = "a.B%c\\u0026#47;d\\u0026plus;e=",
    ["with named entities"] = "a.B%c&sol;d&plus;e&equals;",
    ["in upper case"] = "A.B%C/D+E=",
    ["with a space for the plus"] = "a.B%c/d e=",
    ["in base64"] = "YS5CJWMvZCtlPQ==",
    ["in hexadecimal"] = "612e4225632f642b653d",
    ["in upper-case hexadecimal"] = "612E4225632F642B653D",
  } do
    it("takes out the key " .. what, function()
      local result = redact("k=" .. spelling .. "&z")
      assert.is_truthy(result == "k=[redacted]&z" or result == "[redacted]&z", result)
    end)
  end

  it("takes out the key in each encoding of each encoding", function()
    local function each(set, encode)
      return function(text)
        return (text:gsub(set, encode))
      end
    end
    local function bytes(form)
      return function(character)
        return form:format(character:byte())
      end
    end
    local encoders = {
      each("[^%w_.~-]", bytes "%%%02X"),
      each('["\\/]', "\\%0"),
      each("[<>&\"'+/=\\]", bytes "\\u%04x"),
      each("[&<>/+=]", bytes "&#%d;"),
      each("[&<>/+=]", bytes "&#x%02X;"),
      each("[&/+]", { ["&"] = "&amp;", ["/"] = "&sol;", ["+"] = "&plus;" }),
    }
    local key = "sk/live+0123456789abcdef=="
    local remove_it = access_key.redactor(key)
    for _, first in ipairs(encoders) do
      for _, second in ipairs(encoders) do
        assert.matches("[redacted]", remove_it("denied: " .. second(first(key)) .. "."), 1, true)
      end
    end
  end)

  it("takes out the base64 of a text that holds the key", function()
    -- "u:", "us:" and "user:" before the key, and "!" behind it
    for _, spelling in ipairs { "dTphLkIlYy9kK2U9IQ==", "dXM6YS5CJWMvZCtlPSE=", "dXNlcjphLkIlYy9kK2U9IQ==" } do
      assert.is_truthy(redact(spelling):find("[redacted]", 1, true), spelling)
    end
  end)

  it("takes out the piece of the key at the end of a text that was cut", function()
    assert.equal("x [redacted]", redact "x a.B%c/d")
    assert.equal("x [redacted]", redact "x a.B%25c%2")
    assert.equal("x [redacted]", redact "x a.B%c\\u002")
    assert.equal("x [redacted]", redact "x a.B&#37;c&#4")
  end)

  it("takes out the piece of the key where a text within the message was cut", function()
    assert.equal("x '[redacted]...' is unknown", redact "x 'a.B%c/d...' is unknown")
    assert.equal("x '[redacted]...' is unknown", redact "x 'a.B%25c%2...' is unknown")
    for _, cut in ipairs { "&#9...", "&#x6...", "&#x...", "&#...", "&...", "&amp;#9...", "&#x6", "&#9", "%2..." } do
      assert.equal("x [redacted]", (redact("x &#97;&#46;&#x42;&#x25;" .. cut):gsub("%.%.%.$", "")), cut)
    end
  end)

  it("leaves other text alone", function()
    local text = "aXB%c/d+e= and 100 % of A&B \\ nothing else"
    assert.equal(text, redact(text))
    assert.equal("", redact "")
  end)

  it("keeps every other byte", function()
    local bytes = {}
    for code = 0, 255 do
      bytes[#bytes + 1] = string.char(code)
    end
    local all = table.concat(bytes)
    assert.equal(all .. "[redacted]" .. all, redact(all .. KEY .. all))
  end)

  it("takes out the key of a call under way after the next key has come", function()
    local keys = { "the-first-key", "the-second-key" }
    local owner = { settings = {
      access_key = function()
        return table.remove(keys, 1)
      end,
    } }
    assert.equal("the-first-key", access_key.of(owner))
    assert.equal("the-second-key", access_key.of(owner))
    assert.equal("[redacted], [redacted]", access_key.redact(owner, "the-first-key, the-second-key"))
  end)

  it("takes out each of several keys that a function gives in turn", function()
    local keys, count = { "the-first-key", "the-second-key", "the-third-key", "the-fourth-key" }, 0
    local owner = {
      settings = {
        access_key = function()
          count = count + 1
          return keys[(count - 1) % #keys + 1]
        end,
      },
    }
    for _ = 1, 2 * #keys do
      access_key.of(owner)
      if count >= #keys then
        assert.equal(("[redacted] "):rep(#keys), access_key.redact(owner, table.concat(keys, " ") .. " "))
      end
    end
  end)

  it("forgets keys that were replaced long ago", function()
    local count = 0
    local owner = {
      settings = {
        access_key = function()
          count = count + 1
          return ("the-key-number-%04d"):format(count)
        end,
      },
    }
    for _ = 1, 100 do
      access_key.of(owner)
    end
    assert.equal("[redacted]", access_key.redact(owner, "the-key-number-0093"))
    assert.equal(8, #owner.keys)
  end)

  it("takes little time for a long text, whatever the key is", function()
    for _, key in ipairs { KEY, "\\", "%", "&", "a", "\\/" } do
      for _, text in ipairs { "%25&#37;\\u0025", "\\", "%25", "&amp;", "&#38;", "%2525252525", "\\/", "a", "\\\\'" } do
        for _, length in ipairs { 32, 4096 } do
          local long = key:rep(length):sub(1, length)
          local started = os.clock()
          local result = access_key.redactor(long)(text:rep(4096))
          assert.is_true(os.clock() - started < 1, ("a key of %d times '%s' in '%s'"):format(length, key, text))
          assert.is_nil(result:find(long, 1, true))
        end
      end
    end
  end)

  it("takes a key of signs alone out of a text", function()
    for _, key in ipairs { "\\", "%", "&", "a", "\\/" } do
      key = key:rep(32):sub(1, 32)
      assert.equal("x [redacted] y", access_key.redactor(key)("x " .. key .. " y"))
    end
  end)

  it("takes out everything where the text repeats the key's beginning too often", function()
    assert.equal("[redacted]", access_key.redactor(("\\"):rep(200))(("\\"):rep(4096)))
  end)
end)

describe("the errors of calls with a new key for each request", function()
  for what, end_request in pairs {
    ["an answer"] = function(key)
      return {
        status = 200,
        headers = {},
        body = ('{"success":false,"code":1001,"message":"%s is not known"}'):format(key),
      }
    end,
    ["a failure"] = function(key)
      return nil, { kind = "network", message = "no way for " .. key, sent = true }
    end,
  } do
    local function expect_no_key(hook_waits)
      local time, count, messages = virtual_time.new(), 0, {}
      local client = riskscreen.new {
        runtime = time,
        retry = false,
        breaker = false,
        on = {
          request = hook_waits and function()
            time.sleep(1)
          end,
        },
        access_key = function()
          count = count + 1
          return ("the-key-number-%04d"):format(count)
        end,
        transport = function(request)
          time.sleep(1)
          return end_request(request.headers["X-Access-Key"])
        end,
      }
      time.tasks.run(function()
        for index = 1, 20 do
          time.tasks.spawn(function()
            local _, err = client.kya:risk { address = ("0x%040x"):format(index), network = "eth" }
            messages[index] = err.message
          end)
        end
      end)
      assert.equal(20, #messages)
      for _, message in ipairs(messages) do
        assert.matches("[redacted]", message, 1, true)
        assert.is_nil(message:find("number", 1, true))
      end
    end

    it("do not have their own key from " .. what .. ", after those of many others", function()
      expect_no_key()
    end)

    it("do not have it from " .. what .. " either where others take theirs while a hook waits", function()
      expect_no_key(true)
    end)
  end
end)
