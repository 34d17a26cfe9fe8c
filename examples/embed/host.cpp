// A C++ program with Lua inside. The state belongs to a unique_ptr, and an error of Lua becomes an exception.
#include <iostream>
#include <lua.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "riskscreen.h"

namespace {

struct CloseState {
    void operator()(lua_State *L) const {
        lua_close(L);
    }
};

class Screener {
  public:
    Screener() : state(luaL_newstate()) {
        if (!state) {
            throw std::bad_alloc();
        }
        // Lua's errors jump over C++ frames, so what may raise runs in a function without C++ objects.
        lua_pushcfunction(state.get(), prepare);
        call(0, 0);
    }

    std::string action(const std::string &address, const std::string &network) {
        lua_getglobal(state.get(), "screen");
        lua_pushlstring(state.get(), address.data(), address.size());
        lua_pushlstring(state.get(), network.data(), network.size());
        call(2, 1);
        std::string action = lua_tostring(state.get(), -1);
        lua_pop(state.get(), 1);
        return action;
    }

  private:
    static int prepare(lua_State *L) {
        luaL_openlibs(L);
        riskscreen_preload(L);
        const char *script = "local client = require('riskscreen').sandbox.client {}\n"
                             "function screen(address, network)\n"
                             "  local decision = client:screen({ address = address, network = network })\n"
                             "  return decision.error and error(decision.error.message, 0) or decision.action\n"
                             "end\n";
        if (luaL_loadstring(L, script) != LUA_OK) {
            return lua_error(L);
        }
        lua_call(L, 0, 0);
        return 0;
    }

    void call(int arguments, int results) {
        if (lua_pcall(state.get(), arguments, results, 0) != LUA_OK) {
            std::string message = lua_tostring(state.get(), -1);
            lua_pop(state.get(), 1);
            throw std::runtime_error(message);
        }
    }

    std::unique_ptr<lua_State, CloseState> state;
};

} // namespace

int main() {
    try {
        Screener screener;
        std::cout << screener.action("0x52908400098527886E0F7030069857D2E4169EE7", "eth") << std::endl;
        std::cout << screener.action("0x529", "eth") << std::endl;
    } catch (const std::exception &failure) {
        std::cout << "no decision: " << failure.what() << std::endl;
    }
}
