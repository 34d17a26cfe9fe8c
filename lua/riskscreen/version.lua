-- The version of these Lua files. The compiled core says its own; the two are one release.
return "0.1.0"
