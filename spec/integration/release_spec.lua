-- `./dev release`: its checks, its files, and that the same commit gives the same bytes.
local json = require "riskscreen.json"
local pages = require "spec.support.pages"
local version = require "riskscreen.version"

local function run(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1; printf '\\001%d' $?"))
  local output, status = pipe:read("*a"):match "^(.*)\1(%d+)$"
  pipe:close()
  return output, tonumber(status)
end

local function must(command)
  local output, status = run(command)
  assert(status == 0, output)
  return output
end

local directory
local first, second -- checkouts with the files of this one, in two places

setup(function()
  directory = must("mktemp -d"):match "%S+"
  first, second = directory .. "/first", directory .. "/a longer path/second"
  must("mkdir " .. first)
  must("git ls-files -z -co --exclude-standard | xargs -0 tar cf - | tar xf - -C " .. first)
  local git = "git -c user.name=a -c user.email=a@example.com"
  must(("cd %s && git init -q && git add -A && %s commit -q -m 'Everything'"):format(first, git))
  must(("mkdir -p '%s' && git clone -q %s '%s'"):format(directory .. "/a longer path", first, second))
end)

teardown(function()
  run(("rm -rf '%s'"):format(directory))
end)

describe("./dev release", function()
  local function release(arguments)
    return run(("cd %s && ./dev release %s"):format(first, arguments))
  end

  it("refuses a version that is none, or not the one of the files", function()
    for _, wrong in ipairs { "", "1.2", "01.2.3", "v1.2.3", "1.2.3-rc1" } do
      local output, status = release(wrong)
      assert.equal(1, status)
      assert.is_truthy(output:find("expected a version such as 1.2.3", 1, true), output)
    end
    local output, status = release "99.0.0"
    assert.equal(1, status)
    assert.is_truthy(output:find("the version is " .. version, 1, true), output)
  end)

  it("refuses a checkout with changes that are not committed", function()
    must(("echo >> %s/README.md"):format(first))
    local output, status = release(version)
    must(("cd %s && git checkout -q README.md"):format(first))
    assert.equal(1, status)
    assert.is_truthy(output:find("changes that are not committed", 1, true), output)
  end)
end)

describe("the changelog of a release", function()
  -- The result for a changelog with this text after its first heading.
  local function result(text)
    local path = directory .. "/CHANGELOG.md"
    local file = assert(io.open(path, "w"))
    file:write("# Changelog\n\n" .. text)
    file:close()
    return run(("lua5.4 tools/release/changelog.lua 1.2.0 2030-01-31 %s"):format(path))
  end

  it("gets the date at its head, and nothing else changes", function()
    local text = "## 1.2.0 (unreleased)\n\n- News.\n\n## 1.1.9 (2029-12-31)\n\n- Older.\n"
    local output, status = result(text)
    assert.equal(0, status)
    assert.equal("# Changelog\n\n" .. text:gsub("unreleased", "2030-01-31"), output)
  end)

  it("must have entries", function()
    local output, status = result "## 1.2.0 (unreleased)\n\nSoon.\n\n## 1.1.0 (2029-12-31)\n\n- Older.\n"
    assert.same({ "release: CHANGELOG.md has no entries about 1.2.0\n", 1 }, { output, status })
  end)

  it("must have an earlier version before this one", function()
    for _, released in ipairs { "1.2.0", "1.10.0", "2.0.0" } do
      local output, status = result(("## 1.2.0 (unreleased)\n\n- News.\n\n## %s (2029-12-31)\n"):format(released))
      assert.equal(1, status)
      assert.is_truthy(output:find("1.2.0 is not above " .. released, 1, true), output)
    end
  end)

  it("must begin with the version", function()
    local output, status = result "## 1.3.0 (unreleased)\n\n- News.\n"
    assert.equal(1, status)
    assert.is_truthy(output:find("does not begin with '## 1.2.0 (unreleased)'", 1, true), output)
  end)
end)

describe("a prepared release", function()
  local one, other
  -- With it a build may take object files that the specs of the rocks compiled.
  local cache = ""

  setup(function()
    one, other = directory .. "/one", directory .. "/other"
    local prepare = "cd '%s' && %s ./dev release %s --unchecked --luas 5.4 --without-deb --output %s"
    if select(2, run "command -v ccache") == 0 then
      cache = ("CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=%s CCACHE_DIR=%s/build/ccache"):format(
        directory:match "^/[^/]+",
        must("pwd"):match "[^\n]+"
      )
    end
    must(prepare:format(first, "umask 077; TZ=Asia/Tokyo " .. cache, version, one))
    -- The other one is compiled here.
    must(prepare:format(second, "TZ=America/Lima LC_ALL=C", version, other))
  end)

  it("is the same, byte for byte, from another directory at another time", function()
    assert.equal("", (run(("diff -r %s %s"):format(one, other))))
  end)

  it("has every file, each in SHA256SUMS", function()
    local stem = "riskscreen-" .. version
    local decoder = "riskscreen-decoder-" .. version
    local arch = must("uname -m"):match "%S+"
    for _, name in ipairs {
      "CHANGELOG.md",
      stem .. ".tar.gz",
      stem .. ".opm.tar.gz",
      stem .. ".cdx.json",
      stem .. "-1.rockspec",
      stem .. "-1.src.rock",
      decoder .. "-1.rockspec",
      decoder .. "-1.src.rock",
      "riskscreen-library-" .. version .. "-1.rockspec",
      "riskscreen-command-" .. version .. "-1.rockspec",
      ("lua-5.4/%s-1.linux-%s.rock"):format(stem, arch),
      ("lua-5.4/%s-1.linux-%s.rock"):format(decoder, arch),
    } do
      must(("test -s %s/%s"):format(one, name))
      must(("grep -q '  %s$' %s/SHA256SUMS"):format(name, one))
    end
    must(("cd %s && sha256sum -c SHA256SUMS"):format(one))
    local files = must(("find %s -type f | wc -l"):format(one))
    local sums = must(("wc -l < %s/SHA256SUMS"):format(one))
    assert.equal(tonumber(files), tonumber(sums) + 1)
  end)

  it("has a changelog with the date of the commit", function()
    local date = must(("cd %s && TZ=UTC git log -1 --date=format-local:%%F --format=%%cd"):format(first)):match "%S+"
    local head = ("\n## %s (%s)\n"):format(version, date)
    assert.is_truthy(pages.read(one .. "/CHANGELOG.md"):find(head, 1, true))
    local packed = must(("tar xzOf %s/riskscreen-%s.tar.gz riskscreen-%s/CHANGELOG.md"):format(one, version, version))
    assert.is_truthy(packed:find(head, 1, true))
  end)

  it("names no directory of this machine in its modules", function()
    must(("cd %s && mkdir rock && cd rock && unzip -q ../lua-5.4/riskscreen-%s-1.*.rock"):format(one, version))
    local output = run(("grep -r -l -a -e '%s' -e '%s' %s/rock"):format(directory, "/tmp/tmp", one))
    run(("rm -r %s/rock"):format(one))
    assert.equal("", output)
  end)

  it("has rocks that are installed without a network", function()
    local offline = select(2, run "unshare -n true") == 0 and "unshare -n " or ""
    local install = "%s %sluarocks --lua-version=5.4 --tree %s/tree install %s/%s"
    must(install:format(cache, offline, directory, one, ("riskscreen-decoder-%s-1.src.rock"):format(version)))
    local code = 'print(require("riskscreen.decoder").version)'
    local lua = "LUA_PATH= LUA_CPATH='%s/tree/lib/lua/5.4/?.so' lua5.4 -e '%s'"
    assert.equal(version .. "\n", must(lua:format(directory, code)))
  end)

  it("has an archive whose layout OPM and OpenResty read", function()
    must(("mkdir %s/site && tar xzf %s/riskscreen-%s.opm.tar.gz -C %s/site"):format(directory, one, version, directory))
    local root = ("%s/site/riskscreen-%s"):format(directory, version)
    local dist = pages.read(root .. "/dist.ini")
    assert.is_truthy(dist:find("\nlib_dir = lib\n", 1, true))
    assert.is_truthy(dist:find("\nversion = " .. version .. "\n", 1, true))
    must(("test -f %s/%s"):format(root, dist:match "main_module = (%S+)"))
    local code = 'print(require("riskscreen.address").validate("0x1", "eth"))'
    must(("LUA_PATH='%s/lib/?.lua;%s/lib/?/init.lua' luajit -e '%s'"):format(root, root, code))
  end)

  it("has a bill of materials in CycloneDX 1.5", function()
    local bom = assert(json.decode(pages.read(("%s/riskscreen-%s.cdx.json"):format(one, version))))
    assert.same({ "CycloneDX", "1.5", 1 }, { bom.bomFormat, bom.specVersion, bom.version })
    local hexadecimal = "%x%x%x%x%x%x%x%x%-%x%x%x%x%-5%x%x%x%-8%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x"
    assert.is_truthy(bom.serialNumber:find("^urn:uuid:" .. hexadecimal .. "$"))
    assert.is_truthy(bom.metadata.timestamp:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$")
    local own = bom.metadata.component
    assert.same({ "library", "riskscreen", version }, { own.type, own.name, own.version })
    local sum = must(("sha256sum < %s/riskscreen-%s.tar.gz"):format(one, version)):match "%x+"
    assert.same({ { alg = "SHA-256", content = sum } }, own.hashes)
    local scopes, refs = {}, {}
    for index, component in ipairs(bom.components) do
      assert.same({ "library", "string" }, { component.type, type(component.version) })
      assert.is_string(component.licenses[1].license.id)
      scopes[component.name] = component.scope
      refs[index] = component["bom-ref"]
    end
    assert.equal("required", scopes.libcurl)
    assert.equal("required", scopes.argparse)
    assert.equal("optional", scopes.libmicrohttpd)
    assert.equal("optional", scopes["lua-cjson"])
    assert.same({ { ref = own["bom-ref"], dependsOn = refs } }, bom.dependencies)
  end)
end)
