std = "min"
max_line_length = 120
self = false
exclude_files = { "build" }
files["spec"] = { std = "+busted" }
