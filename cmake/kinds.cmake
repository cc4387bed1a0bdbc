# Kinds (operators, metrics, input kinds …) are found because they lie in their folder.
#
# millrace_kinds(NAME FOLDERS MACRO USER [TYPE SYMBOL]) looks for MACRO(kind) at the beginning of lines in the
# .cpp files of src/FOLDER, for each of the FOLDERS, and of the folders in it, and writes generated/NAME.inc,
# sorted by name. With a TYPE and a SYMBOL, "log_\\1" of each kind, it declares these and lists their
# addresses as MILLRACE_FOUND_NAME; else it has a line KIND(kind) for each. src/USER, the one that includes
# it, gets the folder of generated files into its path: in every command it would keep ccache from serving
# another checkout.
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
  if(ARGC GREATER 4)
    list(TRANSFORM kinds REPLACE "(.+)" "${ARGV5}")
    list(JOIN kinds ", " declared)
    list(TRANSFORM kinds PREPEND "&")
    list(JOIN kinds ", " addresses)
    string(TOUPPER ${name} upper)
    set(kinds "extern const ${ARGV4} ${declared};\n#define MILLRACE_FOUND_${upper} ${addresses}")
  else()
    list(TRANSFORM kinds REPLACE "(.+)" "KIND(\\1)")
    list(JOIN kinds "\n" kinds)
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/${name}.inc CONTENT "${kinds}\n" @ONLY)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/${user} PROPERTIES
    COMPILE_OPTIONS "-I${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
