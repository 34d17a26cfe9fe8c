# The rooms of lua/riskscreen: the folders and files that each holds. A room imports the rooms that it needs alone.
# cmake/install.cmake makes a component of each room, and tools/layers.lua checks the imports.
set(riskscreen_rooms library sandbox durable gate command)
set(room_library
  init version errors util json interface address options policy rows runtime call lists client kyt)
set(room_sandbox sandbox)
set(room_durable store journal queue watch webhook redis)
set(room_gate nginx)
set(room_command cli explore report)
set(room_sandbox_needs library)
set(room_durable_needs library)
set(room_gate_needs library durable)
set(room_command_needs library sandbox durable)
