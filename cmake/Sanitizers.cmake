# -DTNET_SANITIZE=address (with undefined), thread or fuzzer (with address; clang); off when empty.
set(TNET_SANITIZE "" CACHE STRING "address, thread, fuzzer or nothing")
# -DTNET_CLONES=OFF: one version of each hot loop (TN_COUNTED), for instruction
# counts that do not depend on the machine. Always off under ThreadSanitizer, which crashes
# at start-up otherwise.
option(TNET_CLONES "compile hot loops for several instruction sets" ON)
# -DTNET_COVERAGE=ON: counts which lines of src the tests run, with clang alone; .ci/check-coverage reads the counts. A process
# writes them when it ends, to the file that LLVM_PROFILE_FILE names, which ctest sets for the tests of the rooms, or nowhere.
option(TNET_COVERAGE "count the lines of src that run (clang)" OFF)

if(TNET_SANITIZE STREQUAL address OR TNET_SANITIZE STREQUAL fuzzer)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  # Those checks make minutes of seconds where clang unrolls these loops; the address sanitizer sees what they touch.
  file(GLOB kernels ${PROJECT_SOURCE_DIR}/src/nn/gemm/kernel_*.c)
  set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
  if(TNET_SANITIZE STREQUAL fuzzer)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(TNET_SANITIZE STREQUAL thread)
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()
if(TNET_SANITIZE)
  add_compile_definitions(TN_SANITIZED)
  if(CMAKE_C_COMPILER_ID MATCHES Clang)
    add_compile_options(-Wno-pass-failed) # an instrumented loop cannot be vectorised
  endif()
else()
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(-Wl,-z,relro,-z,now)
endif()
if(TNET_COVERAGE)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TNET_COVERAGE=ON needs clang")
  endif()
  add_link_options(-fprofile-instr-generate) # src is compiled with it: TnetModule.cmake
endif()
if(NOT TNET_CLONES)
  add_compile_definitions(TN_NO_CLONES TN_COUNTED)
elseif(TNET_SANITIZE STREQUAL thread OR TNET_SANITIZE STREQUAL fuzzer)
  add_compile_definitions(TN_NO_CLONES)
endif()
