/* row_positions.h - where the rows of a keyset were when it was last pulled.
 *
 * A step pulls and pushes the same keyset, and rows never move: the push need not look its keys up
 * again. A hint is never trusted, the row it leads to is compared with the key, so a keyset that
 * has changed since only loses time. Kept for the last few keysets, known by their address; one
 * that another thread is using at the moment gets no hints. Any thread.
 */
#ifndef TN_PS_ROW_POSITIONS_H
#define TN_PS_ROW_POSITIONS_H

#include "base/core/error.h"
#include "base/keys/keyset.h"
#include "ps/table/row.h"

#include <pthread.h>
#include <stdbool.h>

enum { TN_HINTS_MAX = 16 };

typedef struct tn_hint {
    const tn_keyset *keys; /* NULL: free */
    uint32_t n;            /* keys that it was pulled with */
    uint32_t rows_max;
    tn_row **row; /* of each key */
    uint64_t age; /* of the last use */
    bool busy;    /* between tn_hints_.. and tn_hints_done */
} tn_hint;

typedef struct tn_hints {
    pthread_mutex_t lock; /* guards all but the rows of a busy hint, which are its user's */
    uint64_t age;
    tn_hint hint[TN_HINTS_MAX];
} tn_hints;

void tn_hints_init(tn_hints *h);
void tn_hints_done(tn_hints *h);
void tn_hints_forget(tn_hints *h); /* the rows are gone; nobody else inside */

/* For a pull, which will set every row: *out is NULL if there is none to be had. */
tn_status tn_hints_write(tn_hints *h, const tn_keyset *keys, tn_hint **out,
                         tn_error *err) TN_MUST_USE;

/* For a push, which only reads. NULL: none. */
tn_hint *tn_hints_read(tn_hints *h, const tn_keyset *keys);

/* After either; `good`: every row is set. NULL is fine. */
void tn_hints_release(tn_hints *h, tn_hint *hint, bool good);

#endif
