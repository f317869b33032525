/* row_positions.h - where the rows of a keyset were when it was last pulled (lookup.c); for the
 * files of the table only.
 *
 * A step pulls and pushes the same keyset, and rows seldom move: the push need not look its keys up
 * again. A position is a hint that is never trusted: the row it leads to is compared with the key,
 * so a keyset that has changed since only loses time. Positions are kept for the last few keysets,
 * known by their address; a keyset whose positions another thread is using gets none. Any thread.
 */
#pragma once

#include "base/core/error.h"
#include "ps/table/row.h"

#include <pthread.h>

typedef struct tn_keyset tn_keyset; /* base/keys/keyset.h */

enum { TN_ROW_POSITIONS_MAX = 16 };

typedef struct tn_keyset_rows {
    const tn_keyset *keys; /* NULL: free */
    uint32_t n;            /* keys that it was pulled with */
    uint32_t rows_max;
    tn_row **row; /* one for each key; NULL: it had none */
    uint64_t age; /* when it was last used */
    bool busy;    /* from write or read to release */
} tn_keyset_rows;

typedef struct tn_row_positions {
    pthread_mutex_t lock; /* guards all but the rows of a busy hint, which are its user's */
    uint64_t age;
    tn_keyset_rows hint[TN_ROW_POSITIONS_MAX];
} tn_row_positions;

void tn_row_positions_init(tn_row_positions *h);
void tn_row_positions_done(tn_row_positions *h);
void tn_row_positions_forget(tn_row_positions *h); /* the rows are gone; no other thread inside */

/* For a pull, which will set every row. *out is NULL when all are busy. */
tn_status tn_row_positions_write(tn_row_positions *h, const tn_keyset *keys, tn_keyset_rows **out,
                                 tn_error *err) TN_MUST_USE;

/* For a push, which only reads. NULL: none. */
tn_keyset_rows *tn_row_positions_read(tn_row_positions *h, const tn_keyset *keys);

/* After either; `good`: every row is set. NULL is fine. */
void tn_row_positions_release(tn_row_positions *h, tn_keyset_rows *hint, bool good);
