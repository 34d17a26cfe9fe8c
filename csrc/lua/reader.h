/* Reads a text by its shape: one pass checks the shape and makes the tables, where the builder makes any tables and the
 * checks follow. It refuses whatever is unusual without a word. The builder and the checks in
 * riskscreen.interface.response then find out if the text is good, and say what is wrong. */
#ifndef RSC_LUA_READER_H
#define RSC_LUA_READER_H

#include "lua/builder.h"

/* Makes a reader of the list of nodes at a stack index. A node is a shape without tables in it: `first` and `count`
 * tell which later nodes of the list, from 0, are its fields, or the one of its elements. The first node is the
 * outermost object. Pushes the reader, a userdata, and the table of its names. Returns false, with any number of values
 * pushed, for more than 64 nodes, or a name that a text may escape. */
bool rsc_reader_new(lua_State *L, int nodes);

/* Reads the whole text, and pushes a value for each field of the outermost object that has no `literal`, in order; nil
 * for one that is absent. A field's `literal` is the JSON text that its value must be. The table at stack index `names`
 * has the reader's names. Returns their count; 0 if the text has not the shape or is unusual: a name with an escape, or
 * an unknown null member. Any number of values may be on the stack above them. Raises if Lua runs out of memory. */
int rsc_reader_run(struct rsc_builder *builder, void *userdata, int names);

#endif
