-- Checks the rooms and layers of lua/ and csrc/: `lua5.4 tools/layers.lua` prints each fault and how to mend it.
-- ./dev lint runs it; docs/architecture.md draws the layers.

local M = {}

---@class riskscreen.LayerRules
---@field rooms string the text of cmake/rooms.cmake
---@field layers string[][] the components of lua/riskscreen, lowest layer first; imports go down only
---@field sideways table<string, string> imports between two components of one layer, each with the reason
---@field open table<string, string> modules that another folder imports although the folder has a face, with the reason
---@field open_components table<string, boolean> components whose modules are all open: a face would only pass them on
---@field nginx_components string[] the components that use nginx's API
---@field nginx_aware table<string, string> modules outside those components that may name `ngx`, each with the reason

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

---@type riskscreen.LayerRules
M.rules = {
  rooms = read "cmake/rooms.cmake",
  layers = {
    { "version", "util" },
    { "json", "errors" },
    { "interface", "address" },
    { "options" },
    { "policy", "rows", "runtime" },
    { "call", "lists", "redis" },
    { "client", "kyt", "store" },
    { "webhook", "journal", "report", "queue", "watch" },
    { "nginx", "explore", "sandbox", "init" },
    { "cli" },
  },
  sideways = {
    ["util -> version"] = "the core must be of the same version",
    ["interface -> address"] = "a subject of a request or a reply is an address",
    ["client -> kyt"] = "the methods of client.kyt are a component of their own",
    ["explore -> sandbox"] = "a program is explored against the sandbox",
    ["init -> explore"] = "riskscreen.explore is loaded at its first use",
    ["init -> sandbox"] = "riskscreen.sandbox is loaded at its first use",
  },
  open_components = {
    ["riskscreen.interface"] = true,
    ["riskscreen.options"] = true,
    ["riskscreen.util"] = true,
  },
  open = {
    ["riskscreen.address.digest"] = "the chain of the journal has the same SHA-256",
    ["riskscreen.address.base58"] = "the addresses of the sandbox are made with it",
    ["riskscreen.policy.decision"] = "every component makes decisions with the one constructor",
    ["riskscreen.lists.index"] = "the gate keeps the account's lists under the same keys",
    ["riskscreen.policy.lookups"] = "the client makes the lookups that a policy needs",
    ["riskscreen.client.screen"] = "a watch and the command have its options, and a queue decides about transactions",
    ["riskscreen.rows.source"] = "a run, a watch and a queue read a list or a function of items",
    ["riskscreen.call.access_key"] = "the command removes the key from what an assistant reads",
    ["riskscreen.call.limiter"] = "a watch has the same cap of a day",
    ["riskscreen.call.breaker"] = "the gate has a circuit to Redis, too",
    ["riskscreen.call.stats"] = "nginx adds up the same figures",
    ["riskscreen.nginx.cache.dict"] = "the purges of a fleet raise floors for the same buckets of addresses",
    ["riskscreen.nginx.input.body"] = "the request of a service is a body, too",
    ["riskscreen.nginx.metrics.status"] = "the gate serves the status page, and the metrics know nothing of it",
    ["riskscreen.sandbox.assumptions"] = "the doctor measures them, and a profile of the sandbox imitates them",
    ["riskscreen.json.kept"] = "what is kept has one encoding, which most programs need not load",
    ["riskscreen.journal.replay"] = "a test of a policy decides about a record, as a journal has it",
    ["riskscreen.policy.claim"] = "the command proves the claims that every policy should satisfy",
    ["riskscreen.kyt.submission"] = "the inbox asks which events belong to a submission",
    ["riskscreen.runtime.virtual"] = "few programs have a clock that waits move",
    ["riskscreen.sandbox.transport"] = "explore has a client and a service in virtual time",
    ["riskscreen.webhook.inbox"] = "nginx makes an inbox over a shared dict",
    ["riskscreen.webhook.claims"] = "the claims of an inbox in nginx are in a shared dict",
    ["riskscreen.webhook.waiters"] = "the events of an inbox in nginx are in a shared dict",
  },
  nginx_components = { "riskscreen.nginx", "riskscreen.runtime.nginx" },
  nginx_aware = { ["riskscreen.runtime"] = "it finds out whether it runs inside nginx" },
}

-- The folders of csrc/ and the folders whose headers each may include.
local c_folders = {
  base = {},
  json = { base = true },
  http = { base = true },
  lists = { base = true },
  redis = { base = true },
  server = { base = true },
  lua = { base = true, json = true, lists = true, http = true, redis = true, server = true },
}

-- The one folder that includes each of these system headers. riskscreen.h is for programs that embed Lua.
local c_headers = {
  { pattern = "^lua%.h$", folder = "lua" },
  { pattern = "^lauxlib%.h$", folder = "lua" },
  { pattern = "^lualib%.h$", folder = "lua" },
  { pattern = "^curl/", folder = "http" },
  { pattern = "^microhttpd%.h$", folder = "server" },
}
local c_public = "csrc/riskscreen.h"

local c_modules = {
  ["riskscreen.core"] = true,
  ["riskscreen.decoder"] = true,
  ["riskscreen.server"] = true,
  ["riskscreen.system"] = true,
}

local function ordered(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

---The module that a file holds.
---@param path string such as lua/riskscreen/call/init.lua
---@return string|nil name such as riskscreen.call
function M.module_of(path)
  local name = path:match "^lua/(.*)%.lua$"
  return name and name:gsub("/", "."):gsub("%.init$", "")
end

---The component that a module is in: the first folder, or the module's own name.
---@param module string
---@return string
function M.component_of(module)
  return module:match "^riskscreen%.([^.]+)" or "init"
end

-- The names, strings and signs of a Lua text: { kind, text, line }. Comments are left out.
local function tokens_of(source)
  local tokens, position, line = {}, 1, 1
  local function skip(finish)
    local _, breaks = source:sub(position, finish):gsub("\n", "")
    line, position = line + breaks, finish + 1
  end
  local function add(kind, text, finish)
    tokens[#tokens + 1] = { kind = kind, text = text, line = line }
    skip(finish)
  end
  -- The inside and the end of the long bracket that begins at a position.
  local function long_bracket(start)
    local level = source:match("^%[(=*)%[", start)
    if level then
      local _, finish = source:find("]" .. level .. "]", start, true)
      finish = finish or #source
      return source:sub(start + #level + 2, finish - #level - 2), finish
    end
  end
  while position <= #source do
    local character = source:sub(position, position)
    if character:find "%s" then
      skip(select(2, source:find("^%s+", position)))
    elseif source:find("^%-%-", position) then
      local _, finish = long_bracket(position + 2)
      skip(finish or source:find("\n", position, true) or #source)
    elseif character == '"' or character == "'" then
      local finish = position + 1
      while finish <= #source and source:sub(finish, finish) ~= character do
        finish = finish + (source:sub(finish, finish) == "\\" and 2 or 1)
      end
      add("string", source:sub(position + 1, finish - 1), finish)
    elseif character:find "[%a_]" then
      local name = source:match("^[%w_]+", position)
      add("name", name, position + #name - 1)
    else
      local inside, finish = long_bracket(position)
      add(inside and "string" or "sign", inside or character, finish or position)
    end
  end
  return tokens
end

-- The modules that a file imports, also inside functions: a list of { name, line }. Where a `require` has no literal
-- argument, each string of the file that names a module of the tree counts.
local function imports_of(tokens, modules)
  local imports, computed = {}, false
  for i, token in ipairs(tokens) do
    if token.kind == "name" and token.text == "require" then
      local argument = tokens[i + 1]
      if argument and (argument.text == "(" or argument.text == ",") and argument.kind == "sign" then
        argument = tokens[i + 2]
      end
      local following = argument == tokens[i + 2] and tokens[i + 3]
      if argument and argument.kind == "string" and not (following and following.text == ".") then
        imports[#imports + 1] = { name = argument.text, line = argument.line }
      else
        computed = true
      end
    end
  end
  for _, token in ipairs(computed and tokens or {}) do
    if token.kind == "string" and modules[token.text] then
      imports[#imports + 1] = { name = token.text, line = token.line }
    end
  end
  return imports
end

---The Lua modules of a tree.
---@param files table<string, string> texts by path
---@return table<string, table> modules by name: path, tokens, and imports: a list of { name, line }
function M.modules(files)
  local modules = {}
  for path, source in pairs(files) do
    local name = M.module_of(path)
    if name then
      modules[name] = { name = name, path = path, tokens = tokens_of(source) }
    end
  end
  for _, module in pairs(modules) do
    module.imports = imports_of(module.tokens, modules)
  end
  return modules
end

local function is_within(module, component)
  return module == component or module:sub(1, #component + 1) == component .. "."
end

-- A module's name as faults are listed by.
local function short(name)
  return (name:gsub("^riskscreen%.", ""))
end

local function ranks_of(rules)
  local ranks = {}
  for rank, components in ipairs(rules.layers) do
    for _, component in ipairs(components) do
      ranks[component] = rank
    end
  end
  return ranks
end

-- The room of each component, and by room the rooms that it needs.
local function rooms_of(text)
  local lists, rooms, needs = {}, {}, {}
  for name, list in text:gmatch "set%(([%w_]+)%s+([^)]*)%)" do
    lists[name] = list
  end
  for room in (lists.riskscreen_rooms or ""):gmatch "%S+" do
    needs[room] = { [room] = true }
    for component in lists["room_" .. room]:gmatch "%S+" do
      rooms[component] = room
    end
    for needed in (lists["room_" .. room .. "_needs"] or ""):gmatch "%S+" do
      needs[room][needed] = true
    end
  end
  return rooms, needs
end

-- The state of one check: the tree, the rules, the faults found and which exceptions were needed.
local Check = {}
Check.__index = Check

function Check:fault(path, line, key, message)
  local place = path .. ":" .. line .. ":" .. key
  if not self.reported[place] then
    self.reported[place] = true
    self.faults[#self.faults + 1] = { path = path, line = line, key = key, message = message }
  end
end

-- Whether the rules list an exception, which is then needed.
function Check:excepted(list, key)
  if not self.rules[list][key] then
    return false
  end
  self.needed[list .. "." .. key] = true
  return true
end

function Check:layer(module, import)
  local from, to = M.component_of(module.name), M.component_of(import.name)
  local from_rank, to_rank = self.ranks[from], self.ranks[to]
  local message
  if from == to then
    return
  elseif not from_rank or not to_rank then
    message = "`%s` imports `%s` (%s), and one of them has no layer; add it to the rules in tools/layers.lua"
  elseif from_rank < to_rank then
    message = "`%s` lies below `%s` and must not import %s; take what it needs as an argument, or move it down"
  elseif from_rank == to_rank and not self:excepted("sideways", from .. " -> " .. to) then
    message = "`%s` and `%s` are in one layer: %s must not be imported; move what both need to a layer below"
  end
  if message then
    message = message:format(from, to, import.name)
    self:fault(module.path, import.line, "layer: " .. short(module.name) .. " -> " .. short(import.name), message)
  end
end

-- `riskscreen` itself names modules of all rooms, and loads them when they are first named.
function Check:room(module, import)
  local from = self.rooms[M.component_of(module.name)]
  local to = self.rooms[M.component_of(import.name)]
  local message
  if not from then
    message = ("%s is in no room; add its folder to cmake/rooms.cmake"):format(module.name)
  elseif module.name ~= "riskscreen" and to and not self.room_needs[from][to] then
    message = ("the room `%s` does not need the room `%s` of %s; take what it needs as an argument"):format(
      from,
      to,
      import.name
    )
  end
  if message then
    self:fault(module.path, import.line, "room: " .. short(module.name) .. " -> " .. short(import.name), message)
  end
end

-- The face that another folder has to import instead of one of a folder's modules.
function Check:face_of(from, to)
  local folder = "riskscreen"
  for part in to:gmatch "%.([^.]+)" do
    folder = folder .. "." .. part
    local module = self.modules[folder]
    if self.rules.open_components[folder] then
      return nil
    elseif folder ~= to and module and module.path:find "/init%.lua$" and not is_within(from, folder) then
      return not self:excepted("open", to) and folder or nil
    end
  end
end

function Check:imports(module)
  for _, import in ipairs(module.imports) do
    local name = import.name
    if self.modules[name] then
      self:layer(module, import)
      self:room(module, import)
      -- riskscreen itself is the face of everything: it passes on what users need.
      local face = module.name ~= "riskscreen" and self:face_of(module.name, name)
      if face then
        local message = ("%s is inside %s; import %s, or list it as open in tools/layers.lua"):format(name, face, face)
        self:fault(module.path, import.line, "face: " .. short(module.name) .. " -> " .. short(name), message)
      end
    elseif is_within(name, "riskscreen") and not c_modules[name] then
      local message = ("%s does not exist"):format(name)
      self:fault(module.path, import.line, "missing: " .. short(module.name) .. " -> " .. short(name), message)
    end
  end
end

local function names_nginx(token)
  local text = token.text
  return text == "ngx" or (token.kind == "string" and (text:find "^ngx%.[%w_.]+$" or text:find "^resty%.[%w_.]+$"))
end

function Check:nginx(module)
  for _, component in ipairs(self.rules.nginx_components) do
    if is_within(module.name, component) then
      return
    end
  end
  for _, token in ipairs(module.tokens) do
    if names_nginx(token) and not self:excepted("nginx_aware", module.name) then
      local allowed = table.concat(self.rules.nginx_components, " and ")
      local message = ("only %s use nginx's API; take what you need of `%s` as an argument"):format(allowed, token.text)
      self:fault(module.path, token.line, "ngx: " .. short(module.name), message)
    end
  end
end

-- The shortest chain of imports from a module back to itself, by names.
function Check:shortest_cycle(start)
  local previous, queue, position = {}, { start }, 1
  while queue[position] do
    local module = self.modules[queue[position]]
    for _, import in ipairs(module.imports) do
      if import.name == start then
        local chain, name = { start }, module.name
        while name ~= start do
          table.insert(chain, 1, name)
          name = previous[name]
        end
        table.insert(chain, 1, start)
        return chain
      elseif self.modules[import.name] and not previous[import.name] then
        previous[import.name] = module.name
        queue[#queue + 1] = import.name
      end
    end
    position = position + 1
  end
end

function Check:cycles()
  local in_cycle = {}
  for _, name in ipairs(ordered(self.modules)) do
    local chain = not in_cycle[name] and self:shortest_cycle(name)
    if chain then
      for _, member in ipairs(chain) do
        in_cycle[member] = true
      end
      local module, line = self.modules[name], nil
      for _, import in ipairs(module.imports) do
        line = line or import.name == chain[2] and import.line
      end
      for index, member in ipairs(chain) do
        chain[index] = short(member)
      end
      local text = table.concat(chain, " -> ")
      local message = ("the modules import each other: %s; move what they share to a module of its own"):format(text)
      self:fault(module.path, line, "cycle: " .. text, message)
    end
  end
end

function Check:c_file(path, source)
  local name = path:match "^csrc/([^/]+)/"
  local includes = c_folders[name]
  if not includes then
    self:fault(path, 1, "c: " .. path, ("%s is in no folder that tools/layers.lua knows"):format(path))
    return
  end
  local line = 0
  for text in (source .. "\n"):gmatch "(.-)\n" do
    line = line + 1
    local mark, header = text:match '^%s*#%s*include%s*([<"])([^>"]+)'
    local folder = mark == '"' and header:match "^([^/]+)/"
    if folder and folder ~= name and not includes[folder] then
      local message = "csrc/%s must not include %s; take what it needs as an argument, or move it to csrc/base"
      self:fault(path, line, "c: " .. path .. " -> " .. header, message:format(name, header))
    end
    for _, rule in ipairs(mark == "<" and c_headers or {}) do
      if header:find(rule.pattern) and rule.folder ~= name then
        local message = "only csrc/%s includes %s; move the code there"
        self:fault(path, line, "c: " .. path .. " -> " .. header, message:format(rule.folder, header))
      end
    end
  end
end

-- An exception that nothing needs any more hides the next fault of its kind.
function Check:stale()
  for _, list in ipairs { "open", "sideways", "nginx_aware" } do
    for _, key in ipairs(ordered(self.rules[list])) do
      if not self.needed[list .. "." .. key] then
        local message = ("no import needs '%s' in `%s` any more; remove it"):format(key, list)
        self:fault("tools/layers.lua", 1, "stale: " .. key, message)
      end
    end
  end
end

---Every fault of a tree, sorted by place.
---@param files table<string, string> the texts of lua/ and csrc/ by path
---@param rules? riskscreen.LayerRules M.rules by default
---@return table[] faults each with path, line, key and message
function M.check(files, rules)
  rules = rules or M.rules
  local rooms, room_needs = rooms_of(rules.rooms)
  local check = setmetatable({
    rules = rules,
    rooms = rooms,
    room_needs = room_needs,
    ranks = ranks_of(rules),
    modules = M.modules(files),
    faults = {},
    reported = {},
    needed = {},
  }, Check)
  for _, name in ipairs(ordered(check.modules)) do
    check:imports(check.modules[name])
    check:nginx(check.modules[name])
  end
  check:cycles()
  for _, path in ipairs(ordered(files)) do
    if path:find "^csrc/.*%.[ch]$" and path ~= c_public then
      check:c_file(path, files[path])
    end
  end
  check:stale()
  table.sort(check.faults, function(a, b)
    if a.path ~= b.path then
      return a.path < b.path
    elseif a.line ~= b.line then
      return a.line < b.line
    end
    return a.key < b.key
  end)
  return check.faults
end

---The Lua and C files below the current directory.
---@return table<string, string> files texts by path
function M.read()
  local files = {}
  local names = assert(io.popen "find lua csrc -name '*.lua' -o -name '*.c' -o -name '*.h'")
  for path in names:lines() do
    files[path] = read(path)
  end
  names:close()
  return files
end

if arg and arg[0] and arg[0]:find "layers%.lua$" then
  local faults = M.check(M.read())
  for _, fault in ipairs(faults) do
    io.stderr:write(("%s:%d: %s\n"):format(fault.path, fault.line, fault.message))
  end
  os.exit(#faults == 0)
end

return M
