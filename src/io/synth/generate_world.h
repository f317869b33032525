/* generate_world.h - inside a generator; only src/io/generate*.c include this. */
#ifndef TN_IO_GENERATE_WORLD_H
#define TN_IO_GENERATE_WORLD_H

#include "base/core/arena.h"
#include "base/math/rng.h"
#include "io/synth/generate.h"
#include "io/synth/zipf.h"

/* Second words of the streams. */
enum { GEN_ROW = 1, GEN_WEIGHT = 2, GEN_HIDDEN = 3, GEN_SAMPLE = 4, GEN_WORD = 5 };

enum { GEN_HIDDEN_UNITS = 16, GEN_LN2_BUCKETS = 1024 };

struct tn_generator {
    tn_gen_opts opts;
    tn_arena *arena;
    uint32_t n_slots;
    tn_gen_slot *slot;
    tn_zipf **law;       /* n_slots; NULL for COUNT and NUMBER */
    uint64_t *weights;   /* n_slots: stream of the slot's weights */
    uint32_t values_max; /* values in a row, all slots together */
    double *hidden;      /* deep: GEN_HIDDEN_UNITS x (n_slots * dim + 1), the last one outgoing */
    tn_gen_truth truth;
};

/* The slots of the preset, in the arena, and the options that were left open. TN_E_CONFIG. */
tn_status tn_gen_plan(tn_generator *g, tn_error *err) TN_MUST_USE;

/* The two parts of the logit before scaling. */
typedef struct tn_gen_parts {
    double linear, mixed;
} tn_gen_parts;

/* Everything of the row but click, logit and p. `stream` is the row's. */
tn_gen_parts tn_gen_row_fill(tn_gen_row *row, const tn_generator *g, uint64_t stream,
                             uint64_t *draws);

/* Sets g->truth from a sample of its own. */
tn_status tn_gen_fit(tn_generator *g, tn_team *team, tn_error *err) TN_MUST_USE;

#endif
