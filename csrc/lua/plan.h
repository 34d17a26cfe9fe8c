/* Objects made all at once: a plan's Lua function takes the members' values and returns the table. */
#ifndef RSC_LUA_PLAN_H
#define RSC_LUA_PLAN_H

#include "builder.h"

/* Makes the function of a new plan and keeps it in the table of strings. False when the plan has keys that are not
 * plain names: those never become source text. */
bool rsc_plan_prepare(struct rsc_builder *builder, uint16_t number);

/* Pushes the plan's function; push its values after it. */
void rsc_plan_begin(struct rsc_builder *builder, uint16_t number);

/* Turns the function and all its values into the table. */
void rsc_plan_finish(struct rsc_builder *builder, uint16_t number);

/* Turns the function and the first `count` of its values into a table with just these. */
void rsc_plan_abandon(struct rsc_builder *builder, uint16_t number, int count);

#endif
