-- The compiled modules are hardened, as checksec understands it, and export nothing but the functions that `require`
-- calls. readelf shows it.

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read "*a"
  pipe:close()
  return output
end

-- Of every Lua that is built.
local modules = output_of "find build/5.* build/luajit -path '*/riskscreen/*.so' 2>/dev/null | sort"

describe("the compiled module", function()
  for path in modules:gmatch "%S+" do
    describe(path, function()
      local program, dynamic, symbols, imports, exports

      setup(function()
        program = output_of("readelf -lW " .. path)
        dynamic = output_of("readelf -dW " .. path)
        symbols = output_of("readelf -W --dyn-syms " .. path)
        imports, exports = {}, {}
        for section, name in symbols:gmatch "%s+%d+: %x+%s+%d+%s+%u+%s+%u+%s+%u+%s+(%S+)%s+([%w_]+)" do
          if section == "UND" then
            imports[name] = true
          else
            exports[#exports + 1] = name
          end
        end
      end)

      it("has a read-only table of functions of other libraries, bound at loading", function()
        assert.is_truthy(program:find "GNU_RELRO")
        assert.is_truthy(dynamic:find "BIND_NOW" or dynamic:find "FLAGS_1.*NOW")
      end)

      it("has no stack that can be executed, and no code that is written", function()
        assert.is_truthy(program:find "GNU_STACK[^\n]* RW +0x")
        assert.is_nil(program:find "RWE")
        assert.is_nil(dynamic:find "TEXTREL")
      end)

      it("protects the stack", function()
        assert.is_true(imports.__stack_chk_fail)
      end)

      -- Where the compiler proves that a call is safe, it keeps the plain form. Other modules have no other calls.
      if path:find "core" or path:find "decoder" or path:find "server" then
        it("calls checked forms of the functions that write to memory", function()
          assert.is_true(imports.__snprintf_chk)
          assert.is_true(imports.__vsnprintf_chk)
        end)
      end

      it("looks for libraries where the system has them", function()
        assert.is_nil(dynamic:find "RPATH")
        assert.is_nil(dynamic:find "RUNPATH")
      end)

      it("exports the function that require calls, and no other", function()
        assert.same({ "luaopen_riskscreen_" .. path:match "(%w+)%.so$" }, exports)
      end)
    end)
  end

  it("is there", function()
    assert.is_truthy(modules:find "core.so")
  end)
end)
