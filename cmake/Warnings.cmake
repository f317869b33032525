# tnet_warnings: what every target of ours is compiled with. All of them are errors.
add_library(tnet_warnings INTERFACE)
target_compile_definitions(tnet_warnings INTERFACE _GNU_SOURCE)
target_compile_options(tnet_warnings INTERFACE
  -Werror -Wall -Wextra -Wpedantic
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
