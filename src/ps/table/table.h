/* table.h - the unbounded table of rows: key -> record, by partition.
 *
 *     partition p   lock | index: key -> row number | slab: rows
 *
 *     row           key group last_seen show click         | wide: w, z, n | deep: w[8], n |
 *                   24 bytes                                 per segment: weights, then each state
 *
 * One probe per key and step serves all segments. A partition (base/keys/keyset.h) is the unit of
 * locking, of parallel work (the team gets tiles of partitions) and of snapshots. Rows are
 * created by training pulls only; their first values are a pure function of (seed, segment, key).
 *
 * Where segments wait (base/keys/record.h, tn_admission) a key begins with a row that has the other
 * segments alone, or, where its count is kept in a filter, with none. It has a whole row from the
 * first pull on that finds enough occurrences in earlier steps. Until then these segments read as
 * zeros, their gradients are dropped, and counts do not decay.
 * All functions may run on several threads at once unless said otherwise.
 */
#pragma once

#include "base/keys/record.h"
#include "base/thread/range.h"
#include "ps/optim/optim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_keyset tn_keyset;           /* base/keys/keyset.h */
typedef struct tn_push tn_push;               /* ps/optim/rule.h */
typedef struct tn_row_options tn_row_options; /* ps/table/row_policy.h */
typedef struct tn_rules tn_rules;             /* ps/optim/rule.h */
typedef struct tn_team tn_team;               /* base/thread/team.h */

typedef struct tn_table tn_table;

typedef struct tn_table_opts {
    const tn_rules *rules; /* must outlive the table */
    uint64_t seed;
    bool huge_pages;
    /* Pulls and peeks read counts as of this day. It must outlive the table, changes only between
     * them, and may be NULL if no record has counts. */
    const uint32_t *day;
} tn_table_opts;

tn_status tn_table_new(tn_table **out, const tn_table_opts *opts, tn_error *err) TN_MUST_USE;
void tn_table_free(tn_table *t); /* NULL is fine */

/* rows[keys->at[n]] := the weights of `keys`, then the counts that a net reads, as they are before
 * the push of this batch. Missing rows are created. After a failure some may exist, and `rows` is
 * partly written. TN_E_LIMIT, TN_E_MEMORY. */
tn_status tn_table_pull(tn_table *t, tn_team *team, const tn_keyset *keys, float *rows,
                        tn_error *err) TN_MUST_USE;

/* The same without creating: a missing row reads as zeros, and missing[i] says so (NULL: not
 * wanted), or as its first values where missing_init[group], and is not missing then. */
void tn_table_peek(tn_table *t, tn_team *team, const tn_keyset *keys, const bool *missing_init,
                   float *rows, bool *missing);

/* Squared L2 norm of the rows' gradients after scale, L2 and value and row clip: the part of the
 * global clip that rows bring. In double, in keyset order. Rows of `l2_mode: dense` outside the
 * batch are included; a key without a row counts as if its weights were 0. */
double tn_table_norm2(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                      const tn_push *push);

/* Applies grads (same layout as rows) times `clip`, adds show and click, sets last_seen; then,
 * where a rule says l2_mode: dense, decays the rows that are not in the batch. A key without a row
 * is left out. */
void tn_table_push(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                   const tn_push *push, double clip);

/* The same where no global clip waits for the norm: returns what tn_table_norm2 says before it. Not
 * finite: a gradient is not, and nothing was changed; or L2, scale or a weight has made it so, and
 * rows were. `finite`: all gradients are known to be, and are not looked through. */
double tn_table_push_whole(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                           const tn_push *push, bool finite);

/* The step that the next pull belongs to: what a push says plus 1, unless this is called. Draws of
 * admission depend on it. */
void tn_table_set_step(tn_table *t, uint64_t step);

uint64_t tn_table_rows(const tn_table *t);  /* Counts rows, with those that wait. */
uint64_t tn_table_bytes(const tn_table *t); /* Counts the bytes of slabs and indexes. */

/* Counts what has become of rows since the table was made. */
typedef struct tn_table_totals {
    uint64_t created;  /* by pulls, whole or waiting */
    uint64_t made;     /* the same, and rows that became whole */
    uint64_t admitted; /* whole rows that were created or became so */
    uint64_t expired;  /* rows that a sweep removed */
    uint64_t evicted;  /* rows that left a full table */
    uint64_t aged;     /* times that a partition's key filter aged */
} tn_table_totals;
tn_table_totals tn_table_total(const tn_table *t);

/* ---- a limit ---- */

/* A limit of tn_table_bytes and copies of rows aside together; 0: none. Rows of a checkpoint that
 * do not fit are TN_E_MEMORY. Training creates rows beyond it: the trainer checks between two steps
 * whether the next one fits. Call it before any other function. */
void tn_table_set_limit(tn_table *t, uint64_t bytes);
uint64_t tn_table_limit(const tn_table *t);

/* About the most by which tn_table_bytes grows when these partitions get so many rows more, by
 * chance some more than others: room comes in chunks, and index blocks of one age split at about
 * the same time. growth_most is an upper bound that does not depend on the present room. */
uint64_t tn_table_growth(tn_table *t, tn_range partitions, uint64_t rows);
uint64_t tn_table_growth_most(const tn_table *t, tn_range partitions, uint64_t rows);

size_t tn_table_next_extent(tn_table *t); /* address space that it takes next, at once */
uint32_t tn_table_stride(const tn_table *t, uint32_t group); /* bytes of a whole row */
uint64_t tn_table_aside(const tn_table *t); /* bytes of rows that are kept aside for a cut */

/* ---- rows that leave ---- */

/* Counts what became of the rows of a group. */
typedef struct tn_group_rows {
    uint64_t rows;     /* rows in the table */
    uint64_t waiting;  /* rows among them that wait */
    uint64_t bytes;    /* their bytes with headers and state, without indexes */
    uint64_t nonzero;  /* their weights that are not 0; 0 but after a sweep */
    uint64_t expired;  /* rows that this sweep removed */
    uint64_t evicted;  /* rows that left a full table since the sweep before */
    uint64_t admitted; /* rows that became whole since then, if keys may wait */
} tn_group_rows;

/* Adds counts of other partitions to those of a group. */
void tn_group_rows_sum(tn_group_rows *sum, const tn_group_rows *more);

/* Removes the rows that have expired on `day` (ps/table/lifecycle.h), and gives back chunks and
 * index blocks that are in no more use, for rows to come; a filter that holds too many keys ages.
 * out: one per group. A cut may be open; no other thread inside. TN_E_MEMORY: nothing was removed.
 */
tn_status tn_table_sweep(tn_table *t, tn_team *team, uint32_t day, tn_group_rows *out,
                         tn_error *err) TN_MUST_USE;

/* Sets other options of row policies than those it was made with, for whoever asks which rows they
 * would keep; keys wait as before. The options of groups are lent. NULL: there are none. No other
 * thread inside. */
void tn_table_set_options(tn_table *t, const tn_row_options *options);

/* Rows that wait have one of so many parts of a full table's room. */
enum { TN_TABLE_WAIT_SHARE = 4 };

/* From now on the rows that score least leave, when the table, which has these partitions alone,
 * would take more than `limit` bytes: after each push, one row in eight or more of the partitions
 * that it has touched. Rows that wait have their part of the room, and leave it by their own
 * scores. Which rows leave depends on those that are there, alone. With the copies of rows aside it
 * may take a 64th more. Rows of a checkpoint always fit. False: the limit is so low that a
 * partition has no room for any row of each kind; least says what one needs. Call it before any
 * other function. */
bool tn_table_evict_beyond(tn_table *t, uint64_t limit, tn_range partitions) TN_MUST_USE;
uint64_t tn_table_evict_least(const tn_table *t);

/* Counts the rows of each group of the layout, those that wait, and their bytes. */
void tn_table_count_groups(tn_table *t, tn_group_rows *out);

/* Calls visit for every row of a partition in ascending key order, under its lock. */
tn_status tn_table_walk(tn_table *t, uint32_t partition, tn_row_visit *visit, void *arg,
                        tn_error *err) TN_MUST_USE;

/* Puts rows of one partition back under its lock, best in ascending key order. Floats must be those
 * of the segments that are present, else TN_E_CKPT. Where only segments are present that do not
 * wait, the row waits; others that it lacks begin as in a new one. Rows may move when one is
 * removed, so no other thread may be inside then. */
typedef struct tn_refill {
    tn_table *t;
    uint32_t partition;
    int64_t added;
} tn_refill;
void tn_refill_begin(tn_refill *r, tn_table *t, uint32_t partition);
tn_status tn_refill_add(tn_refill *r, const tn_row_view *view, tn_error *err) TN_MUST_USE;
tn_status tn_refill_remove(tn_refill *r, uint64_t key, uint16_t group, tn_error *err) TN_MUST_USE;
void tn_refill_end(tn_refill *r);

/* Adds or replaces a row. */
tn_status tn_table_restore(tn_table *t, const tn_row_view *row, tn_error *err) TN_MUST_USE;
void tn_table_clear(tn_table *t); /* no other thread inside */

/* Counts of keys without a row of a partition, and their bytes, which are those of every partition;
 * 0: there is no filter. NULL: nothing was counted yet. set copies as many. TN_E_MEMORY. */
const uint8_t *tn_table_filter(const tn_table *t, uint32_t partition, size_t *bytes);
tn_status tn_table_set_filter(tn_table *t, uint32_t partition, const uint8_t *counts,
                              tn_error *err) TN_MUST_USE;

/* The place of segment s of record r, and of its states, in `data` of a row that does not wait; and
 * of its weights in one that does. */
typedef struct tn_place_in_row {
    uint32_t w;
    uint32_t state[TN_STATES_MAX];
    uint32_t n_states;
    tn_state spec[TN_STATES_MAX];
} tn_place_in_row;
tn_place_in_row tn_table_place(const tn_table *t, uint32_t record, uint32_t segment);
uint32_t tn_table_place_waiting(const tn_table *t, uint32_t record, uint32_t segment);
