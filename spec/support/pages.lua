-- The pages of the documentation: their code blocks, and the programs that these blocks make. docs_spec.lua runs them.
local M = {}

---@class riskscreen.spec.Block
---@field page string the page's path
---@field language string
---@field text string
---@field line integer the line of the opening fence
---@field heading? string the heading above it
---@field expected? string the text block after it: what it prints
---@field reason? string why it is not run, from the comment before it
---@field file? string the file that has the same text, from the comment before it

local MARK = "\1"

---@param path string
---@return string
function M.read(path)
  local file = assert(io.open(path))
  local content = file:read "*a"
  file:close()
  return content
end

-- A comment `not run: REASON` or `file: PATH` belongs to the block that follows it.
local function note_in(line)
  local name, value = line:match "^<!%-%- ([%a ]+): (.+) %-%->$"
  return name and { reason = name == "not run" and value or nil, file = name == "file" and value or nil }
end

local function close_block(blocks, block, lines)
  block.text = table.concat(lines, "\n") .. "\n"
  local last = blocks[#blocks]
  if block.language ~= "text" then
    blocks[#blocks + 1] = block
  elseif not last or last.expected or last.section ~= block.section then
    error(("%s:%d: this text block follows no program"):format(block.page, block.line))
  else
    last.expected = block.text
  end
end

---The code blocks of a page, in order. A text block is the output of the block before it.
---@param path string
---@return riskscreen.spec.Block[]
function M.blocks(path)
  local blocks, block, lines, note, heading, section, number = {}, nil, nil, nil, nil, 0, 0
  for line in M.read(path):gmatch "([^\n]*)\n" do
    number = number + 1
    local fence = line:match "^```(.*)$"
    if fence and not block then
      block = { page = path, language = fence, line = number, heading = heading, section = section }
      block.reason, block.file = note and note.reason, note and note.file
      lines, note = {}, nil
    elseif fence then
      close_block(blocks, block, lines)
      block = nil
    elseif block then
      lines[#lines + 1] = line
    else
      note = note_in(line) or (line == "" and note or nil)
      heading = line:match "^#+ (.+)$" or heading
      section = section + (line:find "^#" and 1 or 0)
    end
  end
  assert(not block, path .. " has a block without an end")
  return blocks
end

---The program that the Lua blocks of a page make together. Its line numbers are the page's. Before each block it prints
---a mark with the number of the block's line.
---@param blocks riskscreen.spec.Block[]
---@return string
function M.program(blocks)
  local lines, length = {}, 0
  for _, block in ipairs(blocks) do
    while length < block.line - 1 do
      length = length + 1
      lines[length] = ""
    end
    length = length + 1
    lines[length] = ("io.write '\\001%d\\001'"):format(block.line)
    for line in block.text:gmatch "([^\n]*)\n" do
      length = length + 1
      lines[length] = line
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

---The output of each block, by the number of its line.
---@param output string of `M.program`
---@return table<integer, string>
function M.outputs(output)
  local outputs = {}
  for line, text in output:gmatch(MARK .. "(%d+)" .. MARK .. "([^" .. MARK .. "]*)") do
    outputs[tonumber(line)] = text
  end
  return outputs
end

---A text without what differs from run to run: times, dates, ports, identifiers, trailing space.
---@param text string
---@return string
function M.masked(text)
  text = text:gsub("%f[%w]%d+%.?%d* m?s%f[%W]", "TIME")
  text = text:gsub("%d%d%d%d%-%d%d%-%d%d[T ]%d%d:%d%d:%d%d", "DATE")
  text = text:gsub("127%.0%.0%.1:%d+", "127.0.0.1:PORT")
  text = text:gsub("[ \t\r]+\n", "\n")
  return text
end

---The links of a page that lead into the repository: path and anchor.
---@param path string
---@return { target: string, anchor?: string }[]
function M.links(path)
  local links = {}
  local text = M.read(path):gsub("\n```.-\n```", "")
  for link in text:gmatch "%]%(([^)%s]+)%)" do
    if not link:find "^%a+:" then
      local target, anchor = link:match "^([^#]*)#?(.*)$"
      links[#links + 1] = { target = target, anchor = anchor ~= "" and anchor or nil }
    end
  end
  return links
end

---The anchors that GitHub gives the headings of a page.
---@param path string
---@return table<string, boolean>
function M.anchors(path)
  local anchors = {}
  local text = ("\n" .. M.read(path)):gsub("\n```.-\n```", "")
  for heading in text:gmatch "\n#+ ([^\n]+)" do
    anchors[heading:lower():gsub("[^%w%s_-]", ""):gsub("%s", "-")] = true
  end
  return anchors
end

---A path as seen from a page's directory.
---@param page string
---@param target string
---@return string
function M.resolve(page, target)
  if target == "" then
    return page
  end
  local path = (page:match "^(.*/)[^/]*$" or "") .. target
  local count
  repeat
    path, count = path:gsub("[^/.][^/]*/%.%./", "", 1)
  until count == 0
  return path
end

return M
