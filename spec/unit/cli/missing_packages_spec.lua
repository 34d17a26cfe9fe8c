-- Without a package of its own each verb ends with the status of misuse and one line that names the package.
local cli = require "spec.support.cli"
local temporary = require "spec.support.temporary"

local DBI = { "dbd.sqlite3", "apt install lua-dbi-sqlite3" }
local ZLIB = { "zlib", "apt install lua-zlib" }
local EXPAT = { "lxp", "apt install lua-expat" }
local SERVER = { "riskscreen.server", "libmicrohttpd" }

local verbs = {
  { DBI, "screen --sandbox -n eth --file ROWS -o OUT" },
  { DBI, "watch --sandbox -n eth --file ROWS --once" },
  { ZLIB, "screen --sandbox -n eth --file ZIPPED -o OUT" },
  { ZLIB, "screen --sandbox -n eth --file ZIPPED --dry-run" },
  { ZLIB, "watch --sandbox -n eth --file ZIPPED --once" },
  { ZLIB, "list build ZIPPED -o OUT" },
  { ZLIB, "report ZIPPED -o OUT" },
  { EXPAT, "list build XML -o OUT" },
  { SERVER, "sandbox --port 0" },
  { SERVER, "webhook listen --port 0 --accept-unauthenticated" },
}

describe("a verb without its optional package", function()
  local loaded, preloaded, paths

  before_each(function()
    paths = { OUT = temporary.path "out.csv", ROWS = temporary.path "rows.csv" }
    paths.ZIPPED, paths.XML = temporary.path "rows.csv.gz", temporary.path "sdn.xml"
    temporary.write(paths.ROWS, "address\n0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3\n")
    temporary.write(paths.ZIPPED, "\31\139\8\0")
    temporary.write(paths.XML, '<?xml version="1.0"?>\n<sdnList></sdnList>\n')
  end)

  after_each(temporary.clean)

  for _, verb in ipairs(verbs) do
    local name, package_name, line = verb[1][1], verb[1][2], verb[2]
    it(("ends with 4 and one line without %s: %s"):format(name, line), function()
      loaded, preloaded = package.loaded[name], package.preload[name]
      package.loaded[name] = nil
      package.preload[name] = function()
        error(("module '%s' not found"):format(name), 0)
      end
      local arguments = {}
      for word in line:gmatch "%S+" do
        arguments[#arguments + 1] = paths[word] or word
      end
      local ok, status, _, err = pcall(cli.run, arguments)
      package.loaded[name], package.preload[name] = loaded, preloaded
      assert(ok, status)
      assert.equal(4, status, err)
      err = err:gsub("riskscreen: the built%-in sandbox answers[^\n]*\n", "")
      assert.matches(package_name, err, 1, true)
      assert.matches("^[^\n]+\n$", err)
    end)
  end
end)
