-- Prints a stage of a Dockerfile as a script for tools/bare.sh: lua5.4 spec/packages/dockerfile.lua FILE STAGE
--
-- STAGE is the name after AS, or "final". RUN and COPY are run as they stand. A stage leaves what others copy from it
-- in /root/out; what this one copies from another stage is expected in the directory of its name.
local file, wanted = arg[1], arg[2]

local stages, stage = {}, nil
local text = assert(io.open(file)):read("*a"):gsub("\\\n", " ")
for line in text:gmatch "[^\n]+" do
  local word, rest = line:match "^(%u+)%s+(.*)$"
  if word == "FROM" then
    stage = { name = rest:match " AS (%S+)$" or "final", steps = {} }
    stages[#stages + 1], stages[stage.name] = stage, stage
  elseif word then
    stage.steps[#stage.steps + 1] = { word = word, rest = rest }
  elseif not line:find "^%s*#" then
    error("a line of the Dockerfile is not understood: " .. line)
  end
end

-- `cp` for COPY: the content of a directory goes into the target.
local COPY = [[
mkdir -p "$(dirname "TARGET")"
if [ -d "SOURCE" ]; then
  mkdir -p "TARGET"
  cp -a "SOURCE/." "TARGET/"
else
  cp -a "SOURCE" "TARGET"
fi
]]

local function copy(source, target)
  return (COPY:gsub("%u%u%u%u%u%u", { SOURCE = source, TARGET = target }))
end

local kinds = {
  RUN = function(rest)
    return "(cd / && " .. rest .. ")\n"
  end,
  COPY = function(rest)
    local from, source, target = rest:match "^%-%-from=(%S+) /?(%S+) (%S+)$"
    if not from then
      source, target = rest:match "^(%S+) (%S+)$"
    end
    return copy((from and "/root/project/" .. from .. "/" or "/root/project/") .. source, target)
  end,
  USER = function() end,
  ENTRYPOINT = function() end,
  CMD = function() end,
}

local script = {}
for _, step in ipairs(assert(stages[wanted], "there is no such stage").steps) do
  local write = assert(kinds[step.word], step.word .. " is not understood")
  script[#script + 1] = write(step.rest)
end
for _, other in ipairs(stages) do
  for _, step in ipairs(other.steps) do
    local path = step.rest:match("^%-%-from=" .. wanted .. " (%S+)")
    if step.word == "COPY" and path then
      script[#script + 1] = copy(path, "/root/out" .. path)
    end
  end
end
io.write(table.concat(script))
