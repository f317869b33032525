/* tabledef.h - what the table is made of; for the files of the table only. */
#ifndef TN_PS_TABLEDEF_H
#define TN_PS_TABLEDEF_H

#include "ps/table/changed_rows.h"
#include "ps/table/partition.h"
#include "ps/table/row_positions.h"
#include "ps/table/table.h"

enum {
    TN_TILE_PARTITIONS = 16,
    TN_TABLE_TILES = TN_PARTITIONS / TN_TILE_PARTITIONS,
    TN_LOOK_KEYS = TN_ROWS_MAX, /* keys looked up together */
    TN_RECORDS_TOGETHER = 8,
    TN_NO_COUNT = TN_STATES_MAX,
};

/* How a segment of a record lies in a row of the table and in a row of the batch. */
typedef struct tn_plan_segment {
    uint32_t dim;
    uint32_t at; /* in the batch's row */
    uint32_t w;  /* in data */
    uint32_t state[TN_STATES_MAX];
    uint32_t n_states;
    uint32_t count;  /* state that counts updates, or TN_NO_COUNT */
    uint64_t stream; /* of first values: seed, purpose and segment, before the key */
} tn_plan_segment;

typedef struct tn_plan {
    uint32_t n_segments;
    uint32_t n_floats;
    uint32_t stride; /* bytes of a row */
    uint32_t group;  /* the first one with this record */
    tn_plan_segment segment[TN_SEGMENTS_MAX];
} tn_plan;

struct tn_table {
    const tn_rules *rules;
    const tn_layout *layout;
    tn_plan *plan;           /* per record */
    tn_shelf *shelves;       /* of all partitions */
    tn_partition *partition; /* TN_PARTITIONS */
    tn_extents extents;
    tn_hints hints;
    tn_changes changes;
    bool plain;    /* every rule of rows is (ps/optim/rule.h), and rows of the batch have no gaps */
    bool together; /* push may update the rows of many keys at once (ps/table/table_push.c) */
    bool sweeps;   /* some rule has l2_mode: dense */
    _Atomic uint64_t rows, created, dropped;
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
    bool watched;  /* somebody wants to know of rows that change */
    const bool *missing_init;
    tn_hint *hint; /* pull: written; push: read; NULL: none */
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

static inline const tn_plan *tn_plan_of(const tn_table *t, uint32_t group)
{
    return &t->plan[t->layout->group[group].record];
}

static inline tn_shelf *tn_shelf_of(const tn_table *t, uint64_t key, uint32_t group)
{
    size_t partition = tn_partition_of(key, TN_PARTITIONS);
    return &t->shelves[partition * t->layout->n_records + t->layout->group[group].record];
}

/* Whether its rules let a push update the rows of many keys at once. */
bool tn_pushes_together(const tn_table *t);

/* The arrays of a segment's optimizer state. */
static inline void tn_states_of(const tn_plan_segment *s, tn_row *row, float *state[TN_STATES_MAX])
{
    for (uint32_t i = 0; i < s->n_states; i++) {
        state[i] = row->data + s->state[i];
    }
}

static inline uint16_t tn_all_present(const tn_plan *plan)
{
    return (uint16_t)((UINT32_C(1) << plan->n_segments) - 1);
}

#endif
