-- dist.ini by the rules of opm, the package manager of OpenResty: `opm build` refuses a package that breaks one.
local version = require "riskscreen.version"

local REQUIRED = { "name", "abstract", "author", "is_original", "license", "repo_link" }
local OPTIONAL = { "lib_dir", "doc_dir", "main_module", "version", "requires", "exclude_files" }

-- Of the names that opm knows.
local LICENSES = { mit = true }
local DEPENDENCIES = { openresty = true, luajit = true, ngx_http_lua = true, ngx_lua = true, nginx = true }

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read "*a"
  pipe:close()
  return output
end

local function exists(path)
  local file = io.open(path)
  return file and file:close()
end

describe("dist.ini", function()
  local keys = {}

  setup(function()
    for line in io.lines "dist.ini" do
      if not line:find "^%s*$" and not line:find "^%s*[#;]" then
        local key, value = line:match "^%s*([%w_]+)%s*=%s*(.-)%s*$"
        assert(key, "opm cannot read the line " .. line)
        assert(not keys[key], "the key is there twice: " .. key)
        keys[key] = value
      end
    end
  end)

  it("has every key that opm requires, and no other than opm knows", function()
    local known = {}
    for _, name in ipairs(REQUIRED) do
      assert.is_truthy(keys[name] and keys[name] ~= "", name)
      known[name] = true
    end
    for _, name in ipairs(OPTIONAL) do
      known[name] = true
    end
    for name in pairs(keys) do
      assert.is_true(known[name], name)
    end
  end)

  it("has values that opm takes", function()
    assert.is_truthy(keys.name:find "^[%w_-][%w_-][%w_-]+$")
    assert.is_truthy(keys.author:find "%a")
    assert.equal("yes", keys.is_original)
    assert.is_true(LICENSES[keys.license])
    assert.is_truthy(keys.repo_link:find "^https?://[%w%p]+$")
    assert.is_nil(keys.repo_link:find "[\"'<>{}]")
  end)

  it("names the version, which the main module does not contradict", function()
    assert.equal(version, keys.version)
    -- opm takes the first number after `version =` in the main module for the version.
    for line in io.lines(keys.main_module) do
      local value = line:match "VERSION%s*=%s*(%S+)" or line:match "version%s*=%s*(%S+)"
      assert.is_nil(value and value:find "%d", line)
    end
  end)

  it("names directories and a main module that are there", function()
    assert.is_truthy(exists(keys.main_module))
    assert.equal("lua/", keys.main_module:sub(1, #keys.lib_dir + 1))
    assert.is_truthy(output_of("ls " .. keys.doc_dir):find "%.md")
    assert.is_truthy(exists "README.md")
  end)

  it("names dependencies that opm installs or checks", function()
    for item in keys.requires:gmatch "[^,]+" do
      local name, comparison, number = item:match "^%s*([%w_/-]+)%s*([<>=]*)%s*(%S*)%s*$"
      assert.is_true(DEPENDENCIES[name] or name:find "^[%w-]+/[%w-]+$" ~= nil, item)
      assert.is_true(comparison == ">=" or comparison == ">" or comparison == "=" or comparison == "", item)
      assert.is_true(comparison == "" or number:find "^%d[%w.]*$" ~= nil, item)
    end
  end)

  it("packs Lua files that LuaJIT compiles", function()
    assert.equal("", output_of("find " .. keys.lib_dir .. " -name '*.lua' -exec luajit -b {} /dev/null \\; 2>&1"))
  end)
end)
