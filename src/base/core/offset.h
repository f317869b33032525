/* offset.h - the place of a member in its struct, for the rows of tables. */
#pragma once

#include <stddef.h>

/* offsetof() that refuses to compile when the member is not of type `want`. */
#define TN_OFFSET(type, member, want)                                                              \
    (offsetof(type, member) + 0 * sizeof((__typeof__(want) *)0 == &((type *)0)->member))
