/* banned.h - calls that do not compile. Force-included by the gcc build.
 *
 * Unsafe or stateful functions are banned everywhere. The heap, printing and
 * ending the process are banned but in the files that CMakeLists.txt trusts
 * with them: base/core/alloc.c, base/core/error.c and, in TNet, src/cli.
 *
 * The headers below come first because a poisoned name may not even be declared afterwards. That
 * hides a forgotten #include; the clang build, which does not include this file, finds it.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <mm_malloc.h> /* xmmintrin.h and its followers include it */
#endif

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok
#pragma GCC poison atoi atol atof gets localtime gmtime ctime asctime rand srand

#ifndef TN_TRUSTED
#pragma GCC poison malloc calloc realloc free aligned_alloc strdup strndup
#pragma GCC poison exit _exit abort printf vprintf puts putchar
#endif
