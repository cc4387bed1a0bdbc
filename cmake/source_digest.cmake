# A digest of source files, as a C++ string: generated/NAME.inc, made anew when one of them changes.
#
# millrace_source_digest(NAME USER PATTERN…) gives src/USER, which includes it, the folder of generated files,
# as millrace_kinds() does.
function(millrace_source_digest name user)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARGN})
  list(SORT sources)
  set(all "")
  foreach(source ${sources})
    file(SHA256 ${source} one)
    string(APPEND all ${one})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  endforeach()
  string(SHA256 all "${all}")
  string(SUBSTRING ${all} 0 32 all)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/${name}.inc CONTENT "\"${all}\"\n" @ONLY)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/${user} PROPERTIES
    COMPILE_OPTIONS "-I${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
