-- The rows of a file of addresses: CSV, plain or gzip, from a file or stdin, in constant memory. The columns are found
-- by the names in the header.

local addresses = require "riskscreen.address"
local csv = require "riskscreen.util.csv"
local optional = require "riskscreen.util.optional"
local status = require "riskscreen.cli.status"
local text = require "riskscreen.util.text"

local PIECE = 65536 -- bytes
local NO_ZLIB = "reading .gz needs lua-zlib: apt install lua-zlib, or luarocks install lua-zlib"

-- Names of columns, in lower case; the first that a header has is taken.
local address_names = { "address", "wallet_address", "wallet address", "wallet", "addr" }
local network_names = { "network", "chain", "blockchain" }

---The columns of a file, as options of the verbs that read one.
---@type riskscreen.cli.Option[]
local column_options = {
  {
    name = "address_column",
    type = "string",
    argument = "NAME",
    doc = "Column of the addresses; by default address, wallet or addr.",
  },
  {
    name = "network_column",
    type = "string",
    argument = "NAME",
    doc = "Column of the networks; by default network, chain or blockchain.",
  },
  { name = "keep", type = "table", list = true, argument = "NAMES", doc = "Columns of FILE to copy to the results." },
}

---@class riskscreen.cli.Row
---@field line integer the line on which it begins
---@field address? string
---@field network? string
---@field fault? string the row is not CSV
---@field kept string[] the cells of the columns to keep

---@class riskscreen.cli.Input
---@field size? integer bytes of the file, where they are known
---@field read_bytes integer bytes read so far
---@field beginning string its first bytes
---@field has_rows boolean
---@field has_network boolean it has a column of networks
---@field next fun(): riskscreen.cli.Row|nil
---@field close fun()

local M = { options = column_options }

-- The pieces of a gzip stream, which may consist of several members, from the pieces of the file.
local function inflated(read)
  local zlib = optional "zlib"
  if not zlib then
    status.misuse(NO_ZLIB)
  end
  local stream, given, rest = nil, 0, ""
  return function()
    while true do
      local piece = rest
      rest = ""
      if piece == "" then
        local problem
        piece, problem = read()
        if not piece then
          return nil, problem or (stream and "the gzip stream ends early: the file is not complete") or nil
        end
      end
      if not stream then
        stream, given = zlib.inflate(), 0
      end
      local ok, output, is_end, taken = pcall(stream, piece)
      if not ok then
        return nil, "the file is not gzip, or it is damaged"
      end
      given = given + #piece
      if is_end then
        stream, rest = nil, piece:sub(#piece - (given - taken) + 1)
      end
      if output ~= "" then
        return output
      end
    end
  end
end

local function lower_names(header)
  local positions = {}
  for index, name in ipairs(header) do
    local key = name:lower():gsub("^%s+", ""):gsub("%s+$", "")
    positions[key] = positions[key] or index
  end
  return positions
end

-- The position of a column: of the given name, or of the first known name.
local function position_of(positions, header, wanted, known, flag)
  if not wanted then
    for _, name in ipairs(known) do
      if positions[name] then
        return positions[name]
      end
    end
    return nil
  end
  local position = positions[wanted:lower()]
  if not position then
    local hint = text.did_you_mean(wanted, header)
    local shown = text.printable(table.concat(header, ", "), 300)
    status.misuse(("%s: the file has no column %s%s; its columns are %s"):format(flag, text.show(wanted), hint, shown))
  end
  return position
end

local function trimmed(cell)
  return cell and (cell:gsub("^%s+", ""):gsub("%s+$", ""))
end

-- Where address, network and the kept cells are; and whether the first row is a header.
local function layout_of(first, wanted)
  local positions = lower_names(first)
  local address = position_of(positions, first, wanted.address_column, address_names, "--address-column")
  if address then
    local kept = {}
    for index, name in ipairs(wanted.keep or {}) do
      kept[index] = position_of(positions, first, name, {}, "--keep")
    end
    for _, name in ipairs(wanted.optional or {}) do
      kept[#kept + 1] = positions[name]
    end
    local network = position_of(positions, first, wanted.network_column, network_names, "--network-column")
    return { address = address, network = network, kept = kept, has_header = true }
  elseif addresses.networks_of(trimmed(first[1]))[1] and not (wanted.network_column or wanted.keep) then
    -- A plain list of addresses, perhaps with their networks.
    return { address = 1, network = first[2] and 2, kept = {} }
  end
  local shown = text.printable(table.concat(first, ", "), 300)
  status.misuse(
    ("the file has no column 'address'; its first line is: %s. Name the column with --address-column"):format(shown)
  )
end

local function row_of(cells, line, layout)
  local network = layout.network and trimmed(cells[layout.network])
  local kept = {}
  for index, position in ipairs(layout.kept) do
    kept[index] = cells[position] or ""
  end
  return {
    line = line,
    address = trimmed(cells[layout.address]) or "",
    network = network and network ~= "" and network:lower() or nil,
    kept = kept,
  }
end

local function open_file(path, stdin)
  if path == "-" then
    return stdin, nil
  end
  local file, problem = io.open(path, "rb")
  if not file then
    status.misuse("the file cannot be read: " .. problem)
  end
  local size = file:seek "end"
  file:seek "set"
  return file, size
end

---Opens a file of addresses. A file that cannot be read on ends the command.
---@param path string "-" is stdin
---@param wanted { address_column?: string, network_column?: string, keep?: string[], optional?: string[] }
---@param stdin table
---@return riskscreen.cli.Input
function M.open(path, wanted, stdin)
  local file, size = open_file(path, stdin)
  ---@type riskscreen.cli.Input
  local input = { size = size, read_bytes = 0 }
  local function read()
    local piece, problem = file:read(PIECE)
    input.read_bytes = input.read_bytes + (piece and #piece or 0)
    return piece, problem
  end
  local first_piece, first_problem = read()
  input.beginning = first_piece or ""
  local pieces = function()
    local piece, problem = first_piece, first_problem
    first_piece, first_problem = nil, nil
    if piece or problem then
      return piece, problem
    end
    return read()
  end
  -- The bytes tell gzip, also on stdin.
  local is_gzip = first_piece and first_piece:sub(1, 2) == "\31\139"
  local next_row = csv.reader(is_gzip and inflated(pieces) or pieces)

  local function take()
    local cells, line, fault = next_row()
    if cells == nil and line then
      status.misuse(("%s cannot be read to its end: %s"):format(path == "-" and "stdin" or path, tostring(line)))
    end
    return cells, line, fault
  end

  local cells, line, fault = take()
  if cells == false then
    status.misuse(("line %d: the first line is not CSV: %s"):format(line, fault))
  end
  local layout = cells and layout_of(cells, wanted)
  input.has_rows = layout ~= nil
  input.has_network = layout ~= nil and layout.network ~= nil
  local waiting = layout and not layout.has_header and row_of(cells, line, layout) or nil

  function input.next()
    local row = waiting
    waiting = nil
    if row or not layout then
      return row
    end
    cells, line, fault = take()
    if cells then
      return row_of(cells, line, layout)
    elseif cells == false then
      return { line = line, fault = fault, kept = {} }
    end
  end

  function input.close()
    if path ~= "-" then
      file:close()
    end
  end

  return input
end

return M
