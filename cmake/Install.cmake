# What `cmake --install TREE --prefix P` puts where, by GNUInstallDirs; docs/install.md tells users. Components, which become packages:
#
#   programs   tnet-*, manual pages, completions of bash, zsh and fish, the schema of configurations
#   libraries  libtnet.so.1, and libtnet-train.so.1 where it is built
#   devel      headers and their manual pages, names for the linker, libtnet.a, pkg-config files, the CMake package `tnet`
#   python     both libraries once more in tnet/, for wheels alone: `cmake --install TREE --component python`
#
# Completions and the schema are what the programs print, so they are made when the programs are.
option(TNET_DEBIAN "install what Debian packages hold: cmake/Packages.cmake" OFF)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# tnet_install_page(PAGE LIST SECTION COMPONENT): a page of docs/man, packed as Debian has it; LIST gets what has to be made for it.
function(tnet_install_page name list section component)
  set(page ${PROJECT_SOURCE_DIR}/docs/man/${name}.${section})
  if(TNET_DEBIAN)
    set(packed ${CMAKE_BINARY_DIR}/debian/${name}.${section}.gz)
    add_custom_command(OUTPUT ${packed} COMMAND gzip -9nc ${page} > ${packed} DEPENDS ${page} COMMENT "Packing ${name}.${section}")
    set(page ${packed})
    set(${list} ${${list}} ${packed} PARENT_SCOPE)
  endif()
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()

# tnet_install_programs(tnet-train ..)
function(tnet_install_programs)
  set(to ${CMAKE_BINARY_DIR}/completions)
  set(made ${CMAKE_BINARY_DIR}/tnet.schema.json)
  set(print ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/cmake/print.cmake)
  foreach(program ${ARGN})
    set(files ${to}/${program} ${to}/_${program} ${to}/${program}.fish)
    add_custom_command(OUTPUT ${files}
      COMMAND ${print} ${to}/${program} $<TARGET_FILE:${program}> --completion=bash
      COMMAND ${print} ${to}/_${program} $<TARGET_FILE:${program}> --completion=zsh
      COMMAND ${print} ${to}/${program}.fish $<TARGET_FILE:${program}> --completion=fish
      DEPENDS ${program} ${PROJECT_SOURCE_DIR}/cmake/print.cmake COMMENT "Printing completions of ${program}" VERBATIM)
    list(APPEND made ${files})
    install(FILES ${to}/${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT programs)
    install(FILES ${to}/_${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${tnet_zsh} COMPONENT programs)
    install(FILES ${to}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT programs)
    tnet_install_page(${program} made 1 programs)
  endforeach()
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/tnet.schema.json
    COMMAND ${print} ${CMAKE_BINARY_DIR}/tnet.schema.json $<TARGET_FILE:tnet-train> --schema
    DEPENDS tnet-train ${PROJECT_SOURCE_DIR}/cmake/print.cmake COMMENT "Printing the schema of configurations" VERBATIM)
  foreach(header tnet tnet_train)
    tnet_install_page(${header} made 3 devel)
  endforeach()
  add_custom_target(tnet_completions ALL DEPENDS ${made})
  install(TARGETS ${ARGN} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
  install(FILES ${CMAKE_BINARY_DIR}/tnet.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tnet COMPONENT programs)
  set(license LICENSE)
  if(TNET_DEBIAN)
    set(license "") # Debian has it in /usr/share/common-licenses
  endif()
  install(FILES README.md ${license} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)
endfunction()

# tnet_install_library(tnet NAME tnet HEADER src/serve/tnet.h): with NAME.pc, and the target tnet::EXPORT of the CMake package.
function(tnet_install_library target)
  cmake_parse_arguments(L "" "NAME;EXPORT;HEADER" "" ${ARGN})
  set_target_properties(${target} PROPERTIES VERSION 1 SOVERSION 1 EXPORT_NAME ${L_EXPORT} PUBLIC_HEADER "")
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${target} EXPORT tnetTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries NAMELINK_COMPONENT devel)
  install(FILES ${L_HEADER} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel)
  install(TARGETS ${target} LIBRARY DESTINATION tnet COMPONENT python NAMELINK_SKIP EXCLUDE_FROM_ALL)
  configure_file(cmake/${L_NAME}.pc.in pkgconfig/${L_NAME}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/pkgconfig/${L_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
endfunction()

# Debian's zsh looks for other packages' functions where its own maintainers say; everybody else's zsh in site-functions.
set(tnet_zsh site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
  set(tnet_zsh vendor-completions)
endif()
# From the folder of the .pc files to the prefix, so that what is installed can be moved.
set(up /${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH up ${up} /)
string(REGEX REPLACE "/$" "" tnet_up "${up}")

tnet_install_programs(${tnet_programs})
tnet_install_library(tnet NAME tnet EXPORT tnet HEADER src/serve/tnet.h)
if(TARGET tnet_training)
  tnet_install_library(tnet_training NAME tnet-train EXPORT train HEADER src/api/tnet_train.h)
endif()
if(TARGET tnet_archive)
  install(FILES ${CMAKE_BINARY_DIR}/libtnet.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tnet)
install(EXPORT tnetTargets NAMESPACE tnet:: DESTINATION ${package} COMPONENT devel)
configure_package_config_file(cmake/tnetConfig.cmake.in tnetConfig.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(tnetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tnetConfig.cmake ${CMAKE_BINARY_DIR}/tnetConfigVersion.cmake DESTINATION ${package} COMPONENT devel)
