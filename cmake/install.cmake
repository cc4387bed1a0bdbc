# What `cmake --install` puts into a prefix: the binary, the public headers, and libmillrace.so for
# find_package(millrace). The shared library carries everything it needs, so that a consumer finds no other
# package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(millrace_shared SHARED $<TARGET_OBJECTS:millrace_core>)
set_target_properties(millrace_shared PROPERTIES
  OUTPUT_NAME millrace EXPORT_NAME millrace VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINKER_LANGUAGE CXX INSTALL_RPATH "$ORIGIN/millrace")
millrace_link_dependencies(millrace_shared)
# A program may have an LLVM of its own and would share what both export: nothing of archives is exported,
# nor what our own objects have of its templates and inline functions.
file(WRITE ${CMAKE_BINARY_DIR}/millrace.map "{ local: *llvm*; };\n")
target_link_options(millrace_shared PRIVATE
  LINKER:--exclude-libs,ALL,--version-script=${CMAKE_BINARY_DIR}/millrace.map)
target_compile_features(millrace_shared INTERFACE cxx_std_20)
target_include_directories(millrace_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS millrace_shared EXPORT millraceTargets)
install(DIRECTORY include/millrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT millraceTargets NAMESPACE millrace:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
# oneDNN comes from a wheel, not from the system: its library goes along.
install(FILES $<TARGET_SONAME_FILE:DNNL::dnnl> DESTINATION ${CMAKE_INSTALL_LIBDIR}/millrace)
# So does Arrow, and the module that is loaded with it.
install(TARGETS millrace_arrow LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/millrace)
install(FILES $<TARGET_FILE:Arrow::arrow> $<TARGET_FILE:Arrow::parquet>
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/millrace)

# The licences of what is shipped go along.
set(licenses ${CMAKE_INSTALL_DATADIR}/doc/millrace)
install(FILES LICENSE THIRD_PARTY.md DESTINATION ${licenses})
foreach(library onednn_cpu_gomp pyarrow)
  file(GLOB texts ${MILLRACE_VENV}/lib/python3*/site-packages/${library}-*.dist-info/LICENSE.txt
    ${MILLRACE_VENV}/lib/python3*/site-packages/${library}-*.dist-info/licenses/*.txt)
  install(FILES ${texts} DESTINATION ${licenses}/licenses/${library})
endforeach()
# Xbyak and others that oneDNN has compiled in.
install(FILES ${MILLRACE_VENV}/share/doc/onednn/THIRD-PARTY-PROGRAMS DESTINATION ${licenses}/licenses/onednn_cpu_gomp
  OPTIONAL)
# What is compiled in, where the distribution keeps its licence.
foreach(package llvm-19-dev libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libboost-dev)
  install(FILES /usr/share/doc/${package}/copyright DESTINATION ${licenses}/licenses/${package} OPTIONAL)
endforeach()

file(WRITE ${CMAKE_BINARY_DIR}/millraceConfig.cmake
  "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\ninclude(\${CMAKE_CURRENT_LIST_DIR}/millraceTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/millraceConfig.cmake ${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)

# For programs in C, and whoever asks pkg-config; the prefix is wherever the file lies.
file(WRITE ${CMAKE_BINARY_DIR}/millrace.pc
  "prefix=\${pcfiledir}/../..\nName: millrace\nDescription: compiler, trainer and inference engine for neural networks\n"
  "Version: ${PROJECT_VERSION}\nCflags: -I\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}\n"
  "Libs: -L\${prefix}/${CMAKE_INSTALL_LIBDIR} -lmillrace\n")
install(FILES ${CMAKE_BINARY_DIR}/millrace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET millrace)
  set_target_properties(millrace PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/millrace")
  install(TARGETS millrace)
endif()
