/* tabledef.h - the inside of tn_table; for the files of the table only. */
#pragma once

#include "base/keys/keyset.h"
#include "base/keys/record.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/table/changed_rows.h"
#include "ps/table/key_filter.h"
#include "ps/table/lifecycle.h"
#include "ps/table/partition.h"
#include "ps/table/row_positions.h"
#include "ps/table/table.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    TN_TILE_PARTITIONS = 16,
    TN_TABLE_TILES = TN_PARTITIONS / TN_TILE_PARTITIONS,
    TN_LOOK_KEYS = TN_ROWS_MAX, /* keys looked up together */
    TN_KINDS_TOGETHER = 8,
    TN_NO_COUNT = TN_STATES_MAX,
};

/* The places of a record's segment in a row of the table and in a row of the batch. */
typedef struct tn_plan_segment {
    uint32_t dim;
    uint32_t at; /* in the batch's row */
    uint32_t w;  /* in data */
    uint32_t state[TN_STATES_MAX];
    uint32_t n_states;
    uint32_t end;    /* of all these */
    uint32_t count;  /* state that counts updates, or TN_NO_COUNT */
    uint64_t stream; /* of first values: seed, purpose and segment, before the key */
} tn_plan_segment;

typedef struct tn_plan {
    uint32_t n_segments;
    uint16_t present; /* segments that these rows have: those that do not wait, or all */
    bool unused;      /* no row of this table begins with it */
    uint32_t n_floats;
    uint32_t stride;   /* bytes of a row */
    uint32_t together; /* rows of which the changed gradients of a segment fit into scratch */
    tn_plan_segment segment[TN_SEGMENTS_MAX];
} tn_plan;

/* ---- the table ---- */

/* Of a partition, beyond which rows leave: by rows, where all are of one size, else by bytes. */
typedef struct tn_room_of_rows {
    uint64_t bytes; /* 0: none leave */
    uint64_t chunk; /* the largest, of which partitions have a part more, spread evenly */
    uint32_t rows;
    uint32_t more_rows; /* in more_of of 1024 partitions */
    uint32_t more_of;
} tn_room_of_rows;

struct tn_table {
    const tn_rules *rules;
    const tn_layout *layout;
    tn_lifecycle *life;      /* per group */
    const uint32_t *day;     /* of counts that pulls read */
    tn_plan *plan;           /* per record, then, where keys may wait, of rows that do */
    uint32_t n_plans;        /* as many stores has a partition */
    bool admits;             /* keys may wait */
    bool shrinks;            /* some of them by l1_shrk */
    bool waits;              /* some of them in rows .. */
    bool bare;               /* .. which have no floats */
    tn_key_filter filter;    /* that counts keys without a row */
    uint64_t admission;      /* stream of draws, before the key */
    _Atomic uint64_t step;   /* that comes next */
    tn_row_store *stores;    /* of all partitions */
    tn_partition *partition; /* TN_PARTITIONS */
    tn_page_arena pages;
    tn_row_positions positions;
    tn_changed_rows changes;
    uint32_t
        n_kinds; /* of groups with one record and the same rules; TN_KINDS_TOGETHER + 1: more */
    uint32_t kind_group[TN_KINDS_TOGETHER]; /* the first of each kind */
    uint8_t *kind;                          /* of each group, unless there are too many */
    uint32_t look_keys; /* looked up together: as many rows as the nearest cache holds */
    bool plain;  /* every rule of rows is (ps/optim/rule.h), and rows of the batch have no gaps */
    bool alike;  /* there is one kind of groups, and their rows begin alike */
    bool sweeps; /* some rule has l2_mode: dense */
    tn_room_of_rows room[2]; /* of whole rows, of rows that wait */
    _Atomic uint64_t rows, created, promoted, admitted, evicted, aged;
    uint64_t expired;
    _Atomic uint64_t *evicted_of;  /* per group, since the last sweep */
    _Atomic uint64_t *admitted_of; /* likewise: rows that had to wait, or might have had to */
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

/* The same of groups with one record and the same rules; their group, where there are too many. */
static inline uint32_t tn_kind_of(const tn_table *t, uint32_t group)
{
    return t->n_kinds > TN_KINDS_TOGETHER ? group : t->kind[group];
}

static inline const tn_lifecycle *tn_life_of(const tn_table *t, uint32_t group)
{
    return &t->life[group];
}

/* Of rows that have all segments. */
static inline const tn_plan *tn_plan_of(const tn_table *t, uint32_t group)
{
    return &t->plan[t->layout->group[group].record];
}

/* Of rows of that record that wait; only where keys may. */
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
static inline bool tn_has_waiting_rows(const tn_table *t, uint32_t group)
{
    const tn_admission *a = &t->life[group].admission;
    return (a->threshold > 0 && !a->filter) || tn_waiting_plan_of(t, group)->present != 0;
}

static inline tn_row_store *tn_row_store_of(const tn_table *t, uint64_t key, uint32_t group)
{
    size_t partition = tn_partition_of(key, TN_PARTITIONS);
    return &t->stores[partition * t->n_plans + t->layout->group[group].record];
}

/* The same for rows that wait; only where keys may. */
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

/* The arrays of a segment's optimizer state. */
static inline void tn_states_of(const tn_plan_segment *s, tn_row *row, float *state[TN_STATES_MAX])
{
    for (uint32_t i = 0; i < s->n_states; i++) {
        state[i] = row->data + s->state[i];
    }
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

/* The keys of a tile. */
static inline tn_range tn_tile_keys(const tn_keyset *keys, uint32_t tile)
{
    uint32_t from = tile * TN_TILE_PARTITIONS;
    return (tn_range){keys->first[from], keys->first[from + TN_TILE_PARTITIONS]};
}

/* Its locks: of partitions that hold some of its keys, or of all. */
void tn_tile_lock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all);
void tn_tile_unlock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all);

/* Prefetches directories and lists of chunks that lead to the rows of a locked tile's keys. */
void tn_tile_fetch(const tn_table *t, const tn_keyset *keys, uint32_t tile);

/* row[i] := the row of key run.from + i, or NULL; at most TN_LOOK_KEYS. It may be one that waits.
 * The locks are held. `mark`: marks what it finds, for a sweep. */
void tn_look_up(const tn_table *t, const tn_keyset *keys, tn_range run, bool mark, tn_row **row);

/* The same by hints, without marks. A key that had no row has none. */
void tn_look_up_hinted(const tn_table *t, const tn_keyset *keys, tn_range run, tn_row *const *hint,
                       tn_row **row);

/* The i-th run of keys that are looked up together. */
static inline tn_range tn_look_run(const tn_table *t, tn_range all, uint32_t i)
{
    tn_range run = tn_tile(all.to - all.from, t->look_keys, i);
    return (tn_range){all.from + run.from, all.from + run.to};
}

/* What stands in n new rows of one plan and group, or of groups that are alike (table_pull.c). */
void tn_new_rows_fill(const tn_table *t, const tn_plan *plan, uint32_t group, const uint64_t *key,
                      tn_row *const *row, uint32_t n);

/* ---- rows that leave (table_sweep.c) ---- */

/* A row of a locked partition leaves; the last one of its store takes its place. `moved`: its key
 * has another row (tn_row_store_put). */
void tn_row_remove(tn_table *t, uint32_t partition, tn_row_store *store, uint32_t number,
                   bool moved);

/* Where the rows leave that a full table has no room for: those of a tile's partitions that hold
 * keys of the batch, behind its push, on its day. Their locks are held. */
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

/* Lent as long as the row is left alone. Inline: it is asked for every row of a table. */
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
