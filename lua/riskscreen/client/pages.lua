-- Walks a list that the service gives in pages: page by page, item by item, or all at once. A walk ends where the list
-- ends, or fails; it never ends early in silence.
local validate = require "riskscreen.interface.validate"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local options = require "riskscreen.options"

local DEFAULT_SIZE = 10 -- items on a page, where neither the caller nor the service says
local MAX_PREFETCH = 32 -- pages
local MAX_PAGES = 10000 -- pages that one walk reads, unless it is told otherwise
local MAX_TURNS = 8 -- times that a walk goes back without having got any further in between

---@class riskscreen.Walk what `pages`, `each` and `all` take beside the operation's own parameters
---@field page? integer the first page (default 1)
---@field pageSize? integer items on a page
---@field limit? integer the most items to report
---@field prefetch? integer pages that are fetched while the caller works (default 0)
---@field max_pages? integer the most pages to read; a walk that needs more fails (default 10000)

---@type riskscreen.Parameter[]
local walk_parameters = {
  { name = "limit", type = "integer", minimum = 1, doc = "The most items to report." },
  {
    name = "prefetch",
    type = "integer",
    minimum = 0,
    maximum = MAX_PREFETCH,
    doc = "Pages that are fetched while the caller works.",
  },
  { name = "max_pages", type = "integer", minimum = 1, doc = "The most pages to read before the walk fails." },
}

-- A text that is the same for equal items alone: JSON with the members of an object in a fixed order.
local function identity(value)
  if type(value) ~= "table" then
    return json.encode(value)
  end
  local parts = {}
  if json.is_array(value) then
    for position = 1, #value do
      parts[position] = identity(value[position])
    end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for name, member in pairs(value) do
    parts[#parts + 1] = json.encode(name) .. ":" .. identity(member)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

---@class riskscreen.pages.Walk
---@field page integer|nil the page to read next; nil after the last
---@field first integer the page it began with
---@field furthest integer the last page read so far
---@field ask fun(page: integer): table[]|nil, riskscreen.Response|riskscreen.Error
---@field spawn fun(fn: function, ...): table
---@field ahead table<integer, table> tasks by the page that they fetch
---@field seen table<string, true> the items so far, by identity
---@field reported integer items
---@field received integer items on the pages read, those that were seen before included
---@field pages_read integer
---@field turns integer how often it went back since it last got further
---@field longest integer items on the longest page so far
---@field size? integer items on a page, as the service says
---@field total_items? integer as the service last said
---@field total_pages? integer as the service last said
---@field grown boolean the totals have become more during the walk
---@field failure? riskscreen.Error why it cannot go on
local Walk = {}
Walk.__index = Walk

local function positive(number)
  return number and number > 0 and number or nil
end

-- How many pages back items may have moved that had not been read: as many as the list became shorter by.
local function pages_lost(walk, pagination)
  local lost = 0
  if walk.total_items and pagination.total_items then
    lost = math.ceil((walk.total_items - pagination.total_items) / walk:page_size())
  end
  if walk.total_pages and pagination.total_pages and pagination.total_pages < walk.total_pages then
    -- Less than one page more than that many may have gone.
    lost = math.max(lost, walk.total_pages - pagination.total_pages + (walk.total_items and 0 or 1))
  end
  return math.max(lost, 0)
end

-- What in a page contradicts the request, the pages before, or itself.
local function contradiction(walk, items, pagination)
  local page, size = walk.page, positive(pagination.per_page)
  local total_items, total_pages = pagination.total_items, pagination.total_pages
  if pagination.current_page and pagination.current_page ~= page and #items > 0 then
    return ("page %d was asked for and page %d came"):format(page, pagination.current_page)
  elseif size and walk.size and size ~= walk.size then
    return ("the pages have become %d items long; they were %d"):format(size, walk.size)
  elseif total_pages and page > total_pages and #items > 0 then
    return ("page %d has items and total_pages is %d"):format(page, total_pages)
  elseif total_items and total_pages and total_items > total_pages * (size or math.huge) then
    return ("%d items do not fit on %d pages of %d"):format(total_items, total_pages, size)
  end
end

function Walk:page_size()
  return self.size or self.asked_size or positive(self.longest) or DEFAULT_SIZE
end

function Walk:fail(kind, message)
  self.failure = errors.new(kind, message, { operation = self.operation, page = self.page, sent = true })
end

-- Where what was fetched ahead may be out of date.
function Walk:forget_ahead()
  for _, task in pairs(self.ahead) do
    task:cancel()
  end
  self.ahead = {}
end

function Walk:go_back(pages)
  self:forget_ahead()
  self.turns = self.turns + 1
  if self.turns > MAX_TURNS then
    return self:fail("protocol", "the list became shorter again and again while it was read")
  end
  self.page = math.max(self.first, self.page - pages)
end

local function is_more(before, now)
  return before ~= nil and now ~= nil and now > before
end

function Walk:note_totals(pagination)
  local items, pages = pagination.total_items, pagination.total_pages
  self.grown = self.grown or is_more(self.total_items, items) or is_more(self.total_pages, pages)
  self.size = positive(pagination.per_page) or self.size
  self.total_items = items or self.total_items
  self.total_pages = pages or (items and math.ceil(items / self:page_size())) or self.total_pages
end

-- The items that were not reported before, no more than the limit allows.
function Walk:sift(items)
  local fresh = {}
  for _, item in ipairs(items) do
    local key = identity(item)
    if not self.seen[key] then
      self.seen[key] = true
      fresh[#fresh + 1] = item
    end
  end
  while self.limit and self.reported + #fresh > self.limit do
    fresh[#fresh] = nil
  end
  return fresh
end

-- Without totals a list ends where a page is empty or shorter than another before it.
function Walk:is_last(count)
  if self.total_pages then
    return self.page >= self.total_pages
  end
  return count == 0 or count < self.longest
end

-- At the end the pages must add up to what the service said.
function Walk:check_sum()
  local expected = self.total_items and self.total_items - (self.first - 1) * self:page_size()
  if expected and self.received < expected then
    local message = "the service says that there are %d items from page %d on and gave %d"
    self:fail("protocol", message:format(expected, self.first, self.received))
  end
end

-- The items of a page that are to be reported, perhaps none; and where to go on.
function Walk:accept(items, pagination)
  local lost = pages_lost(self, pagination)
  if lost > 0 then
    self:note_totals(pagination)
    return self:go_back(lost)
  end
  local wrong = contradiction(self, items, pagination)
  if wrong then
    return self:fail("protocol", wrong)
  end
  self:note_totals(pagination)
  local fresh, further = self:sift(items), self.page > self.furthest
  if further and #items > 0 and #fresh == 0 and not self.grown then
    return self:fail("protocol", ("page %d has nothing but items of earlier pages"):format(self.page))
  end
  if further then
    self.furthest, self.turns = self.page, 0
  end
  self.received, self.reported = self.received + #items, self.reported + #fresh
  if self.reported == self.limit then
    self.page = nil
  elseif self:is_last(#items) then
    self:check_sum()
    self.page = nil
  else
    self.page = self.page + 1
  end
  self.longest = math.max(self.longest, #items)
  return fresh
end

-- Pages that are known to be there and will be wanted are fetched before they are asked for.
function Walk:look_ahead()
  if not (self.page and self.total_pages) then
    return self:forget_ahead()
  end
  local wanted = self.limit and math.ceil((self.limit - self.reported) / self:page_size()) or math.huge
  local pages = math.min(self.prefetch, wanted, self.max_pages - self.pages_read)
  for page = self.page, math.min(self.page + pages - 1, self.total_pages) do
    self.ahead[page] = self.ahead[page] or self.spawn(self.ask, page)
  end
end

function Walk:read()
  local page, task = self.page, self.ahead[self.page]
  self.ahead[page] = nil
  if self.pages_read >= self.max_pages then
    local message = "the list did not end within %d pages; if it is that long, set max_pages or begin at a later page"
    return self:fail("protocol", message:format(self.max_pages))
  end
  self.pages_read = self.pages_read + 1
  local items, response
  if task then
    items, response = task:await()
  else
    items, response = self.ask(page)
  end
  if not items then
    response.page = page
    self.failure = response
    return nil
  end
  return items, response
end

-- The next items, with the response they came with; nil at the end; nil and an error where it cannot go on.
function Walk:next()
  while self.page and not self.failure do
    local items, response = self:read()
    local fresh = items and self:accept(items, response.pagination or {})
    self:look_ahead()
    if fresh and #fresh > 0 then
      return fresh, response
    end
  end
  self:forget_ahead()
  return nil, self.failure
end

local function new_walk(operation, checked, fetch, spawn)
  local own = { prefetch = 0, max_pages = MAX_PAGES }
  for _, parameter in ipairs(walk_parameters) do
    own[parameter.name], checked[parameter.name] = checked[parameter.name] or own[parameter.name], nil
  end
  local first = checked.page or 1
  return setmetatable({
    operation = operation.name,
    ask = function(page)
      local parameters = {}
      for name, value in pairs(checked) do
        parameters[name] = value
      end
      parameters.page = page
      return fetch(parameters)
    end,
    spawn = spawn,
    asked_size = checked.pageSize,
    limit = own.limit,
    prefetch = own.prefetch,
    max_pages = own.max_pages,
    first = first,
    page = first,
    furthest = first - 1,
    ahead = {},
    seen = {},
    reported = 0,
    received = 0,
    pages_read = 0,
    turns = 0,
    longest = 0,
    grown = false,
  }, Walk)
end

local function with_walk_parameters(operation)
  local all = {}
  for index, parameter in ipairs(operation.parameters) do
    all[index] = parameter
  end
  for _, parameter in ipairs(walk_parameters) do
    all[#all + 1] = parameter
  end
  return { name = operation.name, parameters = all }
end

local function or_raise(items, response)
  if not items and response then
    error(response, 0)
  end
  return items, response
end

local M = { parameters = walk_parameters }

---The methods that walk the list of a paginated operation.
---@param operation riskscreen.Operation
---@param access riskscreen.Access
---@return { pages: function, each: function, all: function }
function M.methods(operation, access)
  local specs = with_walk_parameters(operation)
  local place = "client." .. operation.namespace

  -- A walk, and the tasks of its client's runtime; or nil and how the call is wrong.
  local function start(self, parameters, call_options)
    local state, checked_options = access.open(self, place, parameters, options.call, call_options)
    if not state then
      return nil, checked_options
    end
    local function fetch(page_parameters)
      return access.perform(state, operation, page_parameters, checked_options)
    end
    local checked, err = validate.parameters(specs, parameters or {})
    local tasks = state.runtime.tasks
    local walk = new_walk(operation, checked or {}, fetch, tasks.spawn)
    if err then
      err.sent, err.attempts, err.elapsed = false, 0, 0
      walk.failure = err
    end
    return walk, tasks
  end

  local methods = {}

  ---Iterates over the pages: the items of one that were not reported before, and the response. Raises an error object
  ---where it cannot go on.
  ---@param parameters? riskscreen.Walk
  ---@param call_options? table of each page's call
  ---@return fun(): table[]|nil, riskscreen.Response|nil
  function methods.pages(self, parameters, call_options)
    local walk, tasks = start(self, parameters, call_options)
    if not walk then
      error(tasks, 2)
    end
    return tasks.iterator(function()
      return or_raise(walk:next())
    end)
  end

  ---Iterates over the items, each reported once. Raises an error object where it cannot go on.
  ---@param parameters? riskscreen.Walk
  ---@param call_options? table of each page's call
  ---@return fun(): table|nil
  function methods.each(self, parameters, call_options)
    local walk, tasks = start(self, parameters, call_options)
    if not walk then
      error(tasks, 2)
    end
    local items, position = {}, 0
    return tasks.iterator(function()
      position = position + 1
      if position > #items then
        items, position = or_raise(walk:next()) or {}, 1
      end
      return items[position]
    end)
  end

  ---All the items.
  ---@param parameters? riskscreen.Walk
  ---@param call_options? table of each page's call
  ---@return table[]|nil items
  ---@return riskscreen.Error|nil err
  function methods.all(self, parameters, call_options)
    local walk, wrong = start(self, parameters, call_options)
    if not walk then
      error(wrong, 2)
    end
    local all = {}
    local items, response = walk:next()
    while items do
      for _, item in ipairs(items) do
        all[#all + 1] = item
      end
      items, response = walk:next()
    end
    if response then
      return nil, response
    end
    return all
  end

  return methods
end

return M
