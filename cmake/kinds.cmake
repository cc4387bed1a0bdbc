# Kinds (operators, metrics, input kinds …) are found because they lie in their folder.
#
# millrace_kinds(NAME FOLDERS MACRO USER) looks for MACRO(kind) at the beginning of lines in the .cpp files of
# src/FOLDER, for each of the FOLDERS, and of the folders in it, and writes generated/NAME.inc with a line
# KIND(kind) for each, sorted by name. src/USER, the one that includes it, gets the folder of generated files
# into its path: in every command it would keep ccache from serving another checkout.
function(millrace_kinds name folders macro user)
  list(TRANSFORM folders REPLACE "(.+)" "src/\\1/*.cpp")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folders})
  set(kinds "")
  foreach(source ${sources})
    file(STRINGS ${source} definitions REGEX "^${macro}\\([A-Za-z0-9_]+\\)")
    foreach(definition ${definitions})
      string(REGEX REPLACE "^${macro}\\(([A-Za-z0-9_]+)\\).*" "\\1" kind "${definition}")
      list(APPEND kinds ${kind})
    endforeach()
    # A new kind in a file that is there already asks for another look.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  endforeach()
  list(SORT kinds)
  list(TRANSFORM kinds REPLACE "(.+)" "KIND(\\1)")
  list(JOIN kinds "\n" kinds)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/${name}.inc CONTENT "${kinds}\n" @ONLY)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/${user} PROPERTIES
    COMPILE_OPTIONS "-I${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
