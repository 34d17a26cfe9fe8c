# Writes the C table of the Lua modules under DIRECTORY/riskscreen to OUTPUT: cmake -DDIRECTORY=… -DOUTPUT=… -P embed.cmake
# A file of the report's page becomes a module that returns its text.

file(GLOB_RECURSE files RELATIVE ${DIRECTORY} ${DIRECTORY}/riskscreen/*.lua ${DIRECTORY}/riskscreen/report/page/*)
list(SORT files)
set(arrays "")
set(entries "")
set(number 0)
foreach(file ${files})
  string(REGEX REPLACE "\\.lua$" "" module ${file})
  string(REGEX REPLACE "/init$" "" module ${module})
  string(REPLACE "/" "." module ${module})
  # As a C string: a compiler reads it several times faster than an array of numbers.
  file(READ ${DIRECTORY}/${file} text)
  if(NOT file MATCHES "\\.lua$")
    set(text "return [====[\n${text}]====]\n")
  endif()
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # no trigraphs
  string(REPLACE "\n" "\\n\"\n\"" text "${text}")
  string(APPEND arrays "static const unsigned char module_${number}[] = \"${text}\";\n")
  string(APPEND entries "    {\"${module}\", \"=${file}\", module_${number}, sizeof module_${number} - 1},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"lua/modules.h\"\n\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n"
  "${arrays}\nconst struct rsc_module rsc_modules[] = {\n${entries}    {NULL, NULL, NULL, 0},\n};\n")
