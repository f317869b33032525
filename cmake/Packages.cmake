# Debian packages by CPack, in a tree with -DTNET_DEBIAN=ON and the prefix /usr, which .ci/packages makes; docs/install.md names them.
# A library, its headers, the programs and the Python package are a package each, as Debian's policy has it (chapter 8).
if(NOT TNET_DEBIAN)
  return()
endif()
set(version ${PROJECT_VERSION}-1)

# tnet_debian(programs tnet SECTION science DEPENDS .. RECOMMENDS .. SUMMARY .. TEXT ..)
macro(tnet_debian component package)
  cmake_parse_arguments(D "" "SECTION;DEPENDS;RECOMMENDS;SUMMARY;TEXT;ARCHITECTURE" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${D_SECTION})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${D_DEPENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${D_RECOMMENDS}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${D_SUMMARY}\n${D_TEXT}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  if(D_ARCHITECTURE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_ARCHITECTURE ${D_ARCHITECTURE})
  endif()
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  install(FILES ${CMAKE_BINARY_DIR}/debian/copyright ${CMAKE_BINARY_DIR}/debian/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endmacro()

set(about "TNet learns from logs which ads, items or links people click, and scores new\nones, on CPUs alone.")
set(loaded "libopenblas0-pthread | libopenblas0, libisal2, libzstd1, liblz4-1, libsnappy1v5, libcurl4")
tnet_debian(libraries libtnet1 SECTION libs RECOMMENDS "${loaded}" SUMMARY "models of click-through rates: shared libraries"
  TEXT "${about}\n\nThis package has the library that scores and the one that trains.")
tnet_debian(devel libtnet-dev SECTION libdevel DEPENDS "libtnet1 (= ${version})" SUMMARY "models of click-through rates: headers and static library"
  TEXT "${about}\n\nThis package has what compilers, pkg-config and CMake want.")
tnet_debian(programs tnet SECTION science RECOMMENDS "${loaded}, libzmq5" SUMMARY "trains, evaluates and exports models of click-through rates"
  TEXT "${about}\n\nThis package has the programs.")
if(EXISTS ${PROJECT_SOURCE_DIR}/python/tnet/__init__.py)
  tnet_debian(python3 python3-tnet SECTION python DEPENDS "python3 (>= 3.9), python3-numpy, libtnet1 (= ${version})" ARCHITECTURE all
    SUMMARY "models of click-through rates: Python package" TEXT "${about}\n\nThis package has the module tnet.")
  file(STRINGS python/pyproject.toml summary REGEX "^description = ")
  string(REGEX REPLACE "^description = \"(.*)\"$" "\\1" summary "${summary}")
  file(WRITE ${CMAKE_BINARY_DIR}/debian/METADATA "Metadata-Version: 2.1\nName: tnet-ctr\nVersion: ${PROJECT_VERSION}\nSummary: ${summary}\n\
License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy\nProvides-Extra: sklearn\nRequires-Dist: scikit-learn>=1.6; extra == 'sklearn'\n")
  file(WRITE ${CMAKE_BINARY_DIR}/debian/top_level.txt "tnet\n")
  install(FILES ${CMAKE_BINARY_DIR}/debian/METADATA ${CMAKE_BINARY_DIR}/debian/top_level.txt
    DESTINATION lib/python3/dist-packages/tnet_ctr-${PROJECT_VERSION}.dist-info COMPONENT python3)
  install(DIRECTORY python/tnet DESTINATION lib/python3/dist-packages COMPONENT python3 FILES_MATCHING PATTERN "*.py" PATTERN py.typed
    PATTERN __pycache__ EXCLUDE)
endif()
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
# CPack's own shlibs come with scripts that call ldconfig, where policy wants a trigger.
set(control ${CMAKE_BINARY_DIR}/debian)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA ${control}/symbols ${control}/shlibs ${control}/triggers)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGE_NAME tnet)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${TNET_MAINTAINER}")
set(CPACK_PACKAGE_VENDOR TNet)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/debs)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
