-- Prints the shell blocks below a heading of a page as one script: lua5.4 spec/packages/section.lua PAGE HEADING
--
-- The script shows each block and runs it. It ends with status 1 if a block prints what the page does not show.
-- A block whose output is shown may end with any status. The commands of other blocks must end with 0.
local pages = require "spec.support.pages"

local function quoted(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local commands = {}
for _, block in ipairs(pages.blocks(arg[1])) do
  if block.heading == arg[2] and block.language == "sh" and not block.reason then
    commands[#commands + 1] = ("printf %%s %s >&2\n"):format(quoted(block.text))
    if block.expected then
      commands[#commands + 1] = ("set +e\n{\n%s} >/tmp/printed\nset -e\n"):format(block.text)
      commands[#commands + 1] = ("printf %%s %s | diff - /tmp/printed >&2\n"):format(quoted(block.expected))
    else
      commands[#commands + 1] = block.text
    end
  end
end
assert(commands[1], ("%s has no shell block below the heading '%s'"):format(arg[1], arg[2]))
io.write(table.concat(commands))
