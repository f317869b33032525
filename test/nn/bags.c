/* bags.c - see bags.h. */
#include "nn/bags.h"

#include "base/core/alloc.h"
#include "base/keys/record.h"
#include "base/math/rng.h"
#include "nn/near.h"
#include "support/test.h"

#include <string.h>

enum { ROWS = TN_BAGS_ROWS, SLOTS = TN_BAGS_SLOTS, KEYS = TN_BAGS_KEYS, ALL = SLOTS * KEYS };
enum { ENTRIES = 3 };

typedef struct bags {
    tn_sparse sparse;
    tn_bag bag[SLOTS];
    uint32_t offset[SLOTS][ROWS + 1], index[SLOTS][ENTRIES * ROWS], at[ALL + 1], first[ALL + 1];
    float weight[ENTRIES * ROWS];
    tn_occurrence item[ENTRIES * ROWS * SLOTS];
    tn_real *rows, *grads;
} bags;

static uint32_t entries_of(uint32_t slot, uint32_t row, bool mixed)
{
    return !mixed ? 1 : slot == 1 ? row % 3 : slot == 3 ? row % 4 : 1;
}

static void fill_slot(bags *b, uint32_t s, bool mixed)
{
    uint64_t stream = tn_stream0(s + 1);
    uint32_t n = 0;
    bool ones = true;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t j = 0; j < entries_of(s, r, mixed); j++, n++) {
            b->index[s][n] = s * KEYS + (uint32_t)tn_below(tn_draw(stream, n), KEYS);
        }
        b->offset[s][r + 1] = n;
        ones &= n == r + 1;
    }
    b->bag[s] = (tn_bag){.offset = b->offset[s],
                         .index = b->index[s],
                         .weight = mixed && (s == 2 || s == 3) ? b->weight : NULL,
                         .ones = ones};
}

static void fill_occurrences(bags *b)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < ALL; k++) {
        uint32_t s = k / KEYS;
        b->first[k] = n;
        for (uint32_t r = 0; r < ROWS; r++) {
            for (uint32_t j = b->offset[s][r]; j < b->offset[s][r + 1]; j++) {
                if (b->index[s][j] == k) {
                    b->item[n++] = (tn_occurrence){r, s, j};
                }
            }
        }
    }
    b->first[ALL] = n;
}

static bags *bags_new(const tn_bags_run *run)
{
    uint64_t stream = tn_stream0(100);
    bags *b = tn_alloc(1, sizeof *b, "a batch");
    size_t floats = (size_t)ALL * (run->dim + 1);
    b->rows = tn_alloc(floats, sizeof *b->rows, "rows");
    b->grads = tn_alloc(floats, sizeof *b->grads, "gradients");
    for (uint32_t i = 0; i < ENTRIES * ROWS; i++) {
        b->weight[i] = (float)(2 * tn_unit(tn_draw(stream, i)) - 1);
    }
    for (uint32_t s = 0; s < SLOTS; s++) {
        fill_slot(b, s, run->mixed);
    }
    fill_occurrences(b);
    for (uint32_t k = 0; k <= ALL; k++) {
        b->at[k] = k * (run->dim + 1);
    }
    for (uint32_t i = 0; i < floats; i++) {
        b->rows[i] = (tn_real)(2 * tn_unit(tn_draw(stream, 10000 + i)) - 1);
        b->grads[i] = 7; /* must not be added to */
    }
    b->sparse =
        (tn_sparse){.n = ALL, .at = b->at, .rows = b->rows, .grads = b->grads, .bag = b->bag};
    b->sparse.apart = run->apart;
    if (!run->apart) {
        b->sparse.occurrences = (tn_occurrences){b->first, b->item};
    }
    return b;
}

static void bags_free(bags *b)
{
    tn_free(b->rows);
    tn_free(b->grads);
    tn_free(b);
}

void tn_bags_slots(const tn_segment *segment, const tn_pool *pools, uint32_t n_pools,
                   tn_embed_slot out[SLOTS])
{
    static const char *const names[SLOTS] = {"a", "b", "c", "d", "e"};
    for (uint32_t s = 0; s < SLOTS; s++) {
        out[s] = (tn_embed_slot){
            .name = names[s], .slot = s, .segment = segment, .pool = pools[s % n_pools], .k = 2};
    }
}

tn_real *tn_bags_step(const tn_bags_run *run, size_t *n, const tn_op **op)
{
    const tn_segment segment = {.name = "deep", .at = 1, .dim = run->dim};
    bags *b = bags_new(run);
    tn_graph *g = tn_graph_new(&(tn_graph_opts){.max_rows = ROWS,
                                                .train = true,
                                                .reduction = TN_REDUCE_SUM,
                                                .no_passes = run->no_passes,
                                                .team = run->team});
    tn_node *y = run->build(g, &segment);
    tn_trial t = tn_trial_open(g, y, ROWS, true);
    uint32_t cols = y->shape.cols;
    double *dy = tn_alloc((size_t)ROWS * cols, sizeof *dy, "factors");
    for (uint32_t i = 0; i < ROWS * cols; i++) {
        dy[i] = tn_unit(tn_draw(tn_stream0(7), i)) - .5;
    }
    t.feed.sparse = &b->sparse;
    tn_trial_run(&t, dy);
    *op = y->op;
    *n = (size_t)ROWS * cols + b->at[ALL];
    tn_real *out = tn_alloc(*n, sizeof *out, "results");
    for (uint32_t r = 0; r < ROWS; r++) {
        memcpy(out + (size_t)r * cols, tn_val_row(y, r), cols * sizeof *out);
    }
    memcpy(out + (size_t)ROWS * cols, b->grads, b->at[ALL] * sizeof *out);
    tn_graph_free(g);
    bags_free(b);
    tn_free(dy);
    return out;
}
