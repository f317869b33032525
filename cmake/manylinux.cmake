# A toolchain for libraries that run with glibc 2.28 and newer, as wheels of manylinux_2_28 must: zig's clang, from PyPI as `ziglang`.
# python/build-wheel uses it. Headers of zlib and libyaml are Debian's, and come after zig's own of the C library.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))"
  OUTPUT_VARIABLE zig OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(CMAKE_C_COMPILER ${zig} cc -target x86_64-linux-gnu.2.28)
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu")
# gcc's runtime, which is many small objects: zig's is one, and brings its own memcpy, which is slow, where any function of it is wanted.
execute_process(COMMAND gcc -print-libgcc-file-name OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(CMAKE_C_STANDARD_LIBRARIES_INIT ${runtime})
