/* remote_object.h - what is known of an object behind a URI. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_remote_object {
    const char *uri;
    uint64_t size;     /* UINT64_MAX: not known */
    const char *tag;   /* of this version; NULL: not known */
    bool ranged;       /* it can be read from the middle; else `size` may be unknown */
    const char *first; /* its first bytes, `n_first` of them; NULL: it was not probed */
    uint32_t n_first;
} tn_remote_object;
