/* changed_rows.h - rows that change, while a cut of the table is read or deltas are wanted
 * (table_snapshot.c); for the files of the table only.
 *
 *     cut 3 ............ cut 4 ............ now          a cut: a moment between two pushes
 *         stamp 3            stamp 4
 *
 * A row has the stamp of the time of its last touch. A push that meets another stamp than the
 * present one touches the row for the first time since the cut. It copies the row aside while
 * the partition is not written yet, and lists it while deltas are wanted. While neither is needed
 * (`watched` is false) this costs one look per run of keys.
 *
 * Copies aside are bounded: tn_changed_rows_wait makes a push wait for the writer before it takes
 * locks. From half of the bound on, each push lets the writer finish one more partition first, for
 * at most some 20 ms: the writer may run at a lower priority and would never catch up.
 * The partition's lock guards the fields of a partition; fields that are set between pushes are
 * written only while no other thread is inside.
 */
#pragma once

#include "ps/table/row.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct tn_table tn_table; /* ps/table/table.h */

/* Rows in a line, or pointers to rows. */
typedef struct tn_row_bytes {
    char *data;
    size_t size, most;
} tn_row_bytes;

typedef struct tn_row_list {
    tn_row_bytes pointers;
    uint64_t bytes; /* bytes that the rows take */
} tn_row_list;

typedef struct tn_partition_changes {
    tn_row_list touched;   /* when tracking: since the last cut */
    tn_row_list due;       /* for a delta: between the cut before and the one that is open */
    tn_row_bytes gone;     /* when tracking: headers of rows that were removed since the last cut */
    tn_row_bytes gone_due; /* for a delta, as due */
    tn_row_bytes aside;    /* rows as they were at the cut */
    tn_row_bytes lines;    /* lines of its filter before each count: number, bytes */
    bool open;             /* the cut has not taken this partition yet */
    bool filter_open;      /* nor its filter */
    bool lost;             /* there was no memory for a copy */
    bool lines_lost;       /* likewise */
} tn_partition_changes;

typedef struct tn_changed_rows {
    tn_partition_changes *part; /* TN_PARTITIONS; NULL until the first cut or tracking */
    uint32_t stamp;             /* the present one; 0: before the first cut or tracking */
    uint32_t before;            /* the stamp of the time before the cut */
    uint32_t cuts;              /* since all old stamps were taken off */
    bool tracking;              /* rows that are touched are listed */
    bool delta;                 /* the open cut is one; these five are set between pushes */
    _Atomic bool watched;       /* a cut is open, or tracking is on */
    _Atomic bool forgot;        /* there was no memory for a list: lists are incomplete */
    _Atomic uint64_t aside;
    uint64_t aside_max;   /* set between pushes */
    uint64_t aside_limit; /* a bound of aside_max, if rows leave a full table; 0: none */
    pthread_mutex_t lock;
    pthread_cond_t less; /* copies aside */
    bool open;           /* a cut is open; guarded by lock */
} tn_changed_rows;

enum { TN_KEPT_LINE = 4 + 64 }; /* bytes of a line of a filter that is kept aside */

void tn_changed_rows_init(tn_changed_rows *c);
void tn_changed_rows_done(tn_changed_rows *c);
void tn_changed_rows_forget(tn_changed_rows *c); /* all rows are gone; no cut is open */

static inline bool tn_changed_rows_watched(const tn_changed_rows *c)
{
    return atomic_load_explicit(&c->watched, memory_order_relaxed);
}

/* While changes are watched: a row of `size` bytes, in a locked partition, was just created or is
 * about to change; its stamp is not the present one. */
void tn_changed_rows_note(tn_changed_rows *c, uint64_t key, tn_row *row, uint32_t size, bool fresh);

/* While changes are watched: a row of `size` bytes, in a locked partition, is about to be removed,
 * and `moved`, when it is another one, to take its place. After all removals of a partition, relist
 * lists the rows that were touched since the cut by their new places. */
void tn_changed_rows_remove(tn_changed_rows *c, uint32_t partition, const tn_row *row,
                            const tn_row *moved, uint32_t size);
void tn_changed_rows_relist(tn_table *t, uint32_t partition);

/* Lists the row that took the place of a removed one, if no relist follows. */
void tn_changed_rows_moved(tn_changed_rows *c, uint32_t partition, const tn_row *row,
                           uint32_t size);

/* While changes are watched: a line of a filter, in a locked partition, is about to change. */
void tn_changed_rows_line(tn_changed_rows *c, uint32_t partition, uint32_t number,
                          const uint8_t *line);

/* Before a push takes its locks: waits until copies of `need` bytes have room. UINT64_MAX, for a
 * push that touches every row: until the cut is done. */
void tn_changed_rows_wait(tn_changed_rows *c, uint64_t need);
