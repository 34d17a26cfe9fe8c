-- Files of one test, in a directory that `clean` removes.

local lfs = require "lfs"

local M = {}

local directory

local function remove(path)
  if lfs.symlinkattributes(path, "mode") == "directory" then
    for name in lfs.dir(path) do
      if name ~= "." and name ~= ".." then
        remove(path .. "/" .. name)
      end
    end
  end
  assert(os.remove(path))
end

---The directory of the test.
---@return string
function M.directory()
  if not directory then
    directory = os.tmpname()
    os.remove(directory)
    assert(lfs.mkdir(directory))
  end
  return directory
end

---The path of a file in the directory of the test.
---@param name string
---@return string
function M.path(name)
  return M.directory() .. "/" .. name
end

---The names of the files in the directory, sorted.
---@return string[]
function M.names()
  local names = {}
  for name in lfs.dir(M.directory()) do
    if name ~= "." and name ~= ".." then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

---@param path string
---@return string
function M.read(path)
  local file = assert(io.open(path, "rb"))
  local content = file:read "*a"
  file:close()
  return content
end

---@param path string
---@param content string
function M.write(path, content)
  local file = assert(io.open(path, "wb"))
  assert(file:write(content))
  file:close()
end

---Removes the directory of the test.
function M.clean()
  if directory then
    remove(directory)
    directory = nil
  end
end

return M
