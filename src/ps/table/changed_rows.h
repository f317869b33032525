/* changed_rows.h - which rows were touched since the last cut, and what they held at it; for the
 * files of the table only.
 *
 *     cut 3 ............ cut 4 ............ now          a cut: a moment between two pushes
 *         stamp 3            stamp 4
 *
 * A row bears the stamp of the time in which it was last touched. A push that meets a row with
 * another stamp than today's touches it for the first time since the cut: while the partition is
 * not written yet it copies the row aside, and where deltas are wanted it lists the row. Both cost
 * nothing but one look per run of keys while nobody wants to know (`watched`).
 *
 * Copies aside are bounded: tn_changes_wait lets a push wait for the writer before it takes locks.
 * From half of the bound on each push lets the writer take one more partition first, at most some
 * 20 ms long: the writer may run at a lower priority, and so never falls behind for good.
 * What stands per partition is guarded by the partition's lock; what is said to be set between
 * pushes is only written while nobody else is inside.
 */
#ifndef TN_PS_CHANGED_ROWS_H
#define TN_PS_CHANGED_ROWS_H

#include "base/core/error.h"
#include "ps/table/row.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct tn_table;

typedef struct tn_row_list {
    tn_row **row;
    uint32_t n, most;
    uint64_t bytes; /* of the rows */
} tn_row_list;

static inline void tn_row_list_clear(tn_row_list *l)
{
    l->n = 0;
    l->bytes = 0;
}

/* Rows, one behind the other. */
typedef struct tn_row_bytes {
    char *data;
    size_t size, most;
} tn_row_bytes;

typedef struct tn_part_changes {
    tn_row_list touched; /* when tracking: since the last cut */
    tn_row_list due;     /* for a delta: between the cut before and the one that is open */
    tn_row_bytes aside;  /* rows as they were at the cut */
    bool open;           /* the cut has not taken this partition yet */
    bool lost;           /* there was no memory for a copy */
} tn_part_changes;

typedef struct tn_changes {
    tn_part_changes *part; /* TN_PARTITIONS; NULL until somebody watches */
    uint32_t stamp;        /* of today; 0: nobody ever watched. This one .. */
    uint32_t before;       /* .. that of the time before the cut .. */
    uint32_t cuts;         /* .. cuts since all old stamps were taken off .. */
    bool tracking;         /* .. list what is touched .. */
    bool delta;            /* .. and of the open cut are set between pushes */
    _Atomic bool watched;
    _Atomic bool forgot; /* there was no memory for a list: it says nothing */
    _Atomic uint64_t aside;
    uint64_t aside_max; /* set between pushes */
    pthread_mutex_t lock;
    pthread_cond_t less; /* copies aside */
    bool open;           /* a cut is; lock */
} tn_changes;

void tn_changes_init(tn_changes *c);
void tn_changes_done(tn_changes *c);
void tn_changes_forget(tn_changes *c); /* all rows are gone; no cut is open */

/* Room for what is noted per partition. */
tn_status tn_changes_need(tn_changes *c, tn_error *err) TN_MUST_USE;

static inline bool tn_changes_watched(const tn_changes *c)
{
    return atomic_load_explicit(&c->watched, memory_order_relaxed);
}

/* Rows (NULL: none) of these keys, in locked partitions, are about to change. */
void tn_changes_note(struct tn_table *t, const uint64_t *key, tn_row *const *row, uint32_t n);

/* A row that was just created. */
void tn_changes_note_new(struct tn_table *t, uint64_t key, tn_row *row);

/* Before a push of n keys takes its locks. */
void tn_changes_wait(struct tn_table *t, uint32_t n);

/* Copies of `bytes` are not needed any more. */
void tn_changes_refund(tn_changes *c, uint64_t bytes);

/* Room for `size` more bytes; adds a row's bytes. False: no memory, nothing has changed. */
bool tn_row_bytes_reserve(tn_row_bytes *b, size_t size) TN_MUST_USE;
bool tn_row_bytes_add(tn_row_bytes *b, const tn_row *row, size_t size) TN_MUST_USE;

#endif
