/* tablerows.h - a table of rows and the batches of keys that benchmarks pull and push.
 *
 * Rows as widedeep has them by default: a wide weight and "deep", under row-wise Adagrad with L2
 * and gradients of the summed loss; keys are those of the numbers 0 .. n-1.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/record.h"
#include "figure.h"
#include "ps/optim/rule.h"
#include "ps/table/table.h"

enum { TN_BENCH_KEYS = 16384 };

typedef struct tn_bench_model {
    tn_record record;
    tn_share_group group;
    tn_layout layout;
    tn_rule rule[TN_SEGMENTS_MAX];
    tn_rules rules;
} tn_bench_model;

typedef struct tn_bench_batch {
    const tn_layout *layout;
    uint64_t key[TN_BENCH_KEYS];
    uint16_t group[TN_BENCH_KEYS];
    uint32_t at[TN_BENCH_KEYS], show[TN_BENCH_KEYS], click[TN_BENCH_KEYS];
    uint32_t first[TN_PARTITIONS + 2];
} tn_bench_batch;

/* It must stay in place. `optim`: with its own defaults; NULL: the rule above. */
void tn_bench_model_init(tn_bench_model *m, uint32_t dim, const tn_optim *optim, tn_arena *arena);

/* Keys of numbers from .. of a random stream; stream 0: of the numbers from `from` on. Rows are as
 * wide as those of the layout's first record. */
void tn_bench_batch_fill(tn_bench_batch *b, uint64_t n_keys, uint64_t stream, uint64_t from,
                         const tn_layout *layout);
tn_keyset tn_bench_keyset(const tn_bench_batch *b);

/* A table with rows for n_keys keys, filled by way of `b` and `rows`; `insert`: millions of keys
 * per second, a sample for each sixteenth. */
tn_table *tn_bench_table(const tn_bench_model *m, uint64_t n_keys, tn_bench_batch *b, float *rows,
                         tn_samples *insert);
