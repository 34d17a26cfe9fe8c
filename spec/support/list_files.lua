-- Files of lists in a directory of their own, which the spec removes.
local M = {}

local Directory = {}
Directory.__index = Directory

function Directory:path(name)
  return self.root .. "/" .. name
end

---Writes a file and renames it to its name, as lists are replaced.
function Directory:write(name, content)
  local path = self:path(name)
  local file = assert(io.open(path .. ".new", "wb"))
  file:write(content)
  file:close()
  assert(os.rename(path .. ".new", path))
  return path
end

function Directory:read(name)
  local file = assert(io.open(self:path(name), "rb"))
  local content = file:read "*a"
  file:close()
  return content
end

---The names of the files.
function Directory:names()
  local names, pipe = {}, assert(io.popen("ls -A " .. self.root))
  for name in pipe:lines() do
    names[#names + 1] = name
  end
  pipe:close()
  return names
end

function Directory:remove()
  os.execute("rm -rf " .. self.root)
end

function M.new()
  local root = os.tmpname()
  os.remove(root)
  assert(os.execute("mkdir " .. root))
  return setmetatable({ root = root }, Directory)
end

---Different EVM addresses.
function M.address(number)
  return ("0x%040x"):format(number)
end

return M
