-- The version of these Lua files. The compiled core has the same version in the same release.
return "0.1.0"
