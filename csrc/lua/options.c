#include "lua/options.h"

#include <stdio.h>
#include <string.h>

#define NUMBER_SIZE 32 /* bytes of a number in a message, with the NUL */

static void format_number(double number, char *text) {
    (void)snprintf(text, NUMBER_SIZE, "%.14g", number);
}

/* Pushes the valid values of an option, for messages. */
static void push_requirement(lua_State *L, const struct rsc_option *option) {
    char least[NUMBER_SIZE];
    char most[NUMBER_SIZE];
    format_number(option->least, least);
    format_number(option->most, most);
    switch (option->type) {
    case RSC_OPTION_TEXT:
        if (option->most > 0) {
            lua_pushfstring(L, "a string of %s to %s bytes without NUL", least, most);
        } else {
            lua_pushliteral(L, "a string without NUL bytes");
        }
        break;
    case RSC_OPTION_FLAG:
        lua_pushliteral(L, "true or false");
        break;
    case RSC_OPTION_COUNT:
        lua_pushfstring(L, "an integer from %s to %s", least, most);
        break;
    case RSC_OPTION_SECONDS:
        lua_pushfstring(L, "a number of seconds from %s to %s", least, most);
        break;
    case RSC_OPTION_CHOICE:
        lua_pushfstring(L, "one of '%s'", option->choices[0]);
        for (int i = 1; option->choices[i] != NULL; i++) {
            lua_pushfstring(L, "%s, '%s'", lua_tostring(L, -1), option->choices[i]);
            lua_remove(L, -2);
        }
        break;
    }
}

static int refuse_value(lua_State *L, const struct rsc_option *option) {
    char number[NUMBER_SIZE];
    int value = lua_gettop(L);
    push_requirement(L, option);
    const char *requirement = lua_tostring(L, -1);
    if (lua_type(L, value) == LUA_TNUMBER) {
        format_number(lua_tonumber(L, value), number);
        return luaL_error(L, "%s must be %s (got %s)", option->name, requirement, number);
    }
    if (option->type == RSC_OPTION_CHOICE && lua_type(L, value) == LUA_TSTRING) {
        return luaL_error(L, "%s must be %s (got '%s')", option->name, requirement, lua_tostring(L, value));
    }
    return luaL_error(L, "%s must be %s (got %s)", option->name, requirement, luaL_typename(L, value));
}

static int refuse_name(lua_State *L, const char *kind, const char *name, const struct rsc_option *options,
                       size_t count) {
    lua_pushstring(L, options[0].name);
    for (size_t i = 1; i < count; i++) {
        lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), options[i].name);
        lua_remove(L, -2);
    }
    return luaL_error(L, "unknown %s option '%s' (known: %s)", kind, name, lua_tostring(L, -1));
}

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
            refuse_name(L, kind, name, options, count);
        }
        if (!read_value(L, &options[i], target)) {
            refuse_value(L, &options[i]);
        }
    }
}
