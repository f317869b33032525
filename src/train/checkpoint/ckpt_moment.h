/* ckpt_moment.h - a run at one moment: what a checkpoint is written from while training goes on.
 *
 *     TN_TRY(tn_moment_take(&m, &from, err));     between two steps, on the trainer's thread
 *     ..                                          read by one thread, perhaps another
 *     tn_moment_free(m);
 *
 * Small things are copied: dense weights and their optimizer state, the metrics of the epoch that
 * runs, the state of the run as a manifest. The rows are a cut of the table
 * (ps/table/table_snapshot.h). Parts of the plan are lent until the moment is freed.
 */
#pragma once

#include "base/file/safetensors.h"
#include "base/keys/record.h"
#include "base/thread/range.h"
#include "ps/snapshot/manifest.h"
#include "ps/table/table_snapshot.h"

typedef struct tn_metrics tn_metrics;
typedef struct tn_run_state tn_run_state;
typedef struct tn_run_text tn_run_text;
typedef struct tn_worker tn_worker;

enum { TN_MOMENT_SUMS = 6, TN_MOMENT_BINS = 1 << 20 };

typedef struct tn_moment {
    tn_arena *arena;
    tn_manifest manifest; /* but for the names of things that are still to be made */
    const char *config;   /* lent; NULL: of a rank above 0 */
    tn_text sources;
    uint32_t rank;
    tn_range partitions; /* the partitions of this peer */
    tn_cut *rows;
    size_t begin, end;                  /* its range of the flat vector */
    tn_tensor dense[TN_STATES_MAX + 1]; /* w, then each state; in floats below */
    uint32_t n_dense;
    float *floats;
    bool delta;
    uint64_t *histogram; /* [2][TN_MOMENT_BINS]; of a delta: that of its base, lent, made today's */
    tn_text changes;     /* cell and new value, u64 each, where it differed from the base's, or from
                            zeros; failed: all of it is shorter */
    uint64_t sums[TN_MOMENT_SUMS][2];
} tn_moment;

typedef struct tn_moment_from {
    tn_worker *w;
    bool delta;
    const tn_run_state *state; /* NULL, and so is all below: a rank above 0 */
    const tn_metrics *metrics;
    const tn_run_text *text;
    uint64_t run_id;
    uint64_t *base; /* histogram of the checkpoint before a delta, which becomes today's */
} tn_moment_from;

/* Takes the moment of a rank above 0: its rows, weights and states. */
tn_status tn_moment_take(tn_moment **out, const tn_moment_from *from, tn_error *err) TN_MUST_USE;
void tn_moment_free(tn_moment *m); /* NULL is fine */

/* The meaning of the floats of this worker's rows. Lives in the arena. */
tn_row_schema tn_moment_row_schema(const tn_worker *w, tn_arena *arena);

/* sparse, dense and structure of the manifest that `w` would write. Lives in the arena. */
tn_status tn_moment_describe(tn_manifest *m, const tn_worker *w, tn_arena *arena,
                             tn_error *err) TN_MUST_USE;
