-- The bill of materials of a release, as CycloneDX 1.5: lua5.4 tools/release/sbom.lua SHA256_OF_TARBALL EPOCH
--
-- The versions are those of this machine's libraries, with which the packages were built.
local json = require "riskscreen.json"
local version = require "riskscreen.version"

local hash, epoch = arg[1], tonumber(arg[2])

local function first_line(command)
  local pipe = assert(io.popen(command .. " 2>/dev/null"))
  local line = pipe:read "*l"
  pipe:close()
  return line ~= "" and line or nil
end

local function of_pkg_config(name)
  return function()
    return first_line("pkg-config --modversion " .. name)
  end
end

local function of_package(name)
  return function()
    local full = first_line("dpkg-query -W -f '${Version}' " .. name)
    return full and full:gsub("^%d+:", ""):gsub("[-+~].*$", "")
  end
end

-- scope: "required", or "optional" where the library works without it.
local COMPONENTS = {
  {
    name = "libcurl",
    license = "curl",
    scope = "required",
    what = "HTTP and TLS of the C core",
    find = of_pkg_config "libcurl",
  },
  { name = "argparse", license = "MIT", scope = "required", what = "the command", find = of_package "lua-argparse" },
  {
    name = "libmicrohttpd",
    license = "LGPL-2.1-or-later",
    scope = "optional",
    what = "riskscreen.server: the sandbox over HTTP, and webhooks",
    find = of_pkg_config "libmicrohttpd",
  },
  {
    name = "lua-cjson",
    license = "MIT",
    scope = "optional",
    what = "JSON where the C core is not compiled, and the gate's cache",
    find = of_package "lua-cjson",
  },
  {
    name = "lua-dbi-sqlite3",
    license = "MIT",
    scope = "optional",
    what = "stores in SQLite, and runs over files",
    find = of_package "lua-dbi-sqlite3",
  },
  {
    name = "lua-zlib",
    license = "MIT",
    scope = "optional",
    what = "compressed input files",
    find = of_package "lua-zlib",
  },
}

local own = "pkg:generic/riskscreen@" .. version
local components, refs = {}, {}
for _, entry in ipairs(COMPONENTS) do
  -- A library that is not installed was not built in.
  local found = entry.find()
  if not found and entry.scope == "required" then
    error("the version of " .. entry.name .. " is not known: is it installed?")
  elseif found then
    local ref = ("pkg:generic/%s@%s"):format(entry.name, found)
    refs[#refs + 1] = ref
    components[#components + 1] = {
      type = "library",
      ["bom-ref"] = ref,
      name = entry.name,
      version = found,
      description = entry.what,
      scope = entry.scope,
      licenses = { { license = { id = entry.license } } },
      purl = ref,
    }
  end
end

-- The serial number follows from the tarball, so that the file can be made again.
local serial = ("urn:uuid:%s-%s-5%s-8%s-%s"):format(
  hash:sub(1, 8),
  hash:sub(9, 12),
  hash:sub(14, 16),
  hash:sub(18, 20),
  hash:sub(21, 32)
)

local bom = {
  bomFormat = "CycloneDX",
  specVersion = "1.5",
  serialNumber = serial,
  version = 1,
  metadata = {
    timestamp = os.date("!%Y-%m-%dT%H:%M:%SZ", epoch),
    component = {
      type = "library",
      ["bom-ref"] = own,
      name = "riskscreen",
      version = version,
      licenses = { { license = { id = "MIT" } } },
      purl = own,
      hashes = { { alg = "SHA-256", content = hash } },
    },
  },
  components = components,
  dependencies = { { ref = own, dependsOn = refs } },
}

-- Members in the order of their names: the order of `pairs` differs from run to run.
local function write(value, indent)
  local inner = indent .. "  "
  if type(value) ~= "table" then
    return (json.encode(value):gsub("\\/", "/"))
  end
  local parts, names = {}, {}
  for name in pairs(value) do
    names[#names + 1] = name
  end
  table.sort(names)
  local is_list = json.is_array(value)
  for _, name in ipairs(names) do
    parts[#parts + 1] = inner .. (is_list and "" or json.encode(name) .. ": ") .. write(value[name], inner)
  end
  local open, close = is_list and "[" or "{", is_list and "]" or "}"
  return open .. "\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. close
end
io.write(write(bom, ""), "\n")
