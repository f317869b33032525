# A static library tnet_NAMEKIND of `sources`, with what all code of src is compiled by; `deps` are rooms, ARGN other libraries.
function(tnet_library name kind sources deps)
  set(target tnet_${name}${kind})
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  foreach(dep ${deps})
    target_link_libraries(${target} PUBLIC tnet_${dep})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARGN} PRIVATE tnet_warnings)
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -include base/core/banned.h)
  endif()
  # gcc 12 does not vectorise clones at -O2.
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
  if(TNET_COVERAGE AND NOT kind) # named constant: compiler caches serve other folders, too
    target_compile_options(${target} PRIVATE -fprofile-instr-generate=/dev/null -fcoverage-mapping)
  endif()
  # Three times: from a room by a row to an extra, from there to the room, and by another row once more.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON LINK_INTERFACE_MULTIPLICITY 3)
endfunction()

# tnet_module(nn DEPS base LIBS ZLIB::ZLIB DOUBLE)
#
# One static library per folder of src/. DOUBLE builds the same sources once more with
# tn_real = double, as tnet_<name>_f64, for the gradient tests.
function(tnet_module name)
  cmake_parse_arguments(M "DOUBLE" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
  list(FILTER sources EXCLUDE REGEX "/tnet_[a-z]+\\.c$") # programs
  set(kinds "")
  if(M_DOUBLE)
    set(kinds _f64)
  endif()
  foreach(kind "" ${kinds})
    if(NOT sources)
      add_library(tnet_${name}${kind} INTERFACE)
      continue()
    endif()
    tnet_library(${name} "${kind}" "${sources}" "${M_DEPS}" ${M_LIBS})
  endforeach()
  if(M_DOUBLE)
    target_compile_definitions(tnet_${name}_f64 PUBLIC TN_REAL_DOUBLE)
  endif()
endfunction()

# tnet_room_tests(io [F64 ops graph] [KITS ps/kit])
#
# All of test/<room>/ and test/support/ is one program, test_<room>: linking one for every file takes longer than compiling.
# `test_io reader` runs test/io/test_reader.c, which is the ctest io/reader; see test/support/test.h. The files named
# after F64 are built once more against the double engine, as test_<room>_f64. KITS are helpers of another room's tests.
function(tnet_room_tests room)
  cmake_parse_arguments(T "" "" "F64;KITS" ${ARGN})
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/${room}/test_*.c)
  tnet_test_program(${room} "" ${tests})
  foreach(kit ${T_KITS})
    target_sources(test_${room} PRIVATE ${PROJECT_SOURCE_DIR}/test/${kit}.c)
  endforeach()
  if(T_F64)
    list(TRANSFORM T_F64 REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/test/${room}/test_\\1.c")
    tnet_test_program(${room} _f64 ${T_F64})
  endif()
endfunction()

function(tnet_test_program room kind)
  set(target test_${room}${kind})
  file(GLOB helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/${room}/*.c)
  list(FILTER helpers EXCLUDE REGEX "/test_[^/]*\\.c$")
  list(APPEND helpers ${PROJECT_SOURCE_DIR}/test/support/runner.c) # main; tnet_test_support has the others
  foreach(source ${ARGN})
    string(REGEX REPLACE ".*/test_([^/]*)\\.c$" "\\1" file ${source})
    add_test(NAME ${room}/${file}${kind} COMMAND ${target} ${file} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${room}/${file}${kind} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${TNET_TEST_SECONDS})
    if(TNET_COVERAGE)
      set_tests_properties(${room}/${file}${kind} PROPERTIES
        ENVIRONMENT "LLVM_PROFILE_FILE=${CMAKE_BINARY_DIR}/coverage/%4m.profraw")
    endif()
  endforeach()
  add_executable(${target} ${ARGN} ${helpers})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/test)
  target_compile_options(${target} PRIVATE ${tnet_unoptimised})
  target_link_libraries(${target} PRIVATE tnet_${room}${kind} tnet_test_support tnet_warnings cmocka ${CMAKE_DL_LIBS})
endfunction()

# The presets set it back to 120; at night tests make all of their rounds, and get more.
set(TNET_TEST_SECONDS 120 CACHE STRING "seconds that a test of a room may take")

# Tests run once or twice for every time that they are compiled, and -O0 compiles in half of the time.
set(tnet_unoptimised -O0 -U_FORTIFY_SOURCE)

# test/support, compiled once for all rooms.
function(tnet_test_support)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/support/*.c)
  list(FILTER sources EXCLUDE REGEX "/(runner|fuzz_main|store_main)\\.c$")
  add_library(tnet_test_support OBJECT ${sources})
  target_include_directories(tnet_test_support PRIVATE ${PROJECT_SOURCE_DIR}/test)
  target_link_libraries(tnet_test_support PRIVATE tnet_base tnet_warnings)
  target_compile_options(tnet_test_support PRIVATE ${tnet_unoptimised})
endfunction()

# test/fuzz/fuzz_<name>.c: a libFuzzer target in the preset `fuzz`; elsewhere a program that replays the corpus as a test.
function(tnet_fuzz_targets)
  file(GLOB targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/fuzz/fuzz_*.c)
  get_property(more GLOBAL PROPERTY "fuzz targets of extras")
  list(APPEND targets ${more})
  tnet_without_cluster(targets)
  foreach(source ${targets})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test)
    target_link_libraries(${name} PRIVATE tnet_train tnet_warnings)
    if(source MATCHES "/src/extra/([a-z]+)/") # train knows those with rows alone
      target_link_libraries(${name} PRIVATE tnet_extra_${CMAKE_MATCH_1})
    endif()
    if(TNET_SANITIZE STREQUAL fuzzer)
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
      target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/support/fuzz_main.c)
      string(REGEX REPLACE "^fuzz_" "" corpus ${name})
      add_test(NAME fuzz/${corpus} COMMAND ${name} ${PROJECT_SOURCE_DIR}/test/fuzz/corpus/${corpus})
      set_tests_properties(fuzz/${corpus} PROPERTIES TIMEOUT ${TNET_TEST_SECONDS})
    endif()
  endforeach()
endfunction()

# End-to-end scripts: real programs, real files. TNET_BIN is where the programs are, TNET_SANITIZE what they are built with.
function(tnet_script name script)
  add_test(NAME e2e/${name} COMMAND ${script} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(e2e/${name} PROPERTIES ENVIRONMENT "TNET_BIN=${CMAKE_BINARY_DIR};TNET_SANITIZE=${TNET_SANITIZE}"
    SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

function(tnet_scripts)
  file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/e2e/*.sh)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    tnet_script(${name} ${script})
  endforeach()
  tnet_script(compose ${PROJECT_SOURCE_DIR}/test/compose/run.sh)
  set_tests_properties(e2e/compose PROPERTIES PROCESSORS 2)
endfunction()

# test/costs has the seconds of the tests that take longest, longest first. ctest starts them in that order. The scripts are
# dealt out to the labels fifth0 to fifth4, so that each fifth takes as long; what is not in the file of
# the tests of the lower rooms gets the label `quick`, for `make check`.
function(tnet_test_costs)
  set(file ${PROJECT_SOURCE_DIR}/test/costs)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} rows REGEX "^[a-z]")
  get_property(tests DIRECTORY PROPERTY TESTS)
  set(costly "")
  foreach(row ${rows})
    string(REGEX MATCH "^([^ ]+) +([0-9]+)$" row ${row})
    set(test ${CMAKE_MATCH_1})
    set(cost ${CMAKE_MATCH_2})
    if(test IN_LIST tests)
      set_tests_properties(${test} PROPERTIES COST ${cost})
      list(APPEND costly ${test})
    elseif(NOT test MATCHES "^(cluster|extra)/") # which may be of a part that is not built
      message(FATAL_ERROR "${file}: there is no test '${test}'")
    endif()
  endforeach()
  list(REMOVE_ITEM tests ${costly})
  set(n 0)
  foreach(test ${costly} ${tests})
    if(test MATCHES "^e2e/")
      math(EXPR fifth "${n} % 5")
      math(EXPR n "${n} + 1")
      set_property(TEST ${test} APPEND PROPERTY LABELS fifth${fifth})
    elseif(test MATCHES "^(base|config|dict|io|nn|ps|models|metrics|extra)/" AND NOT test MATCHES "_f64$" AND NOT test IN_LIST costly)
      set_property(TEST ${test} APPEND PROPERTY LABELS quick)
    endif()
  endforeach()
endfunction()
