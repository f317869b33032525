# Parts that TNet works without: folders of src/extra, each with its code, tests (test_*.c), fuzz targets (fuzz_*.c)
# and extra.cmake, which is
#
#   tnet_extra(vw DEPS io ROWS "io/format/formats.def: TN_FORMAT(vw)" "io/write/write_kinds.def: TN_WRITE_KIND(vw)")
#
# A row is for a list of another room; that room knows the extra by its row alone. TNET_EXTRAS has the names of those to build:
# `all`, `none` or some, as `vw;jsonl`. KITS are helpers of other rooms' tests, as `io/setup`; HEADERS are
# those of libraries that it loads. PROGRAM is a source with main, which becomes a program of its own (`tnet_serve`: tnet-serve);
# LIBS are libraries that it alone is linked with.
set(TNET_EXTRAS all CACHE STRING "parts of src/extra to build: all, none or names")

# Lists that take rows of extras, each with the source that includes it: `io/format/formats.def` includes
# `extra/io/format/formats.def`, which is made here.
set(tnet_lists
  io/format/formats.def io/format/format.c
  io/write/write_kinds.def io/write/writer.c
  io/source/remotes.def io/source/remote.c
  train/begin/weight_sources.def train/begin/import.c
  train/config/export_files.def train/config/export_files.c
  train/config/sections.def train/config/run.c
  train/eval/feed_kinds.def train/eval/node_files.c
  train/eval/fetch_kinds.def train/eval/node_files.c
  train/export/uploads.def train/export/export_target.c
  train/group/groups.def train/group/ranks.c
  train/report/forecast_kinds.def train/report/step_forecast.c
  train/run/modules.def train/run/module.c
  train/job/compare_kinds.def train/job/eval_job.c
  train/report/eval_pages.def train/report/eval_pages.c
  cli/data_tools.def cli/tnet_data.c)

function(tnet_extra name)
  cmake_parse_arguments(E "" "" "DEPS;ROWS;KITS;HEADERS;PROGRAM;LIBS" ${ARGN})
  if(NOT (TNET_EXTRAS STREQUAL all OR name IN_LIST TNET_EXTRAS))
    foreach(row ${E_ROWS}) # what it is called is refused by its name: src/config/absent.h
      string(REGEX REPLACE "^[^(]*\\(([^,)]*).*\\)$" "TN_ABSENT(\\1)" word "${row}")
      set_property(GLOBAL APPEND PROPERTY "absent words" "${word}")
    endforeach()
    return()
  endif()
  foreach(header ${E_HEADERS})
    find_path(DIR_OF_${header} ${header} REQUIRED)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/extra/${name}/*.c)
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/extra/${name}/test_*.c)
  file(GLOB targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/extra/${name}/fuzz_*.c)
  list(REMOVE_ITEM sources ${tests} ${targets})
  if(E_PROGRAM)
    set(main ${PROJECT_SOURCE_DIR}/src/extra/${name}/${E_PROGRAM}.c)
    list(REMOVE_ITEM sources ${main})
    set_property(GLOBAL APPEND PROPERTY "programs of extras" ${main})
    set_property(GLOBAL PROPERTY "library of ${E_PROGRAM}" tnet_extra_${name})
  endif()
  foreach(source ${sources})
    if(source MATCHES "/data_[a-z]+\\.c$") # a tool of tnet-data, which prints
      set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS TN_TRUSTED)
    endif()
  endforeach()
  tnet_library(extra_${name} "" "${sources}" "${E_DEPS}" ${E_LIBS})
  target_link_libraries(tnet_extra INTERFACE tnet_extra_${name})
  foreach(row ${E_ROWS})
    string(REGEX MATCH "^(([a-z]+)/[^:]*): (.*)$" row "${row}")
    if(NOT CMAKE_MATCH_1 IN_LIST tnet_lists)
      message(FATAL_ERROR "src/extra/${name}: '${CMAKE_MATCH_1}' takes no rows, see cmake/Extras.cmake")
    endif()
    set_property(GLOBAL APPEND PROPERTY "rows of ${CMAKE_MATCH_1}" "${CMAKE_MATCH_3}")
    target_link_libraries(tnet_${CMAKE_MATCH_2} PUBLIC tnet_extra_${name})
    set_property(GLOBAL APPEND PROPERTY "extras of ${CMAKE_MATCH_2}" tnet_extra_${name})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY "tests of extras" ${tests})
  set_property(GLOBAL APPEND PROPERTY "fuzz targets of extras" ${targets})
  foreach(kit ${E_KITS})
    set_property(GLOBAL APPEND PROPERTY "kits of extras" ${PROJECT_SOURCE_DIR}/test/${kit}.c)
  endforeach()
endfunction()

function(tnet_extras)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/extra/*/extra.cmake)
  add_library(tnet_extra INTERFACE)
  set(known all none)
  foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    list(APPEND known ${name})
    include(${file})
  endforeach()
  foreach(name ${TNET_EXTRAS})
    if(NOT name IN_LIST known)
      message(FATAL_ERROR "TNET_EXTRAS: there is no '${name}' in src/extra")
    endif()
  endforeach()
  get_property(rows GLOBAL PROPERTY "absent words")
  list(JOIN rows "\n" rows)
  file(CONFIGURE OUTPUT extra/config/absent.def CONTENT "/* absent.def - written by CMake. */\n@rows@\n" @ONLY)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/config/absent.c PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR})
  list(LENGTH tnet_lists n)
  math(EXPR last "${n} - 1")
  foreach(i RANGE 0 ${last} 2)
    math(EXPR j "${i} + 1")
    list(GET tnet_lists ${i} list)
    list(GET tnet_lists ${j} source)
    get_property(rows GLOBAL PROPERTY "rows of ${list}")
    list(JOIN rows "\n" rows)
    file(CONFIGURE OUTPUT extra/${list} CONTENT "/* ${list} - rows of src/extra, written by CMake. */\n@rows@\n" @ONLY)
    # This source alone: the compiler's cache knows all others in trees of any extras.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/${source} PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR})
  endforeach()
endfunction()

# One program, test_extra, of the tests of all extras that are built.
function(tnet_extra_tests)
  get_property(tests GLOBAL PROPERTY "tests of extras")
  get_property(kits GLOBAL PROPERTY "kits of extras")
  if(tests)
    list(REMOVE_DUPLICATES kits)
    tnet_test_program(extra "" ${tests})
    target_sources(test_extra PRIVATE ${kits})
  endif()
endfunction()
