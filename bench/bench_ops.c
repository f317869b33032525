/* bench_ops.c - one operator of ops.def, many times forward and backward.
 *
 *     bench_ops             nanoseconds per row of every operator's example, the least of 7
 *     bench_ops --list      their names
 *     bench_ops mul         that one 50 times and nothing else, for .ci/check-instructions
 *
 * Examples are a few columns wide: what is measured is the work around the loops as much as the
 * loops. bench_net measures whole nets.
 */
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/math/rng.h"
#include "base/thread/threads.h"
#include "nn/graph/embed.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 256, TIMES = 50, RUNS = 7, SLOTS = 5, KEYS = 64, WIDTH = 4, NUMERIC = 3 };

typedef struct bench_batch {
    tn_sparse sparse;
    tn_bag bag[SLOTS];
    uint32_t offset[ROWS + 1];
    uint32_t index[SLOTS][ROWS];
    uint32_t slot[SLOTS];
    tn_row_block block[SLOTS];
    tn_real rows[SLOTS * KEYS * WIDTH], grads[SLOTS * KEYS * WIDTH];
    tn_real numeric[ROWS * NUMERIC], label[ROWS];
} bench_batch;

/* One key per slot and example; a block for each slot's. */
static void fill(bench_batch *b)
{
    enum { FLOATS = KEYS * WIDTH };
    for (uint32_t r = 0; r < ROWS; r++) {
        b->offset[r + 1] = r + 1;
        b->label[r] = (tn_real)(r % 2);
    }
    for (uint32_t s = 0; s < SLOTS; s++) {
        for (uint32_t r = 0; r < ROWS; r++) {
            b->index[s][r] = s * FLOATS + r % KEYS * WIDTH;
        }
        b->slot[s] = s;
        b->bag[s] = (tn_bag){.offset = b->offset, .index = b->index[s], .ones = true};
        b->block[s] = (tn_row_block){s * FLOATS, (s + 1) * FLOATS, &b->slot[s], 1, true};
    }
    b->sparse = (tn_sparse){SLOTS * FLOATS, b->rows, b->grads, b->bag, b->block, SLOTS};
}

typedef struct bench_op {
    tn_graph *g;
    tn_graph_feed feed;
    bool backward;
} bench_op;

static bool has_backward(const tn_op *op)
{
    return op->backward != NULL || op->sparse.backward_rows != NULL ||
           op->sparse.backward_blocks != NULL;
}

static void randomize(const tn_graph *g)
{
    const tn_node *n;
    uint64_t stream = tn_stream0(1);
    for (uint32_t i = 0; (n = tn_graph_node(g, i)) != NULL; i++) {
        for (size_t k = 0; n->op == NULL && k < (size_t)n->shape.rows * n->stride; k++) {
            n->val[k] = (tn_real)(0.1 + tn_unit(tn_draw(stream, k)));
        }
    }
}

/* loss = sum of the example's columns, so that every entry has a gradient. */
static bench_op open_op(const tn_op *op, bench_batch *b)
{
    bench_op o = {.backward = has_backward(op)};
    o.g = tn_graph_new(&(tn_graph_opts){.max_rows = ROWS, .train = true});
    tn_node *loss = tn_apply(o.g, &tn_op_sum_cols, "loss", TN_IN(tn_op_example(o.g, op)), NULL);
    tn_error err = {0};
    tn_status status = tn_graph_finish(o.g, &(tn_wanted){.loss = loss}, &err);
    TN_ASSERT(status == TN_OK);
    randomize(o.g);
    o.feed = (tn_graph_feed){.rows = ROWS,
                             .sparse = &b->sparse,
                             .numeric = b->numeric,
                             .label = b->label,
                             .info = {.training = true}};
    return o;
}

static void run(const bench_op *o)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        tn_forward(o->g, &o->feed);
        if (o->backward) {
            tn_backward(o->g);
        }
    }
}

/* ---- counting: the operator's own passes, without the graph's work around them ---- */

static const tn_op *real;
static volatile int n_counted; /* see counted.c */

__attribute__((noinline)) static void pass_backward_rows(tn_node *self, const tn_row_block *block)
{
    real->sparse.backward_rows(self, block);
    n_counted++;
}

__attribute__((noinline)) static void pass_backward_blocks(tn_node *self, const tn_row_block *block,
                                                           uint32_t n)
{
    real->sparse.backward_blocks(self, block, n);
    n_counted++;
}

__attribute__((noinline)) static void counted_pass(tn_rows_fn *pass, tn_node *self, tn_range range)
{
    pass(self, range);
    n_counted++;
}

#define PASS(name, member)                                                                         \
    static void pass_##name(tn_node *self, tn_range range)                                         \
    {                                                                                              \
        counted_pass(real->member, self, range);                                                   \
    }
PASS(forward_cols, cols[TN_FORWARD_COLS])
PASS(forward, forward)
PASS(prepare, cols[TN_PREPARE])
PASS(backward_cols, cols[TN_BACKWARD_COLS])
PASS(backward, backward)
PASS(backward_params, cols[TN_BACKWARD_PARAMS])

static void count_op(const tn_op *op, bench_batch *b)
{
    bench_op o = open_op(op, b);
    tn_op counted = *op;
    const tn_node *n;
#define COUNT(name, member) counted.member = op->member == NULL ? NULL : pass_##name
    COUNT(forward_cols, cols[TN_FORWARD_COLS]);
    COUNT(forward, forward);
    COUNT(prepare, cols[TN_PREPARE]);
    COUNT(backward_cols, cols[TN_BACKWARD_COLS]);
    COUNT(backward, backward);
    COUNT(backward_params, cols[TN_BACKWARD_PARAMS]);
    COUNT(backward_rows, sparse.backward_rows);
    COUNT(backward_blocks, sparse.backward_blocks);
    real = op;
    for (uint32_t i = 0; (n = tn_graph_node(o.g, i)) != NULL; i++) {
        if (n->op == op) {
            tn_graph_find(o.g, n->name)->op = &counted;
        }
    }
    run(&o);
    tn_graph_free(o.g);
}

static void report(const tn_op *op, bench_batch *b)
{
    bench_op o = open_op(op, b);
    double least = 1e9;
    for (int i = 0; i < RUNS; i++) {
        double start = tn_clock_s();
        run(&o);
        double time = tn_clock_s() - start;
        least = time < least ? time : least;
    }
    printf("%-16s %8.2f ns/row  %s\n", op->name, least / TIMES / ROWS * 1e9, op->formula);
    tn_graph_free(o.g);
}

int main(int argc, char **argv)
{
    tn_flush_denormals();
    bench_batch *b = tn_alloc(1, sizeof *b, "a batch");
    const char *only = argc > 1 ? argv[1] : NULL;
    bool found = only == NULL;
    fill(b);
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        if (only == NULL) {
            report(*op, b);
        } else if (strcmp(only, "--list") == 0) {
            (void)puts((*op)->name);
            found = true;
        } else if (strcmp(only, (*op)->name) == 0) {
            count_op(*op, b);
            found = true;
        }
    }
    tn_free(b);
    return found ? 0 : 2;
}
