/* record.h - what one key holds, as the training side sees it.
 *
 * A model may use a key more than once: a wide weight, a deep vector. Each use is a segment, and
 * the segments of a key lie side by side in one row, so a step asks for a key once:
 *
 *     row    | wide | deep . . . . . . . |       width 9: the w of one row
 *     at       0      1                  9
 *
 * A net may read a row's counts, too. Such a record has two floats more after its segments, which
 * no optimizer trains and no file of rows holds: the owner of a key computes them when it is pulled
 * (ps/table/lifecycle.h), and the gradients that lie there are zeros.
 *
 * Segments may wait for evidence (admission): until its key was seen often enough, a row has none
 * of them, and they read as zeros.
 *
 * Slots that share vectors form a share group (a slot alone is a group of its
 * own), and a group picks one record, so widths may differ between groups.
 * Optimizer state, show, click and age belong to the server and do not travel.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/keyspace.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_segment {
    const char *name; /* "wide", "deep", ..: the name of the model's input */
    uint32_t at;      /* in floats, from the start of the row */
    uint32_t dim;
} tn_segment;

enum { TN_COUNTS = 2 }; /* floats that hold show and click */

typedef struct tn_record {
    uint32_t width; /* floats in a row */
    uint32_t n_segments;
    tn_segment segment[TN_SEGMENTS_MAX];
    /* two floats after the segments, TN_COUNTS; dim 0: none */
    tn_segment counts;
    bool raw_show;  /* the first of them is show, not ln(1 + show) */
    uint16_t waits; /* bit i: segment i is only for keys that are admitted; 0: all are at once */
} tn_record;

typedef struct tn_share_group {
    const char *name; /* the `share` name, or the slot's own */
    uint64_t salt;    /* XXH64(name): key = mix(sign ^ salt), see base/math/key.h */
    uint32_t record;  /* index into tn_layout.record */
} tn_share_group;

/* Fixed once the model is built; everything it points to outlives its users. */
typedef struct tn_layout {
    uint32_t n_groups;
    const tn_share_group *group;
    uint32_t n_records;
    const tn_record *record;
} tn_layout;

static inline const tn_record *tn_record_of(const tn_layout *layout, uint32_t group)
{
    return &layout->record[layout->group[group].record];
}

static inline bool tn_layout_has_counts(const tn_layout *layout)
{
    bool any = false;
    for (uint32_t r = 0; r < layout->n_records; r++) {
        any = any || layout->record[r].counts.dim > 0;
    }
    return any;
}

/* One row as tables, snapshots, exports and tests see it. `data` holds per present segment w[dim],
 * then each state. */
typedef struct tn_row_view {
    uint64_t key;
    uint16_t group;
    uint16_t present; /* bit i: segment i */
    uint32_t last_seen;
    bool removed; /* in deltas only: key, group and last_seen, nothing else */
    double show, click;
    const float *data; /* 4-byte words */
    uint32_t n_floats;
} tn_row_view;

/* Lent until it returns. Another status than TN_OK stops and is handed on. */
typedef tn_status tn_row_visit(void *arg, const tn_row_view *row, tn_error *err);
