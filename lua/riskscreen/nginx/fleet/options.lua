-- The options of the gate's part in a fleet: those of the connection to Redis, and its own.
local build = require "riskscreen.options.build"
local connection = require("riskscreen.redis").options
local seals = require "riskscreen.nginx.fleet.seal"
local tables = require "riskscreen.util.tables"

return tables.concat({
  build.required(
    build.checked(
      "key",
      "string|table",
      seals.check_keys,
      "The secret that signs what stands in Redis: at least 16 bytes, the same on all machines. Of a list, the first "
        .. "one signs, and all are accepted."
    )
  ),
  build.seconds("deadline", 0.02, "How long a request may wait for Redis.", 0.001, 10),
  build.seconds(
    "purge_delay",
    5,
    "How long a decision other than block is still served when this machine cannot hear of purges.",
    0.1,
    3600
  ),
  build.seconds("clock_skew", 1, "How far two machines may differ in the time that they take from Redis.", 0, 60),
  build.seconds("lease", 1, "How long other machines wait for the one that asks about an address.", 0.01, 60),
}, connection)
