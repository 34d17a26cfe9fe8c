-- Walks a list that the service returns in pages: page by page, item by item, or all at once. A walk reports each item
-- once. It ends where the list ends, or fails; it never leaves out items silently.
local calls = require "riskscreen.call"
local errors = require "riskscreen.errors"
local options = require "riskscreen.options"
local tables = require "riskscreen.util.tables"

local DEFAULT_SIZE = 10 -- items on a page, where neither the caller nor the service says
local MAX_PREFETCH = 32 -- pages
local MAX_PAGES = 10000 -- the default of max_pages

---@class riskscreen.Walk what `pages`, `each` and `all` take beside the operation's own parameters
---@field page? integer the first page (default 1)
---@field pageSize? integer items on a page
---@field limit? integer the most items to report
---@field prefetch? integer pages that are fetched while the caller works (default 0)
---@field max_pages? integer the most pages to read; a longer walk fails (default 10000)

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

---@class riskscreen.pages.Walk
---@field operation string
---@field page integer|nil the page to read next; nil after the last
---@field first integer the page it began with
---@field fetch fun(page: integer, size?: integer): table[]|nil, riskscreen.Response|riskscreen.Error
---@field tasks table
---@field prefetch integer
---@field max_pages integer
---@field limit? integer
---@field asked_size? integer the caller's pageSize, unless the service refuses it
---@field ahead table<integer, table> the tasks that fetch pages ahead, by page
---@field seen table<string, true> the items so far, by fingerprint; max_pages bounds it
---@field reported integer items
---@field received integer items on the pages so far, repeated ones included
---@field pages_read integer
---@field longest integer items on the longest page so far
---@field size? integer items on a page, according to the service
---@field total_items? integer as the service last said
---@field total_pages? integer as the service last said
---@field grown boolean the totals have grown during the walk
---@field failure? riskscreen.Error
local Walk = {}
Walk.__index = Walk

local function positive(number)
  return number and number > 0 and number or nil
end

local function is_less(number, other)
  return number ~= nil and other ~= nil and number < other
end

-- The way in which a page contradicts the request, earlier pages or itself.
local function contradiction(walk, items, pagination)
  local page, size, total_pages = walk.page, positive(pagination.per_page), pagination.total_pages
  if pagination.current_page and pagination.current_page ~= page and #items > 0 then
    return ("page %d was asked for and page %d came"):format(page, pagination.current_page)
  elseif size and walk.size and size ~= walk.size then
    return ("the pages have become %d items long; they were %d"):format(size, walk.size)
  elseif total_pages and page > total_pages and #items > 0 then
    return ("page %d has items and total_pages is %d"):format(page, total_pages)
  end
end

function Walk:page_size()
  return self.size or self.asked_size or positive(self.longest) or DEFAULT_SIZE
end

function Walk:fail(message, retryable)
  self.failure = errors.new("protocol", message, {
    operation = self.operation,
    page = self.page,
    sent = true,
    retryable = retryable,
  })
end

-- Whether the list became shorter: items that were not read yet may then be on pages that were.
function Walk:has_shrunk(pagination)
  return is_less(pagination.total_items, self.total_items) or is_less(pagination.total_pages, self.total_pages)
end

function Walk:note_totals(pagination)
  local items, pages = pagination.total_items, pagination.total_pages
  self.grown = self.grown or is_less(self.total_items, items) or is_less(self.total_pages, pages)
  self.size = positive(pagination.per_page) or self.size
  self.total_items = items or self.total_items
  self.total_pages = pages or (items and math.ceil(items / self:page_size())) or self.total_pages
end

-- The items that were not reported before, within the limit.
function Walk:sift(items)
  local fresh = {}
  for _, item in ipairs(items) do
    local key = tables.fingerprint(item)
    if not self.seen[key] and self.reported + #fresh ~= self.limit then
      self.seen[key] = true
      fresh[#fresh + 1] = item
    end
  end
  return fresh
end

-- Without totals a list ends with an empty page: a short page may be followed by others.
function Walk:is_last(count)
  if self.total_pages then
    return self.page >= self.total_pages
  end
  return count == 0
end

-- Whether the pages have held another number of items than the service counted. Where the walk began later and no one
-- named the size of a page, the items before it are an estimate.
function Walk:differs_from(expected)
  local is_exact = self.first == 1 or self.size or self.asked_size
  return self.received < expected or (is_exact and self.received > expected)
end

-- Ends the walk. The pages must have held as many items as the service counted.
function Walk:finish()
  -- A walk may begin behind the last page.
  local expected = self.total_items and math.max(0, self.total_items - (self.first - 1) * self:page_size())
  if expected and self:differs_from(expected) then
    local message = "the service says that there are %d items from page %d on and gave %d"
    self:fail(message:format(expected, self.first, self.received))
  end
  self.page = nil
end

-- The items of a page that are to be reported, perhaps none; and the page to read next.
function Walk:accept(items, pagination)
  local wrong = contradiction(self, items, pagination)
  if self:has_shrunk(pagination) then
    return self:fail("the list became shorter while it was read, so items may be missing; walk it again", true)
  elseif wrong then
    return self:fail(wrong)
  end
  self:note_totals(pagination)
  local fresh = self:sift(items)
  if #items > 0 and #fresh == 0 and not self.grown then
    return self:fail(("page %d has nothing but items of earlier pages"):format(self.page))
  end
  self.received, self.reported = self.received + #items, self.reported + #fresh
  if self.reported == self.limit then
    self.page = nil
  elseif self:is_last(#items) then
    self:finish()
  else
    self.page = self.page + 1
  end
  self.longest = math.max(self.longest, #items)
  return fresh
end

-- Fetches the next pages before they are asked for, as far as the list is known to go.
function Walk:look_ahead()
  local wanted = self.limit and math.ceil((self.limit - self.reported) / self:page_size()) or math.huge
  local pages = math.min(self.prefetch, wanted, self.max_pages - self.pages_read)
  for page = self.page, math.min(self.page + pages - 1, self.total_pages or 0) do
    self.ahead[page] = self.ahead[page] or self.tasks.spawn(self.fetch, page, self.asked_size)
  end
end

-- Whether the service may have refused the first page for its size: the largest one is not published. A later page of
-- another size would hold other items.
function Walk:may_be_too_long(err)
  local is_refused = err.kind == "bad_request" or err.kind == "api"
  return is_refused and self.pages_read == 1 and self.first == 1 and (self.asked_size or 0) > DEFAULT_SIZE
end

function Walk:read()
  local page, task = self.page, self.ahead[self.page]
  self.ahead[page] = nil
  if self.pages_read >= self.max_pages then
    local message = "the list did not end within %d pages; if it is that long, set max_pages or begin at a later page"
    return self:fail(message:format(self.max_pages))
  end
  self.pages_read = self.pages_read + 1
  local items, response
  if task then
    items, response = task:await()
  else
    items, response = self.fetch(page, self.asked_size)
    if not items and self:may_be_too_long(response) then
      self.asked_size = nil
      items, response = self.fetch(page)
    end
  end
  if not items then
    response.page = page
    self.failure = response
    return nil
  end
  return items, response
end

---The next items and their response; nil at the end; nil and an error when the walk fails.
function Walk:next()
  while self.page and not self.failure do
    local items, response = self:read()
    local fresh = items and self:accept(items, response.pagination or {})
    if self.page and not self.failure then
      self:look_ahead()
    end
    if fresh and #fresh > 0 then
      return fresh, response
    end
  end
  for _, task in pairs(self.ahead) do
    task:cancel()
  end
  self.ahead = {}
  return nil, self.failure
end

local function new_walk(operation, checked, fetch, tasks)
  local parameters = tables.without(checked, "pageSize", tables.unpack(tables.pluck(walk_parameters, "name")))
  local first = checked.page or 1
  return setmetatable({
    operation = operation.name,
    fetch = function(page, size)
      return fetch(tables.merge(parameters, { page = page, pageSize = size }))
    end,
    tasks = tasks,
    asked_size = checked.pageSize,
    limit = checked.limit,
    prefetch = checked.prefetch or 0,
    max_pages = checked.max_pages or MAX_PAGES,
    first = first,
    page = first,
    ahead = {},
    seen = {},
    reported = 0,
    received = 0,
    pages_read = 0,
    longest = 0,
    grown = false,
  }, Walk)
end

local function or_raise(items, response)
  if not items and response then
    error(response, 0)
  end
  return items, response
end

-- Iterates over the pages: the items of a page that were not reported before, and the response.
local function pages(walk)
  return function()
    return or_raise(walk:next())
  end
end

-- Iterates over the items.
local function each(walk)
  local items, position = {}, 0
  return function()
    position = position + 1
    if position > #items then
      items, position = or_raise(walk:next()) or {}, 1
    end
    return items[position]
  end
end

-- Returns all items, or nil and an error.
local function all(walk)
  local list = {}
  repeat
    local items = walk:next()
    for _, item in ipairs(items or {}) do
      list[#list + 1] = item
    end
  until not items
  if walk.failure then
    return nil, walk.failure
  end
  return list
end

local M = { parameters = walk_parameters }

---The methods that walk the list of a paginated operation. They take the operation's parameters with those of a walk,
---and the options of each page's call. The iterators of `pages` and `each` raise an error object when the walk fails.
---@param operation riskscreen.Operation
---@return { pages: function, each: function, all: function }
function M.methods(operation)
  local place = "client." .. operation.namespace
  local walk_of = tables.merge(operation, { parameters = tables.concat(operation.parameters, walk_parameters) })

  local function method(use)
    return function(self, parameters, call_options)
      local state, checked_options = calls.open(self, place, parameters, options.call, call_options)
      local checked, err = calls.check(state, walk_of, parameters or {}, checked_options)
      local walk = new_walk(operation, checked or {}, function(page_parameters)
        return calls.make(state, operation, page_parameters, checked_options)
      end, state.runtime.tasks)
      walk.failure = err
      return use(walk)
    end
  end

  return { pages = method(pages), each = method(each), all = method(all) }
end

return M
