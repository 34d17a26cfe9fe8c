local layers = require "tools.layers"

local function rules(changes)
  local made = {
    rooms = "set(riskscreen_rooms library gate)\nset(room_library init util json address call)\nset(room_gate nginx)"
      .. "\nset(room_gate_needs library)",
    layers = { { "util" }, { "json", "address" }, { "call" }, { "nginx", "init" } },
    sideways = {},
    open = {},
    open_components = { ["riskscreen.util"] = true },
    nginx_components = { "riskscreen.nginx" },
    nginx_aware = {},
  }
  for name, value in pairs(changes or {}) do
    made[name] = value
  end
  return made
end

-- The text of a module that imports others.
local function import(...)
  return ('require "%s"'):format(table.concat({ ... }, '" require "'))
end

-- A tree of empty modules, with some texts instead.
local function tree(texts)
  local files = {
    ["lua/riskscreen/init.lua"] = "",
    ["lua/riskscreen/util/text.lua"] = "",
    ["lua/riskscreen/json/init.lua"] = "",
    ["lua/riskscreen/json/reader.lua"] = "",
    ["lua/riskscreen/address/init.lua"] = "",
    ["lua/riskscreen/call/init.lua"] = "",
    ["lua/riskscreen/call/retry.lua"] = "",
    ["lua/riskscreen/nginx/gate.lua"] = "",
    ["csrc/base/buffer.c"] = "",
    ["csrc/riskscreen.h"] = "#include <lua.h>",
  }
  for path, text in pairs(texts) do
    files[path] = text
  end
  return files
end

local function faults_of(texts, changes)
  local found = {}
  for _, fault in ipairs(layers.check(tree(texts), rules(changes))) do
    found[#found + 1] = ("%s:%d: %s"):format(fault.path, fault.line, fault.key)
  end
  return found
end

local function message_of(texts, changes)
  local faults = layers.check(tree(texts), rules(changes))
  assert.equal(1, #faults)
  return faults[1].message
end

describe("the check of the layers", function()
  it("accepts imports that go down, of faces and of open components", function()
    assert.same(
      {},
      faults_of {
        ["lua/riskscreen/init.lua"] = import "riskscreen.call",
        ["lua/riskscreen/call/init.lua"] = import("riskscreen.json", "riskscreen.util.text", "cjson"),
        ["lua/riskscreen/json/init.lua"] = import("riskscreen.json.reader", "riskscreen.core"),
      }
    )
  end)

  it("refuses an import that goes up, with its line and the remedy", function()
    local texts = { ["lua/riskscreen/json/init.lua"] = '\n\nlocal call = require "riskscreen.call"' }
    assert.same({ "lua/riskscreen/json/init.lua:3: layer: json -> call" }, faults_of(texts))
    local message = message_of(texts)
    assert.matches("`json` lies below `call` and must not import riskscreen.call", message, 1, true)
    assert.matches("take what it needs as an argument, or move it down", message, 1, true)
  end)

  for what, text in pairs {
    ["inside a function"] = 'local function f() return require("riskscreen.call").x end',
    ["through pcall"] = 'pcall(require, "riskscreen.call")',
    ["from a table"] = 'local lazy = { call = "riskscreen.call" } function f(n) require(lazy[n]) end',
    ["chosen between two names"] = 'return require(inside and "riskscreen.call" or "cjson")',
    ["in single quotes"] = "require 'riskscreen.call'",
    ["in long brackets"] = "require [[riskscreen.call]]",
  } do
    it("sees an import " .. what, function()
      local found = faults_of { ["lua/riskscreen/json/init.lua"] = text }
      assert.same({ "lua/riskscreen/json/init.lua:1: layer: json -> call" }, found)
    end)
  end

  for what, text in pairs {
    ["a comment"] = '-- require "riskscreen.call"',
    ["a long comment"] = '--[==[\nrequire "riskscreen.call" ]] ngx\n]==] local x = 1',
    ["a string"] = [[local x = import "riskscreen.call" .. "\"ngx"]],
    ["the name of a type"] = 'local type_name = "riskscreen.call"',
  } do
    it("takes " .. what .. " for no import", function()
      assert.same({}, faults_of { ["lua/riskscreen/json/init.lua"] = text })
    end)
  end

  it("refuses an import between components of one layer unless the rules allow it", function()
    local texts = { ["lua/riskscreen/address/init.lua"] = import "riskscreen.json" }
    assert.same({ "lua/riskscreen/address/init.lua:1: layer: address -> json" }, faults_of(texts))
    assert.same({}, faults_of(texts, { sideways = { ["address -> json"] = "reason" } }))
  end)

  it("refuses a component without a layer", function()
    local texts = {
      ["lua/riskscreen/new/init.lua"] = "",
      ["lua/riskscreen/call/init.lua"] = import "riskscreen.new",
    }
    assert.same({ "lua/riskscreen/call/init.lua:1: layer: call -> new" }, faults_of(texts))
  end)

  it("refuses an import of a room that is not needed, except for the names of riskscreen itself", function()
    local changes = {
      rooms = "set(riskscreen_rooms library durable)\nset(room_library init util json nginx)\n"
        .. "set(room_durable\n  address call)",
    }
    local texts = { ["lua/riskscreen/init.lua"] = import "riskscreen.call" }
    assert.same({}, faults_of(texts, changes))
    texts["lua/riskscreen/nginx/gate.lua"] = import "riskscreen.call"
    assert.same({ "lua/riskscreen/nginx/gate.lua:1: room: nginx.gate -> call" }, faults_of(texts, changes))
    changes.rooms = changes.rooms .. "\nset(room_library_needs durable)"
    assert.same({}, faults_of(texts, changes))
  end)

  it("refuses a component without a room", function()
    local texts = { ["lua/riskscreen/call/init.lua"] = import "riskscreen.json" }
    local changes = { rooms = "set(riskscreen_rooms library)\nset(room_library init util json)" }
    assert.same({ "lua/riskscreen/call/init.lua:1: room: call -> json" }, faults_of(texts, changes))
  end)

  it("refuses a module that does not exist", function()
    local texts = { ["lua/riskscreen/call/init.lua"] = import "riskscreen.json.writer" }
    assert.same({ "lua/riskscreen/call/init.lua:1: missing: call -> json.writer" }, faults_of(texts))
  end)

  it("refuses a module of another folder that is not its face unless it is open", function()
    local texts = { ["lua/riskscreen/call/init.lua"] = import "riskscreen.json.reader" }
    assert.same({ "lua/riskscreen/call/init.lua:1: face: call -> json.reader" }, faults_of(texts))
    assert.same({}, faults_of(texts, { open = { ["riskscreen.json.reader"] = "reason" } }))
  end)

  it("applies that to folders inside a component, and not to a folder without a face", function()
    local texts = {
      ["lua/riskscreen/nginx/gate.lua"] = import("riskscreen.nginx.cache.lru", "riskscreen.nginx.web.store"),
      ["lua/riskscreen/nginx/cache/init.lua"] = import "riskscreen.nginx.cache.lru",
      ["lua/riskscreen/nginx/cache/lru.lua"] = "",
      ["lua/riskscreen/nginx/web/store.lua"] = "",
    }
    assert.same({ "lua/riskscreen/nginx/gate.lua:1: face: nginx.gate -> nginx.cache.lru" }, faults_of(texts))
  end)

  it("refuses modules that import each other, lazily too", function()
    local texts = {
      ["lua/riskscreen/call/init.lua"] = 'require "riskscreen.json"\nrequire "riskscreen.call.retry"',
      ["lua/riskscreen/call/retry.lua"] = 'local function f() require "riskscreen.call" end',
    }
    assert.same({ "lua/riskscreen/call/init.lua:2: cycle: call -> call.retry -> call" }, faults_of(texts))
  end)

  for what, text in pairs {
    ["the global"] = "local dict = ngx.shared.x",
    ["the global by its name"] = 'local api = rawget(_G, "ngx")',
    ["nginx's own modules"] = 'local semaphore = require "ngx.semaphore"',
    ["OpenResty's modules"] = 'pcall(require, "resty.core")',
  } do
    it("refuses " .. what .. " outside the components of nginx", function()
      local texts = { ["lua/riskscreen/call/init.lua"] = "\n" .. text }
      assert.same({ "lua/riskscreen/call/init.lua:2: ngx: call" }, faults_of(texts))
      assert.same({}, faults_of(texts, { nginx_aware = { ["riskscreen.call"] = "reason" } }))
      assert.same({}, faults_of { ["lua/riskscreen/nginx/gate.lua"] = text })
    end)
  end

  it("reports an exception that nothing needs", function()
    local changes = {
      open = { ["riskscreen.json.reader"] = "reason" },
      sideways = { ["address -> json"] = "reason" },
      nginx_aware = { ["riskscreen.call"] = "reason" },
    }
    assert.same({
      "tools/layers.lua:1: stale: address -> json",
      "tools/layers.lua:1: stale: riskscreen.call",
      "tools/layers.lua:1: stale: riskscreen.json.reader",
    }, faults_of({}, changes))
  end)

  it("refuses Lua's, libcurl's and libmicrohttpd's headers outside their folders", function()
    assert.same(
      {
        "csrc/base/buffer.c:2: c: csrc/base/buffer.c -> lua.h",
        "csrc/http/loop.c:1: c: csrc/http/loop.c -> microhttpd.h",
        "csrc/json/scan.c:1: c: csrc/json/scan.c -> lauxlib.h",
        "csrc/lua/core.c:1: c: csrc/lua/core.c -> curl/curl.h",
      },
      faults_of {
        ["csrc/base/buffer.c"] = "\n#include <lua.h>",
        ["csrc/http/loop.c"] = "# include <microhttpd.h>\n#include <curl/curl.h>",
        ["csrc/json/scan.c"] = "#include <lauxlib.h>",
        ["csrc/lua/core.c"] = "#include <curl/curl.h>\n#include <lua.h>",
      }
    )
  end)

  it("refuses headers of a C folder that lies above or beside", function()
    assert.same(
      {
        "csrc/base/buffer.c:1: c: csrc/base/buffer.c -> http/loop.h",
        "csrc/json/scan.c:1: c: csrc/json/scan.c -> server/server.h",
      },
      faults_of {
        ["csrc/base/buffer.c"] = '#include "http/loop.h"',
        ["csrc/json/scan.c"] = '#include "server/server.h"\n#include "base/buffer.h"\n#include "json/scan.h"',
        ["csrc/lua/core.c"] = '#include "compat.h"\n#include "http/loop.h"\n#include "server/server.h"',
      }
    )
  end)
end)
