-- Other programs' loops, each driving riskscreen.loop by pollfd, events, timeout and step. `done` ends the run; `also`,
-- if there is one, is the program's own work, called again and again.

local TICK = 0.001 -- seconds between two calls of `also`

local M = { names = { "cqueues", "luv", "poll", "frames" } }

function M.cqueues(loop, done, also)
  local cqueues = require "cqueues"
  local host = cqueues.new()
  host:wrap(function()
    while not done() do
      cqueues.poll(loop)
      loop:step(0)
    end
  end)
  if also then
    host:wrap(function()
      while not done() do
        also()
        cqueues.sleep(TICK)
      end
    end)
  end
  assert(host:loop())
end

function M.luv(loop, done, also)
  local uv = require "luv"
  local poll, timer, prepare, ticks = uv.new_poll(loop:pollfd()), uv.new_timer(), uv.new_prepare(), uv.new_timer()
  local function close_if_done()
    if done() and not poll:is_closing() then
      for _, handle in ipairs { poll, timer, prepare, ticks } do
        handle:close()
      end
    end
  end
  local function step()
    loop:step(0)
    close_if_done()
  end
  poll:start(loop:events(), step)
  prepare:start(function()
    local timeout = loop:timeout()
    if timeout then
      timer:start(math.ceil(timeout * 1000), 0, step)
    else
      timer:stop()
    end
  end)
  if also then
    ticks:start(0, TICK * 1000, function()
      also()
      close_if_done()
    end)
  end
  uv.run()
end

-- A function that waits until the descriptor is readable or the time is up: poll(2), or select(2) where the package of
-- poll(2) does not exist.
local function new_wait(fd)
  if M.has_posix() then
    local poll = require "posix.poll"
    return function(seconds)
      poll.rpoll(fd, seconds and math.ceil(seconds * 1000) or -1)
    end
  end
  local socket = require "socket"
  local readable = {
    getfd = function()
      return fd
    end,
    dirty = function()
      return false
    end,
  }
  return function(seconds)
    socket.select({ readable }, nil, seconds)
  end
end

---Whether Debian packages lua-posix for this Lua: for all but 5.4.
function M.has_posix()
  return _VERSION ~= "Lua 5.4"
end

function M.poll(loop, done, also)
  local wait = new_wait(loop:pollfd())
  while not done() do
    local timeout = loop:timeout()
    if also then
      also()
      timeout = math.min(timeout or TICK, TICK)
    end
    wait(timeout)
    loop:step(0)
  end
end

-- A game: never waits for the library.
function M.frames(loop, done, also)
  local socket = require "socket"
  while not done() do
    loop:step { budget = 0.002 }
    if also then
      also()
    end
    socket.sleep(TICK)
  end
end

return M
