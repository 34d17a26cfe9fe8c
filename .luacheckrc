std = "min"
max_line_length = 120
self = false
exclude_files = { "build", "types" }
files["spec"] = { std = "+busted" }
