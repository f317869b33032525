/* onetable.h - a table of one segment "deep" of four floats, with its keys: for tests of the table.
 */
#pragma once

#include "kit.h"

enum { DIM = 4 };

/* First values are U(-.1, .1). */
typedef struct onetable {
    tn_arena *arena;
    kit_model *m;
    tn_table *t;
} onetable;

onetable onetable_begin(const char *optim, const char *options, uint64_t seed);
void onetable_end(onetable *f);

kit_keys *keys_of(onetable *f, const uint64_t *key, uint32_t n);

/* `n` different keys, spread as the localizer's are. */
uint64_t *many_keys(onetable *f, uint32_t n, uint64_t salt);

/* Zeros, as many as the rows of the keys have. */
float *floats(onetable *f, const kit_keys *k);
