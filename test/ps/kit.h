/* kit.h - rules from text, keysets from lists of keys, tables from both: for the tests of src/ps.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/keyset.h"
#include "base/keys/record.h"
#include "config/values.h"
#include "ps/optim/rule.h"
#include "ps/shard/shard.h"
#include "ps/table/table.h"

#include <stdbool.h>

/* The rule of optimizer `name` with options like "lr=.1 rowwise=true bounds=-1,1"; NULL: defaults.
 * No clip unless clip_row or clip_value is among them; rows start at 0. */
tn_rule kit_rule(tn_arena *arena, const char *name, const char *options);

/* A schedule with options written the same way. */
tn_variant kit_schedule(tn_arena *arena, const char *name, const char *options);

typedef struct kit_segment {
    const char *name;
    uint32_t dim;
} kit_segment;

/* One record with these segments (up to a NULL name), n_groups groups, and room for their rules. */
typedef struct kit_model {
    tn_layout layout;
    tn_rules rules;
    tn_rule *rule; /* rules.rule, to be filled: group * TN_SEGMENTS_MAX + segment */
} kit_model;

kit_model *kit_model_new(tn_arena *arena, const kit_segment *segments, uint32_t n_groups);

/* One segment "deep" of `dim` floats under one rule, one group. */
kit_model *kit_model_plain(tn_arena *arena, uint32_t dim, tn_rule rule);

tn_table *kit_table(const kit_model *model, uint64_t seed);

/* The keys, grouped by partition, else in order; all of group 0 unless `group` is given. Shows are
 * 1, clicks 0; both may be changed. index[i]: where keys[i] went. */
typedef struct kit_keys {
    tn_keyset set;
    uint32_t *show;
    uint32_t *click;
    uint32_t *index;
    uint32_t n_floats;
} kit_keys;

kit_keys *kit_keys_new(tn_arena *arena, const tn_layout *layout, const uint64_t *keys,
                       const uint16_t *group, uint32_t n);

/* Weights of one key of group 0 as an evaluation sees them. */
void kit_peek(tn_table *t, const tn_layout *layout, uint64_t key, float *row);

/* A copy of a key's state and counters; false: there is no row. */
typedef struct kit_row {
    tn_row_view view;
    float data[256];
} kit_row;
bool kit_row_of(tn_table *t, uint64_t key, kit_row *out);

/* All rows as one number; removed: of a delta; waiting: rows without their
 * last segment, where there are two. */
typedef struct kit_digest {
    uint32_t crc;
    uint64_t rows, removed, waiting;
    tn_table *copy; /* NULL, or where rows are put and removed */
} kit_digest;

/* A tn_row_visit with a kit_digest. */
tn_status kit_add_row(void *arg, const tn_row_view *row, tn_error *err);
kit_digest kit_digest_of(tn_table *t);
void kit_same_rows(kit_digest a, kit_digest b);

/* A push of step `step` with W 1 and factor 1. */
tn_push kit_push(uint64_t step);
