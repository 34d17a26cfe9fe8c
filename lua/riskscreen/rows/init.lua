-- The one reader of files of addresses: CSV with a header, a plain list without one, JSON lines, or a JSON array. It
-- holds one row. A file that two programs could read in two ways is refused. A row with a bad address stays a row.
local addresses = require "riskscreen.address"
local errors = require "riskscreen.errors"
local files = require "riskscreen.rows.files"
local generations = require "riskscreen.util.generations"
local json = require "riskscreen.json"
local records = require "riskscreen.rows.records"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_ARRAY = 64 * 1024 * 1024 -- bytes of a JSON array, which is held in memory
local SEPARATORS = { ",", ";", "\t" }
local ANY_SEPARATOR = "[,;\t]"

-- The names of columns in their plain form.
local names_of = {
  address = text.words "address wallet wallet_address addr crypto_address deposit_address to_address recipient",
  network = { "network", "chain", "blockchain" },
}
local LIKE_ADDRESS = "^" .. ("[%w:]"):rep(20) .. "[%w:]*$" -- the shortest address has more, and none another character
local LONGEST_NETWORK = 40 -- bytes of a cell that may name a network
local SETTLES = ": --%s-column NAME names it, --ignore-columns NAME passes it over"
local LIKE_NETWORK = "%s is not read as the network; did you mean 'network'?" .. SETTLES:sub(2):format "network"
local UNREAD = "the column %s is not read, and it has the %s %s" .. SETTLES
local OFAC = ", a table of OFAC's, without columns of addresses: take its sdn.xml, or `riskscreen list update`"
-- Parts of names for an address or a party whose address a column may hold, with "_" around each word; and of no name.
local like_address = text.words(
  "__ addr adres wallet direcci endere indirizz _from_ _to_ _sender _receiver _recipient _source _dest _origin "
    .. "_beneficiary _payer _payee _remitter _counterparty _input _output _deposit _withdrawal _von_ _an_ _nach_ "
    .. "_absender _empf _quell _ziel"
)
local likenesses = generations.new(1000) -- by the names of columns
-- The columns of a file without a header.
local LIST = { "address", "network", "note", "expires" }
local POSITIONS = { address = 1, network = 2, note = 3, expires = 4 }

local decoder = json.decoder { duplicates = "refuse", max_size = LONGEST_ARRAY, null = "keep" }
local decoder_of_decisions = json.decoder { duplicates = "refuse", max_size = LONGEST_ARRAY }

---@class riskscreen.rows.Options the checked options of options/rows.lua, perhaps among others, and what a verb needs
---@field address_column? string
---@field network_column? string
---@field ignore_columns? string[]
---@field network? string of rows that name none
---@field keep? string[] columns that a file with a header must have
---@field delimiter? string
---@field encoding? "utf-8"|"latin1"
---@field max_invalid? integer
---@field allow_empty? boolean
---@field name? string of the file, for messages
---@field needs? string[] names of columns of which the header must have one; the caller looks for all columns itself.
---Such a file of decisions may grow while it is read
---@field checked_first? boolean a file that can be read twice is checked to its end before its first row is given out
---@field most_invalid? integer rows without anything like an address with which that check takes a file

---@class riskscreen.Row
---@field line integer the line on which it begins; of a JSON array, the position
---@field address any
---@field network any in lower case; nil where it names none
---@field fields table<string, any> the other columns by their names
---@field value? table of a line of JSON, the whole object
---@field fault? string of a file of decisions: the line is none

---@class riskscreen.Rows
---@field file riskscreen.rows.File
---@field names string[] the names of the columns; none in JSON and without a header
---@field lacks_network boolean there are rows, without a column of networks
---@field private options riskscreen.rows.Options
---@field private ignored table<string, true> the plain names of `ignore_columns`
---@field private others integer[] positions of columns that are not read, which may hold another network or an address
---@field private suspects integer[] of those whose names say so
---@field private count integer rows so far
---@field invalid_count integer a run that goes on begins with its own
local Rows = {}
Rows.__index = Rows

local M = {
  ---The kind of a file, and its pieces. A list may also be compiled, or XML.
  file = files.open,
  records = records,
  ---The names of the columns of addresses and of networks, in their plain form.
  names_of = names_of,
}

local is_known = tables.set(tables.concat(names_of.address, names_of.network))

local function plain_of(name)
  return (text.lower(text.trim(name)):gsub("[%s-]+", "_"))
end

local function divided(name)
  return plain_of((name:gsub("(%l)(%u)", "%1_%2")))
end

---The plain form of a column's name: in lower case, with underscores for spaces and hyphens. They also divide the words
---of a name such as walletAddress, where that makes it a known one.
---@param name string
---@param known? table<string, true> by default the names of addresses and networks
---@return string
function M.plain_name(name, known)
  known = known or is_known
  local plain, parts = plain_of(name), divided(name)
  return known[parts] and not known[plain] and parts or plain
end

local plain_name = M.plain_name

function Rows:failure(problem, line)
  local place = type(line) == "number" and ("%s, line %d"):format(self.file.name, line) or self.file.name
  return errors.new("invalid_argument", ("%s: %s"):format(place, problem), { field = "source", sent = false })
end

-- The kind of a column that is not read: "network", if its name is probably meant for that ("netwrok", "net",
-- "chain id", "Network Name", "chainFrom"). "address", if it names one or a party. Or false.
local function likeness_of(name)
  local likeness = likenesses:get(name)
  if likeness == nil then
    local plain = divided(name)
    local word = plain:gsub("_from$", ""):gsub("_to$", ""):gsub("_?name$", ""):gsub("_?id$", ""):match "[^_]*$"
    likeness = (word == "net" or text.nearest(word, names_of.network) ~= nil) and "network"
    for _, part in ipairs(like_address) do
      likeness = likeness or ("_" .. plain .. "_"):find(part, 1, true) and "address"
    end
    likenesses:set(name, likeness or false)
  end
  return likeness
end

-- Where the address and the network are among names, and the positions of all names; or nil and the fault.
function Rows:locate(names)
  local positions, at, seen, is_free = {}, {}, {}, self.options.needs ~= nil
  for index, name in ipairs(names) do
    local plain = plain_name(name)
    local own = is_free and name or plain
    if own ~= "" and seen[own] then
      return nil, ("two columns are called %s"):format(text.show(name))
    end
    seen[own], positions[plain] = true, index
  end
  -- In what the command has written its own columns count, beside those that were kept.
  local is_ours = is_free and positions.reasons and positions.line
  for meaning, known in pairs(names_of) do
    local given = self.options[meaning .. "_column"]
    for _, name in ipairs(given and { plain_name(given) } or is_ours and { meaning } or known) do
      if positions[name] and at[meaning] then
        local fault = "two columns name the %s, '%s' and '%s': --%s-column NAME says which one counts"
        return nil, fault:format(meaning, names[at[meaning]], names[positions[name]], meaning)
      end
      at[meaning] = at[meaning] or positions[name]
    end
  end
  -- A header without the column that was named is refused. A JSON object may lack it.
  local is_refused = self.options.network_column and self.file.kind == "text"
  local lacks_network = not (at.network or is_refused)
  -- Where no name is that of the network, one that is like it would be passed over, and another network would count.
  for _, name in ipairs(lacks_network and names or {}) do
    if likeness_of(name) == "network" and not self.ignored[plain_name(name)] then
      return nil, LIKE_NETWORK:format(text.show(name))
    end
  end
  return at, positions
end

-- The fault of a column that is not read: in a row that names no network, or in a second column for networks, another
-- network than the one that counts; or what may be the address of another party. Each text within a list or an object
-- of JSON counts.
function Rows:fault_of_column(name, value, address, network)
  if type(value) == "table" then
    local fault
    for _, key in ipairs(tables.sorted_keys(value)) do
      fault = fault or self:fault_of_column(name, value[key], address, network)
    end
    return fault
  elseif type(value) ~= "string" or value == "" then
    return nil
  end
  local likeness, meaning = likeness_of(name), nil
  if #value <= LONGEST_NETWORK and (not network or likeness == "network" and not self.options.network_column) then
    local other = addresses.network_names[text.lower(text.trim(value))]
    meaning = other and other ~= addresses.canonical_network(network or self.options.network) and "network"
  end
  if likeness == "address" and not self.options.address_column then
    local cell = text.trim((value:gsub("[\128-\255]+", ""))) -- hidden characters make no other address
    local is_other = cell:find(LIKE_ADDRESS) and text.lower(cell) ~= text.lower(text.trim(tostring(address)))
    meaning = meaning or is_other and "address"
  end
  local is_settled = not meaning or self.ignored[plain_name(name)]
  return not is_settled and UNREAD:format(text.show(name), meaning, text.show(value), meaning) or nil
end

local function lack(name, names)
  local hint, shown = text.did_you_mean(name, names), text.printable(table.concat(names, ", "), 300)
  return ("the file has no column %s%s; its columns are %s"):format(text.show(name), hint, shown)
end

-- Whether the fields are a header: "header"; the first row of a list: "list"; or nil.
function Rows:form_of(fields, count)
  local given = self.options.address_column
  local wanted = self.options.needs or given and { plain_name(given) } or names_of.address
  local is_wanted = tables.set(wanted)
  for index = 1, count do
    if is_wanted[plain_name(fields[index])] then
      return "header"
    end
  end
  local is_list = not (given or self.options.network_column or self.options.needs)
  return is_list and addresses.spellings(text.trim(fields[1]), "format")[1] and "list" or nil
end

-- The form of a text's first row, and the pattern of what separates its fields; or nil and the fault.
function Rows:dialect_of(row, has_quotes)
  local bare, patterns, form, separator = row:gsub('"[^"]*"', ""), {}, nil, nil
  for _, candidate in ipairs(self.options.delimiter and { self.options.delimiter } or SEPARATORS) do
    local pattern = candidate:gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0")
    patterns[#patterns + 1] = bare:find(candidate, 1, true) and pattern or nil
  end
  patterns[1] = patterns[1] or ANY_SEPARATOR -- of one column
  for _, pattern in ipairs(patterns) do
    local is_single, fields = pattern == ANY_SEPARATOR, {}
    local count, fault = records.split(row, pattern, fields)
    local its_form = count and not (is_single and count > 1) and self:form_of(fields, count)
    if not count then
      return nil, fault
    elseif its_form and form then
      return nil, "its columns could be separated in two ways: --delimiter says how"
    elseif its_form == "header" or its_form and (has_quotes or not is_single) then
      form, separator = its_form, pattern
    end
  end
  local content = row:match "^[^#]*"
  local may_be_spaced = not (form or has_quotes or content:find(ANY_SEPARATOR))
  if form then
    return form, separator
  elseif may_be_spaced and self:form_of({ content:match "%S+" or "" }, 1) == "list" then
    return "spaced" -- a list whose networks stand behind a space
  end
  local missing = self.options.needs and self.options.needs[1] or self.options.address_column
  local advice, has_network = ". ", self.options.network or self.options.network_column
  for word in row:gmatch '[^,;\t"]+' do
    local plain = plain_name(word)
    local nearest = text.nearest(plain, names_of.address)
    advice = nearest and ("; did you mean '%s'? Or "):format(nearest) or advice
    has_network = has_network or is_known[plain]
  end
  advice = advice .. "--address-column NAME names it"
  advice = has_network and advice or advice .. ", and --network-column NAME that of the networks"
  advice = missing and "" or advice
  advice = row:find "^sep=.$" and ", a line of Excel's own: remove it" or row:find("-0- ", 1, true) and OFAC or advice
  missing = text.show(missing or "address")
  return nil,
    ("the file has no column %s, and its first line is: %s%s"):format(missing, text.printable(row, 300), advice)
end

-- Takes the header. Returns its fault, or nil.
function Rows:take_header(header, count)
  local names = {}
  for index = 1, count do
    names[index] = text.trim(header[index])
  end
  local at, positions = self:locate(names)
  if not at then
    return positions
  elseif not self.options.needs and addresses.spellings(names[1], "format")[1] then
    return ("it could be a header, and it begins with the address %s"):format(text.show(names[1]))
  end
  for meaning in pairs(names_of) do
    local given = self.options[meaning .. "_column"]
    if given and not at[meaning] then
      return lack(given, names)
    end
  end
  self.names, self.positions, self.address_at, self.network_at = names, positions, at.address, at.network
  for index, name in ipairs(self.options.needs and {} or names) do
    if index ~= at.address and index ~= at.network then
      self.others[#self.others + 1] = index
      self.suspects[#self.suspects + 1] = likeness_of(name) and index or nil
    end
  end
end

-- Without the note of a row of a list, which stands behind "#" and at most one separator; and the note.
local function without_note(row, separator)
  local content, note = row:match '^([^",;\t#]*[,;\t]?[^",;\t#]*)#(.*)$'
  if content and separator then
    local _, count = text.trim(content):gsub(separator, "")
    note = count < 2 and note or nil
  end
  return note and content or row, note
end

-- Splits a row; the fault of one that is not like the first one.
function Rows:split(row, has_quotes)
  local fields = self.fields
  if self.form == "spaced" then
    local count = 0
    for word in row:gmatch "[^%s,;]+" do
      count = count + 1
      fields[count] = word
    end
    return count, has_quotes and "a quote stands in a plain list" or nil
  end
  return records.split(row, self.separator, fields)
end

-- A table of Excel often ends with rows of nothing but separators.
local function is_blank(fields, count)
  for index = 1, count do
    if fields[index]:find "%S" then
      return false
    end
  end
  return true
end

-- A network of JSON may be any value: `false` is not the same as none.
local function lower(network)
  if type(network) ~= "string" then
    return network == false and "false" or network
  end
  network = text.lower(text.trim(network))
  return network ~= "" and network or nil
end

-- Takes the first row, which tells what the columns are. Returns its fault, or nil.
function Rows:take_first(count)
  local fault
  self.width = count
  if self.form == "header" then
    fault = self:take_header(self.fields, count)
  elseif count > (self.form == "spaced" and 2 or #LIST) then
    fault = "it has more fields than address, network, note and expires"
  else
    self.names, self.positions, self.address_at, self.network_at = LIST, POSITIONS, 1, count > 1 and 2 or nil
  end
  for _, name in ipairs(fault and {} or self.options.keep or {}) do
    fault = fault or not self.positions[plain_name(name)] and "--keep: " .. lack(name, self.names) or nil
  end
  return fault
end

-- The row that the fields are, and the fault of it or of a column that is not read.
function Rows:row_of_fields(count, line, note)
  local cells, names, fields, fault = self.fields, self.names, { note = note }, nil
  local address_at, network_at, has_all = self.address_at, self.network_at, self.options.needs
  if count ~= self.width then
    return nil, ("it has %s, and the first line has %d"):format(text.count(count, "field"), self.width)
  end
  local address, network = address_at and text.trim(cells[address_at]), network_at and lower(cells[network_at])
  for index = 1, count do
    local is_other = has_all or (index ~= address_at and index ~= network_at)
    if is_other and names[index] ~= "" then
      fields[names[index]] = cells[index]
    end
  end
  for _, index in ipairs(network and self.suspects or self.others) do
    fault = fault or self:fault_of_column(names[index], cells[index], address, network)
  end
  return { line = line, address = address, network = network, fields = fields }, fault
end

local function torn_row(line, fault)
  return { line = line, fields = {}, fault = "the row is not complete: " .. fault }
end

-- The next row of a text. Of a file of decisions the last row may be torn: then it has a fault in the place of its
-- fields. One that the command has written is torn also where it lacks nothing but its end: its last cell may be a part
-- of one.
function Rows:next_csv()
  while true do
    local row, line, has_quotes, is_open, lacks_end = self.next_row()
    local is_first, note = not self.form, nil
    local is_torn = is_open and self.form and self.options.needs
    if not row and is_torn then
      return torn_row(has_quotes, line)
    elseif not row then
      return nil, line and self:failure(line, has_quotes) or nil
    end
    if is_first then
      self.form, self.separator = self:dialect_of(row, has_quotes)
      if not self.form and row:find "^%s*#[^\r\n]*$" then
        row = nil -- a comment above the rows
      elseif not self.form then
        return nil, self:failure(self.separator, line)
      end
    end
    if row and self.form ~= "header" and self.separator ~= "#" then
      row, note = without_note(row, self.separator)
      if note and has_quotes and note:find "[\r\n]" then
        return nil, self:failure("a quote in its note has no end", line)
      end
      has_quotes = has_quotes and not note
      row = row:find "%S" and row
    end
    if row then
      local found
      local count, fault = self:split(row, has_quotes)
      fault = fault or is_first and self:take_first(count) or nil
      local is_row = not (fault or is_first and self.form == "header")
      if is_row then
        found, fault = self:row_of_fields(count, line, note)
      end
      if lacks_end and self.options.needs and self.positions.reasons or fault and is_torn then
        return torn_row(line, fault or "its last line has no end")
      elseif fault then
        return nil, self:failure(fault, line)
      elseif is_row and not is_blank(self.fields, count) then
        return found
      end
    end
  end
end

-- The row of a JSON value.
function Rows:of_json(value, line, problem)
  if type(value) == "string" and not self.options.needs then
    return { line = line, address = text.trim(value), fields = {} }
  elseif type(value) ~= "table" or json.is_array(value) then
    local fault = value == nil and tostring(problem) or "it is not an object"
    if not self.options.needs then
      return nil, self:failure(fault, line)
    end
    return { line = line, fields = {}, fault = fault }
  end
  local names, row =
    tables.sorted_keys(value), { line = line, address = "", value = value, fields = tables.copy(value) }
  if self.options.needs then
    return row
  end
  local at, positions = self:locate(names)
  if not at then
    return nil, self:failure(positions, line)
  end
  -- A null names its column, and is no value.
  for _, name in ipairs(names) do
    if value[name] == json.null then
      value[name], row.fields[name] = nil, nil
    end
  end
  for meaning, position in pairs(at) do
    local found = value[names[position]]
    row[meaning], row.fields[names[position]] = type(found) == "string" and text.trim(found) or found, nil
  end
  row.address = row.address == nil and "" or row.address
  row.network = lower(row.network)
  for _, name in ipairs(names) do
    local fault = self:fault_of_column(name, row.fields[name], row.address, row.network)
    if fault then
      return nil, self:failure(fault, line)
    end
  end
  return row
end

function Rows:next_json()
  local line, number, length
  repeat
    line, number, length = self.next_line()
  until not line or line:find "%S"
  if not line then
    return nil, number and self:failure(number, length) or nil
  end
  local value, problem = self.decoder:decode(line)
  return self:of_json(value, number, problem)
end

-- The next element of a JSON array, which is read as a whole.
function Rows:next_element()
  local pieces, size = {}, 0
  while not self.list do
    local line, problem, at = self.next_line()
    if line then
      pieces[#pieces + 1], size = line, size + #line
      problem = size > LONGEST_ARRAY and "it is too long for a JSON array: write one value a line" or nil
    elseif not problem then
      local offset
      self.list, problem, offset = self.decoder:decode(table.concat(pieces))
      for number = 1, offset and #pieces or 0 do
        offset = offset - #pieces[number]
        at = at or offset <= 0 and number or nil
      end
    end
    if problem then
      return nil, self:failure(tostring(problem), at)
    end
  end
  local value = self.list[self.count + 1]
  if value ~= nil then
    return self:of_json(value, self.count + 1)
  end
end

---The next row; nil at the end, or nil and an error.
---@return riskscreen.Row|nil
---@return riskscreen.Error|nil
function Rows:next()
  local row, err
  if self.waiting then
    row, self.waiting = self.waiting, nil
  else
    row, err = self.read(self)
  end
  if row then
    self.count = self.count + 1
    return row
  end
  if not err and self.count == 0 and not self.options.allow_empty then
    err = self:failure "it has no rows: --allow-empty takes it nevertheless"
  end
  return nil, err
end

---An iterator of the rows, which raises errors.
---@return fun(): riskscreen.Row|nil
function Rows:each()
  return function()
    local row, err = self:next()
    if err then
      self:close()
      error(err, 0)
    end
    return row
  end
end

---Counts a row that is invalid. An error where there are more than may be.
---@param line any
---@param problem string
---@param most? integer by default the option max_invalid
---@return riskscreen.Error|nil
function Rows:invalid(line, problem, most)
  self.invalid_count = self.invalid_count + 1
  local allowed = self.options.max_invalid
  if allowed and self.invalid_count > (most or allowed) then
    local message = "more invalid rows than %d, the last one is this: %s. --max-invalid N takes more"
    return self:failure(message:format(allowed, problem), line)
  end
end

---The same; it raises the error.
---@param line any
---@param problem string
function Rows:count_invalid(line, problem)
  errors.ensure(nil, self:invalid(line, problem))
end

---The field of a row under a column's name, in any case; also of the address and the network.
---@param row riskscreen.Row
---@param name string
---@return any
function Rows:field(row, name)
  local plain = plain_name(name)
  local position = self.positions[plain]
  if position == nil then
    for own_name, value in pairs(row.value or row.fields) do
      if own_name == name or plain_name(own_name) == plain then
        return value
      end
    end
    return nil
  elseif position == self.address_at or position == self.network_at then
    return position == self.address_at and row.address or row.network
  end
  return row.fields[self.names[position]]
end

---The fields of a row under some names.
---@param row riskscreen.Row
---@param names string[]
---@return table<string, any>
function Rows:fields_of(row, names)
  local found = {}
  for _, name in ipairs(names) do
    found[name] = self:field(row, name)
  end
  return found
end

---Those of some names that are neither the address's or the network's nor ignored, as keys.
---@param names string[]
---@return table<string, true>
function Rows:other_names(names)
  local others = {}
  for position, name in ipairs(names) do
    local is_read = names == self.names and (position == self.address_at or position == self.network_at)
    others[name] = not (is_read or self.ignored[plain_name(name)]) or nil
  end
  return others
end

function Rows:close()
  self.file.close()
end

local by_kind = { text = Rows.next_csv, json = Rows.next_json, json_array = Rows.next_element }

-- Reads a whole file, and reports what refuses it.
function Rows:check()
  local most = self.options.most_invalid
  while true do
    local row, err = self:next()
    if row and most and not tostring(row.address):find(LIKE_ADDRESS) then
      err = self:invalid(row.line, text.show(row.address) .. " is no address", most)
    end
    if err or not row then
      return err
    end
  end
end

local function new(file, options)
  local self = setmetatable({
    file = file,
    options = options,
    names = {},
    positions = {},
    fields = {},
    ignored = {},
    others = {},
    suspects = {},
    count = 0,
    invalid_count = 0,
    decoder = options.needs and decoder_of_decisions or decoder,
    read = by_kind[file.kind],
  }, Rows)
  for _, name in ipairs(options.ignore_columns or {}) do
    self.ignored[plain_name(name)] = true
  end
  local longest = options.needs and records.LONGEST_OWN or records.LONGEST
  self.next_line = records.lines(file.read, options.encoding, longest)
  self.next_row = records.rows(self.next_line, longest)
  return self
end

---Opens a file of rows.
---@param source string|file*|riskscreen.rows.File a path, an open file, or what `file` has opened
---@param options riskscreen.rows.Options
---@return riskscreen.Rows|nil
---@return riskscreen.Error|nil
function M.open(source, options)
  local file, problem = source, nil
  if type(source) ~= "table" or not source.kind then
    file, problem = files.open(source, options.name, options.needs ~= nil)
  end
  local self = new(file or { name = options.name or tostring(source) }, options)
  problem = problem or file.refusal
  local err = problem and self:failure(problem) or nil
  if options.checked_first and file and file.is_whole and not err then
    err = self:check()
    file.rewind()
    self = new(file, options)
  end
  if not err then
    -- The first row tells what the columns are.
    self.waiting, err = self.read(self)
  end
  if err then
    local _ = file and file.close()
    return nil, err
  end
  self.lacks_network = self.waiting ~= nil and self.file.kind == "text" and not self.network_at
  return self
end

return M
