-- The head of CHANGELOG.md, for a release: lua5.4 tools/release/changelog.lua VERSION DATE [CHANGELOG]
--
-- Prints the changelog with the date at its head. Ends with status 1 and the reason if the version cannot be released:
-- it is not that of the head, it is not above the last released one, or it has no entries.

local wanted, date, path = arg[1], arg[2], arg[3] or "CHANGELOG.md"

local function refuse(message, ...)
  io.stderr:write("release: ", message:format(...), "\n")
  os.exit(1)
end

local function numbers(version)
  local major, minor, patch = version:match "^(%d+)%.(%d+)%.(%d+)$"
  return { tonumber(major), tonumber(minor), tonumber(patch) }
end

local function is_above(version, other)
  local left, right = numbers(version), numbers(other)
  for index = 1, 3 do
    if left[index] ~= right[index] then
      return left[index] > right[index]
    end
  end
  return false
end

local file = assert(io.open(path))
local text = file:read "*a"
file:close()

local released = text:match "\n## (%d+%.%d+%.%d+) %(%d%d%d%d%-%d%d%-%d%d%)"
if released and not is_above(wanted, released) then
  refuse("%s is not above %s, the last release in CHANGELOG.md", wanted, released)
end
local head, state = text:match "\n## (%S+) %(([^\n]*)%)\n"
if head ~= wanted or state ~= "unreleased" then
  refuse("CHANGELOG.md does not begin with '## %s (unreleased)'", wanted)
end
local from, to = text:find("\n## " .. wanted .. " (unreleased)\n", 1, true)
local entries = text:sub(to):match "^(.-)\n## " or text:sub(to)
if not entries:find "\n%- " then
  refuse("CHANGELOG.md has no entries about %s", wanted)
end
io.write(text:sub(1, from), ("## %s (%s)\n"):format(wanted, date), text:sub(to + 1))
