-- Prints the share of lines run in each Lua file of a list, and the lines not run. Fails below LEAST percent.
-- lua5.4 tools/coverage.lua DIRECTORY LEAST < LIST; spec/c/line_coverage.c wrote the lines to DIRECTORY.
local directory, least = arg[1], tonumber(arg[2])

local run = {}
local names = assert(io.popen("ls " .. directory))
for name in names:lines() do
  for line in io.lines(directory .. "/" .. name) do
    run[line] = true
  end
end
names:close()

-- The lines for which the compiler makes code. Its own VARARGPREP before a file and return after each function do not
-- count.
local function lines_with_code(path)
  local lines, last = {}, nil
  local listing = assert(io.popen("luac5.4 -p -l " .. path))
  for text in listing:lines() do
    local line, instruction = text:match "^%s+%d+%s+%[(%d+)%]%s+(%u+)"
    if line and instruction ~= "VARARGPREP" then
      lines[tonumber(line)] = (lines[tonumber(line)] or 0) + 1
      last = { line = tonumber(line) }
    elseif last and not line then
      lines[last.line] = lines[last.line] - 1
      last = nil
    end
  end
  listing:close()
  if last then
    lines[last.line] = lines[last.line] - 1
  end
  return lines
end

local function ranges(lines)
  local parts, i = {}, 1
  table.sort(lines)
  while i <= #lines do
    local from = i
    while lines[i + 1] == lines[i] + 1 do
      i = i + 1
    end
    parts[#parts + 1] = from == i and lines[i] or lines[from] .. "-" .. lines[i]
    i = i + 1
  end
  return table.concat(parts, ",")
end

local all_run, all = 0, 0
for path in io.lines() do
  local missed, count = {}, 0
  for line, instructions in pairs(lines_with_code(path)) do
    if instructions > 0 then
      count = count + 1
      if not run[path .. ":" .. line] then
        missed[#missed + 1] = line
      end
    end
  end
  all_run, all = all_run + count - #missed, all + count
  print(
    ("%-46s %5d %5d  %3d%%   %s"):format(
      path,
      count,
      count - #missed,
      math.floor((1 - #missed / math.max(count, 1)) * 100),
      ranges(missed)
    )
  )
end
local share = all_run / all * 100
print(("Lua: %d of %d lines, %.1f%%"):format(all_run, all, share))
os.exit(share >= least)
