-- Whole files.

local M = {}

---The content of a file.
---@param path string
---@param most? integer bytes to read; by default all
---@return string|nil content
---@return string|nil problem
function M.read(path, most)
  local file, problem = io.open(path, "rb")
  local content
  if file then
    content, problem = file:read(most or "*a")
    file:close()
  end
  return content or (not problem and "") or nil, problem
end

---Replaces a whole file: what is not complete never stands under its name.
---@param path string
---@param content string
---@return boolean|nil
---@return string|nil problem
function M.write(path, content)
  local file, problem = io.open(path .. ".new", "wb")
  local ok = file
  if file then
    ok, problem = file:write(content)
    local closed, fault = file:close()
    ok, problem = ok and closed, problem or fault
  end
  if ok then
    ok, problem = os.rename(path .. ".new", path)
  end
  return ok and true, problem
end

-- ENOENT, ENOTDIR, and ENAMETOOLONG of Linux and of BSD.
local is_absence = { [2] = true, [20] = true, [36] = true, [63] = true }

---Whether a file is there. One that cannot be opened may be.
---@param path string
---@return boolean
function M.exists(path)
  local file, _, code = io.open(path, "rb")
  return file and file:close() or not file and not is_absence[code]
end

return M
