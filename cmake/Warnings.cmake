# tnet_warnings: what every target of ours is compiled with. They are errors where TNET_WERROR is on, as in the trees of
# .ci/run: another compiler than gcc 12 and clang 14 may warn of more, and shall build nevertheless.
option(TNET_WERROR "make warnings errors" OFF)
add_library(tnet_warnings INTERFACE)
target_compile_definitions(tnet_warnings INTERFACE _GNU_SOURCE)
if(TNET_WERROR)
  target_compile_options(tnet_warnings INTERFACE -Werror)
endif()
target_compile_options(tnet_warnings INTERFACE
  -Wall -Wextra -Wpedantic
  -Wconversion -Wsign-conversion -Wdouble-promotion
  -Wshadow -Wundef -Wvla -Walloca -Wredundant-decls
  -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wcast-qual -Wpointer-arith -Wwrite-strings
  -Wformat=2 -Wnull-dereference -Wswitch-enum -Wimplicit-fallthrough
  -fopenmp-simd -ffp-contract=off -fstack-protector-strong)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  target_compile_options(tnet_warnings INTERFACE
    -Wcast-align=strict -Wduplicated-cond -Wduplicated-branches -Wlogical-op)
else()
  target_compile_options(tnet_warnings INTERFACE
    -Wcast-align -Wcomma -Wextra-semi-stmt -Wunreachable-code
    -Wconditional-uninitialized -Wmissing-variable-declarations)
endif()
