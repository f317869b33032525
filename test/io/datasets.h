/* datasets.h - data sets from a piece of YAML, files and conversions, for the tests of the data
 * tools. */
#pragma once

#include "base/core/arena.h"
#include "config/diag.h"
#include "io/read/dataset.h"
#include "io/write/convert.h"

typedef struct datasets {
    char dir[256]; /* of this test */
    tn_arena *arena;
    tn_diag diag;
    tn_binder binder;
    tn_team *team;
    tn_error err; /* of the last call that failed */
} datasets;

void datasets_open(datasets *d, uint32_t threads);
void datasets_close(datasets *d);

/* `yaml` as the sections data and slots; fails the test when they do not fit together. */
tn_dataset *datasets_bind(datasets *d, const char *yaml, uint32_t flags);

/* The same rows in another file; `yaml` is a map as the section data. NULL: d->err says why. */
tn_dataset *datasets_target(datasets *d, const tn_dataset *from, const char *yaml, uint32_t flags);

/* Files of the test's folder. The text lasts as long as `d`. */
const char *datasets_path(datasets *d, const char *name);
void datasets_write(datasets *d, const char *name, const char *bytes, size_t size);
const tn_text *datasets_read(datasets *d, const char *name);

/* Converts `in` to `out`, both in the test's folder. */
tn_status datasets_convert(datasets *d, const tn_dataset *from, const char *in,
                           const tn_dataset *to, const char *out, uint32_t flags);

/* What one line of `from` becomes in `to`; "" when it fails, and d->err says why. */
const char *datasets_line(datasets *d, const char *from, const char *line, const char *to,
                          uint32_t flags);

/* Fails allocation 1, 2, 3, .. of one attempt, until it goes well. The file `in` of `d` has two
 * rows of columns id, label, w, a, t and p, which are given as they are read and as tfrecord.
 * Nothing may be left over but `in` and one output. */
typedef tn_status datasets_attempt(datasets *d, const tn_dataset *from, const tn_dataset *to);
void datasets_torture(datasets_attempt *try_it);
