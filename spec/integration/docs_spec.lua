-- Every code block of README.md and of the pages in docs/ does what its page says.
local commands = require "spec.support.page_commands"
local pages = require "spec.support.pages"

local MOST_NOT_RUN = 8 -- blocks of all pages
local LONGEST_README = 165 -- lines

local function page_names()
  local names = {}
  for name in commands.run("git ls-files '*.md'"):gmatch "[^\n]+" do
    names[#names + 1] = name
  end
  return names
end

local function of_languages(blocks, ...)
  local wanted, list = {}, {}
  for _, language in ipairs { ... } do
    wanted[language] = true
  end
  for _, block in ipairs(blocks) do
    if wanted[block.language] and not block.reason then
      list[#list + 1] = block
    end
  end
  return list
end

local function place(block)
  return block.page .. ":" .. block.line
end

local function assert_output(block, output)
  assert.equal(pages.masked(block.expected or ""), pages.masked(output), place(block) .. " prints something else")
end

local function assert_shell(block, adapt)
  local output, problem = commands.run_shell(block, adapt)
  assert.is_nil(problem, place(block))
  if block.expected then
    assert_output(block, output)
  end
end

local function exists(path)
  return select(2, commands.run(("test -e '%s'"):format(path))) == 0
end

for _, name in ipairs(page_names()) do
  local blocks = pages.blocks(name)
  local of_nginx = of_languages(blocks, "nginx")[1] ~= nil
  local is_gateway_page = of_nginx and not name:find "README"

  describe(name, function()
    local lua = of_languages(blocks, "lua")
    if lua[1] and not is_gateway_page then
      it("has Lua blocks that run in order and print what it shows", function()
        local outputs, status, problem = commands.run_lua(lua)
        assert.equal(0, status, problem)
        assert.equal("", problem)
        for _, block in ipairs(lua) do
          assert_output(block, outputs[block.line] or "")
        end
      end)
    end

    local shell = of_languages(blocks, "sh")
    if of_nginx then
      it("has a configuration with which nginx runs, and answers as it shows", function()
        local running = commands.start_nginx(is_gateway_page and blocks or of_languages(blocks, "nginx"))
        local ok, failure = pcall(function()
          for _, block in ipairs(shell) do
            assert_shell(block, running.adapt)
          end
        end)
        running.stop()
        if not ok then
          error(failure, 0)
        end
      end)
    elseif name == "docs/install.md" then
      it("has shell commands that ./dev packages runs in a bare system", function()
        local tests = commands.run "cat spec/packages/*.sh"
        for _, block in ipairs(shell) do
          assert.matches(('section "%s"'):format(block.heading), tests, 1, true)
        end
      end)
    elseif shell[1] then
      it("has shell commands that do what it shows", function()
        for _, block in ipairs(shell) do
          assert_shell(block)
        end
      end)
    end

    for _, block in ipairs(of_languages(blocks, "c")) do
      it("has a C program that compiles, at line " .. block.line, function()
        local output, status = commands.compile_c(block)
        assert.equal(0, status, output)
      end)
    end

    it("has no block in another language", function()
      for _, block in ipairs(blocks) do
        local is_known = block.reason or block.language:find "^lua$" or block.language:find "^nginx$"
        is_known = is_known
          or block.language == "sh"
          or block.language == "c"
          or block.language == "cmake"
          or block.language == "caddyfile" -- spec/in_nginx/answer_nginx.lua runs it
          or block.language == "mermaid"
        assert.is_truthy(is_known, place(block) .. ": " .. block.language)
      end
    end)

    for _, block in ipairs(blocks) do
      if block.file then
        it("shows " .. block.file .. " as it is", function()
          assert.equal(pages.read(block.file), block.text)
        end)
      end
    end

    it("has links that lead somewhere", function()
      for _, link in ipairs(pages.links(name)) do
        local path = pages.resolve(name, link.target)
        assert.is_true(exists(path), name .. " links to " .. path)
        if link.anchor then
          assert.is_true(pages.anchors(path)[link.anchor], name .. " links to " .. path .. "#" .. link.anchor)
        end
      end
    end)

    it("names only files that are there", function()
      for path in pages.read(name):gmatch "`([%w_/.-]+/[%w_.-]+%.[luachmd]+)`" do
        if path:find "^spec/" or path:find "^lua/" or path:find "^tools/" or path:find "^examples/" then
          assert.is_true(exists(path), name .. " names " .. path)
        end
      end
    end)
  end)
end

describe("the documentation", function()
  teardown(commands.remove_directory)

  it("has few blocks that are not run, each with its reason", function()
    local count = 0
    for _, name in ipairs(page_names()) do
      for _, block in ipairs(pages.blocks(name)) do
        count = count + (block.reason and 1 or 0)
      end
    end
    assert.is_true(count <= MOST_NOT_RUN, count .. " blocks are not run")
  end)

  it("begins with a README of one screen", function()
    local _, lines = pages.read("README.md"):gsub("\n", "")
    assert.is_true(lines <= LONGEST_README, lines .. " lines")
  end)
end)
