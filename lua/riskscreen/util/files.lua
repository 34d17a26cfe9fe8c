-- Files: what paths name, and whole files that are read and replaced.

local system = require "riskscreen.util.optional" "riskscreen.system"

local M = {}

---The content of a file.
---@param path string
---@param most? integer bytes to read; by default all
---@return string|nil content
---@return string|nil message
function M.read(path, most)
  local file, message = io.open(path, "rb")
  local content
  if file then
    content, message = file:read(most or "*a")
    file:close()
  end
  return content or (not message and "") or nil, message
end

---The kind of file at a path, also behind a link; nil where nothing is there.
---@param path string
---@return "file"|"directory"|"pipe"|"device"|nil
function M.kind(path)
  return system and (system.stat(path)) or nil
end

---Whether a path names something that is no file of bytes.
---@param path string
---@return boolean
function M.is_special(path)
  return (M.kind(path) or "file") ~= "file"
end

---Whether two files are one, also by links: paths or open files. Devices are not compared.
---@param one string|file*
---@param other string|file*
---@return boolean
function M.are_one(one, other)
  local function identity_of(file)
    local is_file = type(file) == "string" or io.type(file) == "file"
    return system and is_file and select(3, system.stat(file)) or nil
  end
  local identity = identity_of(one)
  return identity ~= nil and identity == identity_of(other)
end

---The path of the file behind a link, and any other path itself. The files that belong to a file stand beside it.
---@param path string
---@return string
function M.target(path)
  return system and system.link_target(path) or path
end

---The absolute path of what is there, without links; any other path itself.
---@param path string
---@return string
function M.real(path)
  return system and system.real_path(path) or path
end

-- The ends of the names of files that programs make beside a file: a run, a journal, and what replaces the file. Then
-- those of files beside these, and of the lock of a watch.
local ENDS = { ".state", ".head", ".riskscreen-part" }
local FURTHER = { "(%.state)%-.*$", "(%.riskscreen%-part)%..*$", "(.)%-watch%-[%w_.-]+%.lock.*$" }

-- The absolute name of the file beside which a file stands, or of the file itself; nothing need be there.
local function owner_of(path)
  local directory, name = M.target(path):match "^(.-/?)([^/]*)$"
  for _, ending in ipairs(FURTHER) do
    name = name:gsub(ending, "%1")
  end
  for _, ending in ipairs(ENDS) do
    name = name:sub(-#ending) == ending and name:sub(1, -#ending - 1) or name
  end
  return M.real(directory == "" and "." or directory) .. "/" .. name
end

-- Whether a path names a file, or one beside which that file stands under any name.
local function is_of(path, file)
  local is_found = M.are_one(path, file)
  for _, ending in ipairs(type(path) == "string" and ENDS or {}) do
    is_found = is_found or M.are_one(M.target(path) .. ending, file)
  end
  return is_found
end

---Whether a program that writes one file may also write the other one: they are one, or one stands beside the other, by
---its name or by a link. Devices are not compared.
---@param one string|file*
---@param other string|file*
---@return boolean
function M.belong(one, other)
  if is_of(one, other) or is_of(other, one) then
    return true
  end
  local are_paths = type(one) == "string" and type(other) == "string"
  return are_paths and owner_of(one) == owner_of(other) and not M.is_special(one)
end

---The path where a new content is written before it replaces the old one. No other program uses such a name.
---@param path string
---@return string
function M.unfinished(path)
  return M.target(path) .. ".riskscreen-part"
end

---The size of an open file, and a text that changes with its content; nil for a pipe, a device and a closed file.
---@param file any
---@return integer|nil size
---@return string|nil version
function M.version(file)
  if system and io.type(file) == "file" then
    return system.version(file)
  end
end

---Gives a file another name, also after a power cut.
---@param path string
---@param name string in the same directory
---@return boolean|nil
---@return string|nil message
function M.rename(path, name)
  local ok, message = os.rename(path, name)
  local directory = ok and system and io.open(name:match "^.*/" or ".", "rb")
  if directory then
    system.sync(directory)
    directory:close()
  end
  return ok, message
end

-- Makes the unfinished file, and locks it. Only the program that has the lock removes the file or gives it its name.
local function claim(path)
  local unfinished = M.unfinished(path)
  if not system then
    return io.open(unfinished, "wb")
  end
  local function is_ours(file)
    return file and system.lock(file) and M.are_one(file, unfinished)
  end
  local left, file, message = io.open(unfinished, "r+b"), nil, nil -- left by a program that was killed
  if not left or is_ours(left) and os.remove(unfinished) then
    file, message = system.make_like(unfinished, M.target(path))
    file = file and io.open(unfinished, "r+b")
  end
  if left then
    left:close()
  end
  if is_ours(file) then
    return file
  end
  return nil, message or "another program is writing it"
end

---Begins to replace a whole file: an incomplete file never stands under its name. A link stays a link, and the new
---file has the permissions of the old one. A device or a pipe is written directly. Of two programs that replace a
---file at the same time, the second one fails.
---@param path string
---@return file*|nil
---@return string|(fun(is_complete: boolean): boolean|nil, string|nil) message or the function that closes the file, and
---gives it its name if it is complete
function M.replace(path)
  if M.is_special(path) then
    local file, message = io.open(path, "wb")
    return file, file and function()
      return file:close()
    end or message
  end
  local unfinished = M.unfinished(path)
  local file, refusal = claim(path)
  if not file then
    return nil, refusal
  end
  return file,
    function(is_complete)
      local ok, message = (system and system.sync or file.flush)(file)
      if ok and is_complete then
        ok, message = M.rename(unfinished, M.target(path))
      end
      if not (ok and is_complete) then
        os.remove(unfinished)
      end
      file:close() -- this gives the lock back
      return ok and true, message
    end
end

---Replaces a whole file by a content.
---@param path string
---@param content string|fun(before: string): string or what makes it from the content before
---@return boolean|nil
---@return string|nil message
function M.write(path, content)
  local file, finish = M.replace(path)
  if not file then
    return nil, finish
  elseif type(content) == "function" then
    content = content(M.read(path) or "")
  end
  local ok, message = file:write(content)
  local closed, other = finish(ok ~= nil)
  return ok and closed, message or other
end

-- ENOENT, ENOTDIR, and ENAMETOOLONG of Linux and of BSD.
local is_absence = { [2] = true, [20] = true, [36] = true, [63] = true }

---Whether a file is there. One that cannot be opened may be. A pipe is not opened: that would wait for its writer.
---@param path string
---@return boolean
function M.exists(path)
  if M.kind(path) then
    return true -- to open a pipe would wait for its writer
  end
  local file, _, code = io.open(path, "rb")
  return file and file:close() or not file and not is_absence[code]
end

return M
