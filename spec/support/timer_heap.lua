-- Timers by the time at which they end, and at equal times by `serial`: a binary heap. Removed timers stay in it until
-- they come to its top.

local Heap = {}
Heap.__index = Heap

local function before(a, b)
  return a.at < b.at or (a.at == b.at and a.serial < b.serial)
end

local function pop(items)
  local top, last = items[1], table.remove(items)
  local size, position = #items, 1
  while size > 0 do
    local child = 2 * position
    if child < size and before(items[child + 1], items[child]) then
      child = child + 1
    end
    if child > size or not before(items[child], last) then
      items[position] = last
      return top
    end
    items[position], position = items[child], child
  end
  return top
end

---@param timer { at: number, serial: integer }
function Heap:add(timer)
  local items = self.items
  local position = #items + 1
  while position > 1 do
    local parent = math.floor(position / 2)
    if not before(timer, items[parent]) then
      break
    end
    items[position], position = items[parent], parent
  end
  items[position] = timer
  timer.waits = true
  self.count = self.count + 1
end

function Heap:remove(timer)
  if timer.waits then
    timer.waits = false
    self.count = self.count - 1
  end
end

---The first timer, removed; or nil.
function Heap:pop()
  while self.items[1] do
    local timer = pop(self.items)
    if timer.waits then
      self:remove(timer)
      return timer
    end
  end
end

return {
  new = function()
    return setmetatable({ items = {}, count = 0 }, Heap)
  end,
}
