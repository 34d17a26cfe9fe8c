-- The version of this release. CMake reads it; the rockspecs, the manual page and dist.ini are generated from it.
return "0.9.0"
