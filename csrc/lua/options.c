#include "options.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

static void *member(void *target, const struct rsc_option *option) {
    return (char *)target + option->offset;
}

static struct rsc_text string_at_top(lua_State *L, const struct rsc_option *option) {
    struct rsc_text text;
    if (lua_type(L, -1) != LUA_TSTRING) {
        luaL_error(L, "%s must be a string (got %s)", option->name, luaL_typename(L, -1));
    }
    text.bytes = lua_tolstring(L, -1, &text.length);
    return text;
}

static const char *text_at_top(lua_State *L, const struct rsc_option *option) {
    struct rsc_text text = string_at_top(L, option);
    if (strlen(text.bytes) != text.length) {
        luaL_error(L, "%s must not contain a NUL byte", option->name);
    }
    return text.bytes;
}

static int choice_at_top(lua_State *L, const struct rsc_option *option) {
    const char *text = text_at_top(L, option);
    int i = 0;
    while (option->choices[i] != NULL && strcmp(option->choices[i], text) != 0) {
        i++;
    }
    if (option->choices[i] == NULL) {
        lua_pushfstring(L, "%s must be one of", option->name);
        for (i = 0; option->choices[i] != NULL; i++) {
            lua_pushfstring(L, "%s '%s'", i > 0 ? "," : "", option->choices[i]);
        }
        lua_pushfstring(L, " (got '%s')", text);
        lua_concat(L, i + 2);
        luaL_error(L, "%s", lua_tostring(L, -1));
    }
    return i;
}

/* A NaN is in no range. */
static double number_at_top(lua_State *L, const struct rsc_option *option, const char *kind) {
    if (lua_type(L, -1) != LUA_TNUMBER) {
        luaL_error(L, "%s must be %s (got %s)", option->name, kind, luaL_typename(L, -1));
    }
    double number = lua_tonumber(L, -1);
    if (!(number >= option->least && number <= option->most)) {
        luaL_error(L, "%s must be %s from %f to %f (got %f)", option->name, kind, (lua_Number)option->least,
                   (lua_Number)option->most, (lua_Number)number);
    }
    return number;
}

static int64_t count_at_top(lua_State *L, const struct rsc_option *option) {
    double number = number_at_top(L, option, "an integer");
    if (number != floor(number)) {
        luaL_error(L, "%s must be an integer (got %f)", option->name, (lua_Number)number);
    }
    return (int64_t)number;
}

static void read_value(lua_State *L, const struct rsc_option *option, void *target) {
    switch (option->type) {
    case RSC_OPTION_TEXT:
        *(const char **)member(target, option) = text_at_top(L, option);
        break;
    case RSC_OPTION_BYTES:
        *(struct rsc_text *)member(target, option) = string_at_top(L, option);
        break;
    case RSC_OPTION_FLAG:
        if (lua_type(L, -1) != LUA_TBOOLEAN) {
            luaL_error(L, "%s must be true or false (got %s)", option->name, luaL_typename(L, -1));
        }
        *(bool *)member(target, option) = lua_toboolean(L, -1) != 0;
        break;
    case RSC_OPTION_COUNT:
        *(int64_t *)member(target, option) = count_at_top(L, option);
        break;
    case RSC_OPTION_SECONDS:
        *(double *)member(target, option) = number_at_top(L, option, "a number of seconds");
        break;
    case RSC_OPTION_CHOICE:
        *(int *)member(target, option) = choice_at_top(L, option);
        break;
    case RSC_OPTION_OTHER:
        break;
    }
}

void rsc_options_read(lua_State *L, int index, const char *what, const struct rsc_option *options, size_t count,
                      void *target) {
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
        size_t i = 0;
        while (i < count && (options[i].name[0] != name[0] || strcmp(options[i].name, name) != 0)) {
            i++;
        }
        if (i == count) {
            luaL_error(L, "unknown %s option '%s'", what, name);
        }
        read_value(L, &options[i], target);
    }
}

uint64_t rsc_seconds_to_ns(double seconds) {
    return (uint64_t)ceil(seconds * 1e9);
}

long rsc_seconds_to_ms(double seconds) {
    return (long)ceil(seconds * 1e3);
}
