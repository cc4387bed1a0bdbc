# Small files of a folder are compiled several at a time: what they all include is read once, which is most of
# the work.
#
# millrace_batches(RESULT ROOT SOURCE…) puts into RESULT what to compile: files that include some sources of a
# folder each, by their paths below ROOT, which must be a folder of includes. Which batch a source is in
# follows from its name, and the number of batches of a folder is a power of two: so it stays there when
# others come or go, and ccache and ninja have little to do. Sources with options or definitions of their own
# are compiled alone.
#
# What a source declares for itself needs a name, then, that no other file of its folder uses.
option(MILLRACE_BATCHES "Compile the files of a folder several at a time" ON)
set(MILLRACE_BATCH_SIZE 8)  # touching one of them compiles all: some seconds

function(millrace_batches result root)
  if(NOT MILLRACE_BATCHES)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(compiled "")
  set(folders "")
  foreach(source IN LISTS ARGN)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(options OR definitions)
      list(APPEND compiled ${source})
    else()
      file(RELATIVE_PATH name ${root} ${source})
      get_filename_component(folder ${name} DIRECTORY)
      list(APPEND folders "${folder}")
      string(MAKE_C_IDENTIFIER "sources in ${folder}" sources)
      list(APPEND ${sources} ${name})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)

  get_filename_component(kind ${root} NAME)
  foreach(folder IN LISTS folders)
    string(MAKE_C_IDENTIFIER "sources in ${folder}" sources)
    list(LENGTH ${sources} count)
    set(last 0)  # batches are 0 … last
    set(room ${MILLRACE_BATCH_SIZE})
    while(count GREATER room)
      math(EXPR last "2 * ${last} + 1")
      math(EXPR room "2 * ${room}")
    endwhile()
    foreach(name IN LISTS ${sources})
      string(MD5 digest ${name})
      string(SUBSTRING ${digest} 0 4 digest)
      math(EXPR batch "0x${digest} & ${last}")
      string(APPEND text_${batch} "#include \"${name}\"\n")
    endforeach()
    foreach(batch RANGE ${last})
      if(DEFINED text_${batch})
        set(path "${CMAKE_BINARY_DIR}/batches/${kind}/${folder}/batch_${batch}.cpp")
        file(CONFIGURE OUTPUT ${path} CONTENT "${text_${batch}}" @ONLY)
        list(APPEND compiled ${path})
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
          # It takes the source for a header, where a class with members of types that are the file's own
          # would be odd.
          set_source_files_properties(${path} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
        endif()
        unset(text_${batch})
      endif()
    endforeach()
  endforeach()
  set(${result} ${compiled} PARENT_SCOPE)
endfunction()

# millrace_precompile(TARGET HEADER…): what nearly every source of a target includes is read once. Sources
# must still include what they use: with -DMILLRACE_BATCHES=OFF they are compiled without it. Those with
# their own options of code generation cannot use it: SKIP_PRECOMPILE_HEADERS.
function(millrace_precompile target)
  if(MILLRACE_BATCHES)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable>
      <cstdint> <cstring> <deque> <filesystem> <functional> <future> <limits> <map> <memory> <mutex> <numeric>
      <optional> <set> <span> <string> <thread> <unordered_map> <utility> <variant> <vector>
      ${CMAKE_SOURCE_DIR}/src/base/format.h ${ARGN})
  endif()
endfunction()
