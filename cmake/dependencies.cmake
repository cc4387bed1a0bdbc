# Every library Millrace links or loads, in one place. deps/ lists the packages they come from.
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CURL REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(GIF REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(FREETYPE REQUIRED IMPORTED_TARGET freetype2)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
pkg_check_modules(TIFF REQUIRED IMPORTED_TARGET libtiff-4)
pkg_check_modules(SNDFILE REQUIRED IMPORTED_TARGET sndfile)
pkg_check_modules(SOXR REQUIRED IMPORTED_TARGET soxr)
pkg_check_modules(KISSFFT REQUIRED IMPORTED_TARGET kissfft-float)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc icu-i18n)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
find_package(BZip2 REQUIRED)
find_package(LibLZMA REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
find_library(XGBOOST_LIBRARY xgboost REQUIRED)  # loaded when it is needed (src/nn/models/boosted_round.cpp)
find_package(LLVM 19.1 REQUIRED CONFIG PATHS /usr/lib/llvm-19/cmake NO_DEFAULT_PATH)
# The parts that are needed, compiled in: loading all of libLLVM takes half of the time of `millrace --help`.
llvm_map_components_to_libnames(MILLRACE_LLVM orcjit nativecodegen)

# oneDNN comes from PyPI wheels inside the project's virtual environment.
set(MILLRACE_VENV "${CMAKE_SOURCE_DIR}/.venv" CACHE PATH "Virtual environment that holds oneDNN and Arrow")
find_package(dnnl 3.2 REQUIRED CONFIG PATHS ${MILLRACE_VENV} NO_DEFAULT_PATH)

# Arrow's C++ libraries come inside pyarrow. Only the module src/data/formats/arrow links them.
file(GLOB MILLRACE_PYARROW ${MILLRACE_VENV}/lib/python3*/site-packages/pyarrow)
if(NOT EXISTS "${MILLRACE_PYARROW}/libparquet.so.2600")
  message(FATAL_ERROR "pyarrow 26 is not in ${MILLRACE_VENV}: ./dev setup installs it")
endif()
foreach(library arrow parquet)
  add_library(Arrow::${library} SHARED IMPORTED)
  set_target_properties(Arrow::${library} PROPERTIES
    IMPORTED_LOCATION "${MILLRACE_PYARROW}/lib${library}.so.2600"
    INTERFACE_INCLUDE_DIRECTORIES "${MILLRACE_PYARROW}/include")
endforeach()

function(millrace_link_dependencies target)
  target_link_libraries(${target}
    PUBLIC Threads::Threads
    PRIVATE fmt::fmt CURL::libcurl JPEG::JPEG PNG::PNG GIF::GIF PkgConfig::WEBP PkgConfig::TIFF ZLIB::ZLIB
            BZip2::BZip2 LibLZMA::LibLZMA nlohmann_json::nlohmann_json PkgConfig::FREETYPE PkgConfig::HWLOC
            PkgConfig::ICU PkgConfig::ZSTD PkgConfig::XXHASH PkgConfig::CRYPTO PkgConfig::SNDFILE PkgConfig::SOXR
            PkgConfig::KISSFFT PkgConfig::SQLITE DNNL::dnnl gomp)
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${LLVM_DEFINITIONS})
  target_link_libraries(${target} PRIVATE ${MILLRACE_LLVM})
  target_link_options(${target} PUBLIC $<BUILD_INTERFACE:LINKER:--gc-sections,--as-needed>)
endfunction()
