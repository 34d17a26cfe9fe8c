/* Plans: Lua functions that create a whole object at once, from the values of its members. They pay on LuaJIT alone,
 * where p1 to p3 of `./dev bench decode` take 22 to 32 % more time without them. */
#ifndef RSC_LUA_PLAN_H
#define RSC_LUA_PLAN_H

#include "lua/builder.h"

/* Records an object of a shape without a plan, whose keys were all expected. Gives the shape a plan after several such
 * objects. */
void rsc_plan_learn(struct rsc_builder *builder, struct rsc_shape *shape, const uint16_t *keys, int count);

/* Records an object of a shape with a plan. Removes the plan if too many objects do not match it: else p4 takes 19 %
 * more time. */
void rsc_plan_rate(struct rsc_builder *builder, struct rsc_shape *shape, bool matched);

#endif
