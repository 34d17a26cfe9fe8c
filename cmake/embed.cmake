# Writes the C table of the Lua modules under DIRECTORY/riskscreen to OUTPUT: cmake -DDIRECTORY=… -DOUTPUT=… -P embed.cmake

file(GLOB_RECURSE files RELATIVE ${DIRECTORY} ${DIRECTORY}/riskscreen/*.lua)
list(SORT files)
set(arrays "")
set(entries "")
set(number 0)
foreach(file ${files})
  string(REGEX REPLACE "\\.lua$" "" module ${file})
  string(REGEX REPLACE "/init$" "" module ${module})
  string(REPLACE "/" "." module ${module})
  file(READ ${DIRECTORY}/${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char module_${number}[] = {${bytes}};\n")
  string(APPEND entries "    {\"${module}\", \"=${file}\", module_${number}, sizeof module_${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"lua/modules.h\"\n\n${arrays}\nconst struct rsc_module rsc_modules[] = {\n${entries}"
  "    {NULL, NULL, NULL, 0},\n};\n")
