/* Plans: Lua functions that create a whole object at once. A plan's function takes the members' values and returns the
 * table. The key cache decides which objects get a plan. */
#ifndef RSC_LUA_PLAN_H
#define RSC_LUA_PLAN_H

#include "lua/builder.h"

/* Compiles the function of a new plan and stores it in the Lua cache. Returns false if a key is not a plain name, so
 * that no text from outside becomes source code. */
bool rsc_plan_prepare(struct rsc_builder *builder, uint16_t number);

/* Pushes the plan's function. The caller then pushes the values. */
void rsc_plan_begin(struct rsc_builder *builder, uint16_t number);

/* Replaces the function and all its values by the object. */
void rsc_plan_finish(struct rsc_builder *builder, uint16_t number);

/* Replaces the function and its first `count` values by an object with those members. */
void rsc_plan_abandon(struct rsc_builder *builder, uint16_t number, int count);

#endif
