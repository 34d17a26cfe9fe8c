-- riskscreen repl: a Lua prompt with the library and a client.

local text = require "riskscreen.util.text"

local GREETING = "riskscreen is the library, and client asks %s. Try: "
  .. 'print(client:screen { address = "0x16e998a4a64a384aa74dd757e5a6858ab909262e", network = "eth" })'

local compile = loadstring or load -- luacheck: ignore 113

local function show(out, ok, ...)
  local shown = {}
  for index = 1, select("#", ...) do
    shown[index] = tostring((select(index, ...)))
  end
  if not ok or shown[1] then
    out:write(table.concat(shown, "\t"), "\n")
  end
end

local function run(context)
  local world, lines = context.world, ""
  local client, source = context:client()
  rawset(_G, "riskscreen", require "riskscreen")
  rawset(_G, "client", client)
  context:tell(GREETING:format(source and "the sandbox" or "the service"))
  repeat
    if world.columns(world.out) then
      world.out:write(lines == "" and "> " or ">> ")
      world.out:flush()
    end
    local line = world.input:read()
    lines = lines .. (line or "") .. "\n"
    -- An expression is printed, as Lua's own prompt does.
    local chunk, message = compile("return " .. lines, "=stdin"), nil
    if not chunk then
      chunk, message = compile(lines, "=stdin")
    end
    local is_unfinished = not chunk and line and message:find "<eof>['\"]?$"
    if chunk then
      show(world.out, pcall(chunk))
    elseif not is_unfinished then
      world.out:write(text.printable(message), "\n")
    end
    lines = is_unfinished and lines or ""
    world.out:flush()
  until not line
end

return {
  name = "repl",
  summary = "A Lua prompt with the library as `riskscreen` and a client as `client`.",
  description = "The client is that of the configuration, or of the sandbox. The end of the input (Ctrl-D) ends it.",
  examples = { { line = "repl --sandbox", what = "Try the library without a service" } },
  statuses = { done = "the input has ended", unrecorded = "a decision could not be recorded in the journal" },
  run = run,
}
