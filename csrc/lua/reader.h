/* Reads a text by its shape: one pass checks the shape and makes the tables, where the builder makes any tables and the
 * checks follow. It refuses whatever is unusual without a word. The builder and the checks in
 * riskscreen.interface.response then find out if the text is good, and say what is wrong. */
#ifndef RSC_LUA_READER_H
#define RSC_LUA_READER_H

#include "lua/builder.h"

/* Compiles the shape at a stack index, whose outermost type is an object. Pushes the reader, a userdata, and the table
 * of its names. Returns false, with any number of values pushed, for a shape that it does not read: one with a decimal
 * text, `any_of`, more than 64 fields, or a name that a text may escape. */
bool rsc_reader_new(lua_State *L, int shape);

/* Reads the whole text, and pushes a value for each field of the outermost object that has no `literal`, in order; nil
 * for one that is absent. A field's `literal` is the JSON text that its value must be. The table at stack index `names`
 * has the reader's names. Returns their count; 0 if the text has not the shape or is unusual: a name with an escape, or
 * an unknown null member. Any number of values may be on the stack above them. Raises if Lua runs out of memory. */
int rsc_reader_run(struct rsc_builder *builder, void *userdata, int names);

#endif
