#include "lua/options.h"

#include <string.h>

static const char *const requirements[] = {
    [RSC_OPTION_TEXT] = "a string of a valid length", [RSC_OPTION_FLAG] = "true or false",
    [RSC_OPTION_COUNT] = "an integer in its range",   [RSC_OPTION_SECONDS] = "a number of seconds in its range",
    [RSC_OPTION_CHOICE] = "one of its choices",
};

/* The functions below read the value at the top of the stack and return whether it is valid. */

static bool read_text(lua_State *L, const struct rsc_option *option, const char **member) {
    size_t length = 0;
    *member = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;
    return *member != NULL && strlen(*member) == length &&
           (option->most == 0 || ((double)length >= option->least && (double)length <= option->most));
}

static bool read_flag(lua_State *L, bool *member) {
    *member = lua_toboolean(L, -1) != 0;
    return lua_type(L, -1) == LUA_TBOOLEAN;
}

static bool read_number(lua_State *L, const struct rsc_option *option, double *number) {
    *number = lua_tonumber(L, -1);
    /* A NaN is in no range. */
    return lua_type(L, -1) == LUA_TNUMBER && *number >= option->least && *number <= option->most;
}

static bool read_count(lua_State *L, const struct rsc_option *option, int64_t *member) {
    double number;
    if (!read_number(L, option, &number)) {
        return false;
    }
    *member = (int64_t)number;
    return (double)*member == number;
}

static bool read_choice(lua_State *L, const struct rsc_option *option, int *member) {
    const char *text = NULL;
    *member = 0;
    if (!read_text(L, option, &text)) {
        return false;
    }
    while (option->choices[*member] != NULL && strcmp(option->choices[*member], text) != 0) {
        ++*member;
    }
    return option->choices[*member] != NULL;
}

static bool read_value(lua_State *L, const struct rsc_option *option, void *target) {
    void *member = (char *)target + option->offset;
    switch (option->type) {
    case RSC_OPTION_TEXT:
        return read_text(L, option, member);
    case RSC_OPTION_FLAG:
        return read_flag(L, member);
    case RSC_OPTION_COUNT:
        return read_count(L, option, member);
    case RSC_OPTION_SECONDS:
        return read_number(L, option, member);
    default:
        return read_choice(L, option, member);
    }
}

void rsc_options_read(lua_State *L, int index, const char *kind, const struct rsc_option *options, size_t count,
                      void *target) {
    if (lua_isnoneornil(L, index)) {
        return;
    }
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
        size_t i = 0;
        while (i < count && (options[i].name[0] != name[0] || strcmp(options[i].name, name) != 0)) {
            i++;
        }
        if (i == count) {
            luaL_error(L, "unknown %s option '%s'", kind, name);
        }
        if (!read_value(L, &options[i], target)) {
            luaL_error(L, "%s must be %s (got a %s)", name, requirements[options[i].type], luaL_typename(L, -1));
        }
    }
}
