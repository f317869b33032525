/* tabledef.h - the inside of tn_table; for the files of the table and for row policies. */
#pragma once

#include "base/keys/keyset.h"
#include "base/keys/record.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/table/changed_rows.h"
#include "ps/table/key_filter.h"
#include "ps/table/partition.h"
#include "ps/table/row_policy.h"
#include "ps/table/row_positions.h"
#include "ps/table/table.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    TN_TILE_PARTITIONS = 16,
    TN_TABLE_TILES = TN_PARTITIONS / TN_TILE_PARTITIONS,
    TN_LOOK_KEYS = TN_ROWS_MAX, /* keys that are looked up together: bits of a word */
    TN_NO_COUNT = TN_STATES_MAX,
};

_Static_assert(TN_LOOK_KEYS <= 64, "sets of keys of a run are words");

/* The places of a record's segment in a row of the table and in a row of the batch. */
typedef struct tn_plan_segment {
    uint32_t dim;
    uint32_t at; /* in the batch's row */
    uint32_t w;  /* in data */
    uint32_t state[TN_STATES_MAX];
    uint32_t n_states;
    uint32_t end;    /* after weights and states */
    uint32_t count;  /* the state that counts updates, or TN_NO_COUNT */
    uint64_t stream; /* draws first values: seed, purpose and segment, before the key */
} tn_plan_segment;

/* The layout of all rows of one form: whole rows of a record, or those that wait. */
typedef struct tn_plan {
    uint32_t n_segments;
    uint16_t present; /* bit i: these rows have segment i */
    bool unused;      /* no row of this table begins with it */
    uint32_t n_floats;
    uint32_t stride;   /* bytes of a row */
    uint32_t together; /* rows of which the changed gradients of a segment fit into scratch */
    tn_plan_segment segment[TN_SEGMENTS_MAX];
} tn_plan;

/* ---- the table ---- */

/* The room of a partition, beyond which rows leave: in rows if all are of one size, else in
 * bytes. */
typedef struct tn_room_of_rows {
    uint64_t bytes; /* 0: none leave */
    uint64_t chunk; /* the largest, of which partitions have a part more, spread evenly */
    uint32_t rows;
    uint32_t more_rows; /* in more_of of 1024 partitions */
    uint32_t more_of;
} tn_room_of_rows;

/* Rows of a group that came and went since the last sweep. */
typedef struct tn_group_moves {
    _Atomic uint64_t evicted, admitted;
} tn_group_moves;

struct tn_table {
    const tn_rules *rules;
    const tn_layout *layout;
    const uint32_t *day;    /* The day on which pulls and peeks read counts. */
    tn_row_options options; /* The options of row policies: those of `rules`, unless changed. */
    tn_row_hook *on[TN_ROW_MOMENTS][TN_ROW_POLICIES + 1]; /* Hooks that are called, then NULL. */
    tn_plan *plan;    /* One for each record, then, if keys may wait, as many for waiting rows. */
    uint32_t n_plans; /* A partition has as many stores. */
    bool admits;      /* Keys may wait. */
    bool waits;       /* Some of them have rows meanwhile. */
    bool plain;  /* Rules of rows are plain (ps/optim/rule.h), rows of the batch have no gaps. */
    bool alike;  /* All groups are of one kind. */
    bool sweeps; /* Some rule has l2_mode: dense. */
    tn_key_filter filter;    /* Counts keys without a row. */
    uint64_t draws;          /* The stream of draws of admission, before the key. */
    _Atomic uint64_t step;   /* The step that comes next. */
    tn_row_store *stores;    /* The stores of all partitions. */
    tn_partition *partition; /* There are TN_PARTITIONS. */
    tn_page_arena pages;
    tn_row_positions positions;
    tn_changed_rows changes;
    uint32_t *kind;          /* The first group with the record and the rules of each group. */
    uint32_t look_keys;      /* As many rows are looked up together as the nearest cache holds. */
    tn_room_of_rows room[2]; /* The room of whole rows, and of those that wait. */
    _Atomic uint64_t rows, created, promoted, aged;
    tn_group_moves *moves; /* One for each group. */
    tn_table_totals swept; /* Rows that expired, were evicted or admitted, up to the last sweep. */
};

/* One call of pull, peek, norm2 or push, as its tiles see it. */
typedef struct tn_table_job {
    tn_table *t;
    const tn_keyset *keys;
    float *rows;
    const float *grads;
    const tn_push *push;
    double clip;
    uint32_t seen; /* stamp and day of rows that are pushed */
    bool watched;  /* rows that change are noted */
    bool updates;  /* rows are updated */
    bool sums;     /* the norm is wanted */
    const bool *missing_init;
    tn_keyset_rows *hint; /* pull: written; push: read; NULL: none */
    bool *missing;
    double norm2[TN_TABLE_TILES];
    uint64_t created[TN_TABLE_TILES];
    _Atomic bool failed;
    tn_status status; /* these two: written by the first tile that fails */
    tn_error *err;
} tn_table_job;

static inline const tn_rule *tn_rule_of(const tn_table *t, uint32_t group, uint32_t segment)
{
    return &t->rules->rule[(size_t)group * TN_SEGMENTS_MAX + segment];
}

/* Returns the plan of whole rows. */
static inline const tn_plan *tn_plan_of(const tn_table *t, uint32_t group)
{
    return &t->plan[t->layout->group[group].record];
}

/* Returns the plan of rows that wait; only if keys may. */
static inline const tn_plan *tn_waiting_plan_of(const tn_table *t, uint32_t group)
{
    return &t->plan[t->layout->n_records + t->layout->group[group].record];
}

static inline const tn_plan *tn_plan_of_row(const tn_table *t, const tn_row *row)
{
    const uint32_t group = tn_row_group(row);
    return tn_row_waits(row) ? tn_waiting_plan_of(t, group) : tn_plan_of(t, group);
}

/* Whether segments of this group wait. */
static inline bool tn_group_waits(const tn_table *t, uint32_t group)
{
    return t->admits && tn_record_of(t->layout, group)->waits != 0;
}

/* Whether keys of such a group have rows while they wait. */
bool tn_has_waiting_rows(const tn_table *t, uint32_t group);

static inline tn_row_store *tn_row_store_of(const tn_table *t, uint64_t key, uint32_t group)
{
    size_t partition = tn_partition_of(key, TN_PARTITIONS);
    return &t->stores[partition * t->n_plans + t->layout->group[group].record];
}

/* Returns the store of rows that wait; only if keys may. */
static inline tn_row_store *tn_waiting_store_of(const tn_table *t, uint64_t key, uint32_t group)
{
    return tn_row_store_of(t, key, group) + t->layout->n_records;
}

/* In bytes. */
static inline uint64_t tn_longest_row(const tn_table *t)
{
    uint64_t most = sizeof(tn_row);
    for (uint32_t r = 0; r < t->n_plans; r++) {
        most = t->plan[r].stride > most ? t->plan[r].stride : most;
    }
    return most;
}

static inline bool tn_plan_has(const tn_plan *plan, uint32_t segment)
{
    return (plan->present >> segment & 1) != 0;
}

/* ---- many keys at once (lookup.c) ----
 *
 *     tile     16 partitions, worked by one thread under their locks
 *     run      up to TN_LOOK_KEYS of its keys, whose cache misses overlap
 */

/* Returns the keys of a tile. */
static inline tn_range tn_tile_keys(const tn_keyset *keys, uint32_t tile)
{
    uint32_t from = tile * TN_TILE_PARTITIONS;
    return (tn_range){keys->first[from], keys->first[from + TN_TILE_PARTITIONS]};
}

/* Takes its locks: of partitions that hold some of its keys, or of all. */
void tn_tile_lock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all);
void tn_tile_unlock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all);

/* Prefetches directories and lists of chunks that lead to the rows of a locked tile's keys. */
void tn_tile_fetch(const tn_table *t, const tn_keyset *keys, uint32_t tile);

/* row[i] := the row of key run.from + i, or NULL; at most TN_LOOK_KEYS. It may be one that waits.
 * The locks are held. `mark`: marks what it finds, for a sweep. Returns the keys without a row. */
uint64_t tn_look_up(const tn_table *t, const tn_keyset *keys, tn_range run, bool mark,
                    tn_row **row);

/* Does the same by hints, without marks. A key that had no row has none. */
uint64_t tn_look_up_hinted(const tn_table *t, const tn_keyset *keys, tn_range run,
                           tn_row *const *hint, tn_row **row);

/* Returns the i-th run of keys that are looked up together. */
static inline tn_range tn_look_run(const tn_table *t, tn_range all, uint32_t i)
{
    tn_range run = tn_tile(all.to - all.from, t->look_keys, i);
    return (tn_range){all.from + run.from, all.from + run.to};
}

/* Returns what hooks see of a run of keys with these rows. */
static inline tn_policy_rows tn_policy_rows_of(tn_table *t, const tn_keyset *keys, tn_range run,
                                               tn_row *const *row)
{
    return (tn_policy_rows){.t = t,
                            .n = run.to - run.from,
                            .group = keys->group + run.from,
                            .row = row,
                            .key = keys->key + run.from,
                            .at = keys->at + run.from,
                            .show = keys->show + run.from,
                            .click = keys->click + run.from};
}

/* Returns the keys that any hook of a moment names: rows whose segments that wait are hidden, or
 * rows that leave. */
static inline uint64_t tn_ask_any(tn_row_moment moment, const tn_policy_rows *rows)
{
    uint64_t any = 0;
    for (tn_row_hook *const *hook = rows->t->on[moment]; *hook != NULL; hook++) {
        any |= (*hook)(rows);
    }
    return any;
}

/* ---- rows that begin (table_create.c) ---- */

/* Gives rows to keys in *lacks that may have one, which leave it, and makes rows whole that have
 * waited for long enough, in a run of a locked tile. All of row[] are where they are then. */
tn_status tn_rows_create(tn_table_job *job, uint32_t tile, tn_range run, uint64_t *lacks,
                         tn_row **row, tn_error *err) TN_MUST_USE;

/* Fills n new rows of one plan and group, or of groups that are alike, with their first values. */
void tn_new_rows_fill(const tn_table *t, const tn_plan *plan, uint32_t group, const uint64_t *key,
                      tn_row *const *row, uint32_t n);

/* Makes the filters of a locked tile's partitions, before a key is counted in them. */
tn_status tn_tile_filter_reserve(tn_table *t, const tn_keyset *keys, uint32_t tile,
                                 tn_error *err) TN_MUST_USE;

/* ---- rows that leave (table_sweep.c) ---- */

/* Removes a row of a locked partition; the last one of its store takes its place. `moved`: its key
 * has another row (tn_row_store_put). */
void tn_row_remove(tn_table *t, uint32_t partition, tn_row_store *store, uint32_t number,
                   bool moved);

/* After a push on `day`, evicts the rows that a full table has no room for from the partitions of a
 * tile that this batch touched. Their locks are held. */
void tn_tile_evict(tn_table *t, const tn_keyset *keys, uint32_t tile, uint32_t day);

/* ---- rows in ascending key order (rowsort.c) ---- */

/* A row with its key, to be sorted. */
typedef struct tn_row_entry {
    uint64_t key;
    const tn_row *row;
} tn_row_entry;

/* `both` has room for 2 n entries, of which the first n are given. Returns the half of it in which
 * they ended sorted; equal keys keep their order. */
const tn_row_entry *tn_rows_sort(tn_row_entry *both, size_t n);

/* Lends a view of a row as long as that is left alone. Inline: it is asked for every row. */
static inline tn_row_view tn_view_of(const tn_table *t, uint64_t key, const tn_row *row)
{
    const tn_plan *plan = tn_plan_of_row(t, row);
    return (tn_row_view){
        .key = key,
        .group = tn_row_group(row),
        .present = plan->present,
        .last_seen = tn_row_day(row),
        .show = tn_row_count(row->show_high, row->show_low),
        .click = tn_row_count(row->click_high, row->click_low),
        .data = row->data,
        .n_floats = plan->n_floats,
    };
}
