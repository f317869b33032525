/* bench_net.c - forward and backward of the two nets of docs/performance.md, from nodes alone.
 *
 *     bench_net [threads] [rows] [steps] [big|small]
 *     bench_net --list | NAME      for .ci/check-instructions
 *
 * Wide&Deep: 39 slots of dimension 8 and 1, one value each out of 384 keys, hidden layers
 * 400-400-400 or 128-64-32 with relu, bce. No reader, no table, no optimizer. Printed per net: rows
 * per second, and the share of the FMA peak measured in the same run, forward, backward, both.
 */
#include "base/keys/record.h"
#include "base/machine/machine_peak.h"
#include "base/thread/team.h"
#include "counted.h"
#include "figure.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/math/rng.h"
#include "base/thread/threads.h"
#include "nn/loss/loss.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 39, DIM = 8, WIDTH = DIM + 1, KEYS = 384, FLOATS = KEYS * WIDTH /* of a slot */ };

static const tn_segment wide_segment = {.name = "wide", .at = 0, .dim = 1};
static const tn_segment deep_segment = {.name = "deep", .at = 1, .dim = DIM};

typedef struct bench {
    tn_sparse sparse;
    tn_bag bag[SLOTS];
    tn_row_block block[SLOTS];
    uint32_t slot[SLOTS];
    tn_graph_feed feed;
    tn_graph *g;
    tn_params *params;
} bench;

/* Keys of a slot as they come from clicks: a few are everywhere. */
static uint32_t key_of(uint64_t x)
{
    double u = tn_unit(x);
    return (uint32_t)(u * u * u * KEYS);
}

static void fill_batch(bench *b, uint32_t rows)
{
    uint64_t stream = tn_stream0(7);
    const size_t floats = (size_t)SLOTS * FLOATS;
    tn_real *table = tn_alloc(floats, sizeof *table, "rows");
    tn_real *label = tn_alloc(rows, sizeof *label, "labels");
    for (size_t i = 0; i < floats; i++) {
        table[i] = (tn_real)(0.1 * tn_normal(tn_draw(stream, i)));
    }
    for (uint32_t s = 0; s < SLOTS; s++) {
        uint32_t *offset = tn_alloc(rows + 1, sizeof *offset, "bags");
        uint32_t *index = tn_alloc(rows, sizeof *index, "bags");
        for (uint32_t r = 0; r < rows; r++) {
            offset[r + 1] = r + 1;
            index[r] = s * FLOATS + key_of(tn_draw(stream, (uint64_t)s << 32 | r)) * WIDTH;
        }
        b->bag[s] = (tn_bag){.offset = offset, .index = index, .ones = true};
        b->slot[s] = s;
        b->block[s] = (tn_row_block){s * FLOATS, (s + 1) * FLOATS, &b->slot[s], 1, true};
    }
    for (uint32_t r = 0; r < rows; r++) {
        label[r] = (tn_real)(r % 4 == 0);
    }
    b->sparse = (tn_sparse){.floats = SLOTS * FLOATS,
                            .rows = table,
                            .grads = tn_alloc(floats, sizeof(tn_real), "gradients"),
                            .bag = b->bag,
                            .block = b->block,
                            .n_blocks = SLOTS};
    b->feed = (tn_graph_feed){
        .rows = rows, .sparse = &b->sparse, .label = label, .info = {.training = true, .seed = 1}};
}

static tn_node *embedding(tn_graph *g, const char *name, const tn_segment *segment)
{
    tn_embed_slot slots[SLOTS];
    char names[SLOTS][8];
    for (uint32_t s = 0; s < SLOTS; s++) {
        (void)snprintf(names[s], sizeof names[s], "c%u", s + 1);
        slots[s] =
            (tn_embed_slot){.name = names[s], .slot = s, .segment = segment, .pool = TN_POOL_SUM};
    }
    return tn_embed(g, name, slots, SLOTS);
}

static tn_node *layer(bench *b, tn_node *x, uint32_t units, uint32_t number, bool act)
{
    char name[4][32];
    static const char *const suffix[] = {".W", ".b", ".z", ""};
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name[i], sizeof name[i], "deep.%u%s", number, suffix[i]);
    }
    tn_init glorot = {.kind = TN_INIT_GLOROT_UNIFORM};
    tn_init zero = {.kind = TN_INIT_CONSTANT};
    tn_node *w = tn_param(b->g, b->params, name[0], (tn_shape){x->shape.cols, units}, glorot);
    tn_node *bias = tn_param(b->g, b->params, name[1], (tn_shape){1, units}, zero);
    tn_node *z =
        tn_apply(b->g, &tn_op_bias, name[2],
                 TN_IN(tn_apply(b->g, &tn_op_matmul, NULL, TN_IN(x, w), NULL), bias), NULL);
    return act ? tn_activate(b->g, name[3], z, "relu") : z;
}

static void build(bench *b, const tn_graph_opts *opts, const uint32_t units[3])
{
    b->params = tn_params_new();
    b->g = tn_graph_new(opts);
    tn_node *wide = tn_apply(b->g, &tn_op_sum_cols, "wide",
                             TN_IN(embedding(b->g, "in.wide", &wide_segment)), NULL);
    tn_node *x = embedding(b->g, "in.deep", &deep_segment);
    for (uint32_t i = 0; i < 3; i++) {
        x = layer(b, x, units[i], i + 1, true);
    }
    x = layer(b, x, 1, 4, false);
    tn_node *logit = tn_apply(b->g, &tn_op_add, "logit", TN_IN(x, wide), NULL);
    tn_node *loss =
        tn_apply(b->g, &tn_loss_bce.op, "loss", TN_IN(logit), tn_loss_bce.op.example.attr);
    tn_error err = {0};
    if (tn_graph_finish(b->g, &(tn_wanted){.logit = logit, .loss = loss}, &err) != TN_OK) {
        (void)fprintf(stderr, "bench_net: %s\n", err.text);
        exit(1); // NOLINT(concurrency-mt-unsafe): nothing else runs yet
    }
    tn_params_init(b->params, 42);
}

/* Seconds: the median says what a run is like, the least what it would be alone on the machine. */
typedef struct result {
    tn_spread forward, backward;
} result;

static result measure(bench *b, uint32_t steps)
{
    static tn_samples forward;
    static tn_samples backward;
    forward.n = backward.n = 0;
    for (uint32_t i = 0; i < steps + 3; i++) {
        double t0 = tn_clock_s();
        tn_forward(b->g, &b->feed);
        double t1 = tn_clock_s();
        tn_backward(b->g);
        if (i >= 3) {
            tn_sample(&forward, t1 - t0);
            tn_sample(&backward, tn_clock_s() - t1);
        }
    }
    return (result){tn_spread_of(&forward), tn_spread_of(&backward)};
}

static void run(const uint32_t units[3], tn_team *team, uint32_t threads, uint32_t rows,
                uint32_t steps)
{
    static bench b;
    fill_batch(&b, rows);
    build(&b, &(tn_graph_opts){.max_rows = rows, .train = true, .team = team}, units);
    double flops = 0; /* multiply-adds times two of the products of one row, forward */
    uint32_t in = SLOTS * DIM;
    for (int i = 0; i < 3; i++) {
        flops += 2.0 * in * units[i];
        in = units[i];
    }
    flops = (flops + 2.0 * in) * rows;
    double peak = tn_peak_gflops(5) * threads * 1e9;
    result r = measure(&b, steps);
    double after = tn_peak_gflops(5) * threads * 1e9;
    peak = after > peak ? after : peak;
    double both = r.forward.median + r.backward.median;
    double least = r.forward.least + r.backward.least;
    printf(
        "%u-%u-%u rows %u threads %u: forward %.3f ms %.0f%%, backward %.3f ms %.0f%%, both %.0f "
        "rows/s %.1f%% (least %.1f%%: %.0f%%, %.0f%%) of %.0f GFLOP/s (%s)\n",
        units[0], units[1], units[2], rows, threads, r.forward.median * 1e3,
        100 * flops / r.forward.median / peak, r.backward.median * 1e3,
        200 * flops / r.backward.median / peak, rows / both, 300 * flops / both / peak,
        300 * flops / least / peak, 100 * flops / r.forward.least / peak,
        200 * flops / r.backward.least / peak, peak * 1e-9, tn_peak_kind());
    tn_graph_free(b.g);
    tn_params_free(b.params);
}

/* ---- counting: a step of the small net, products included ---- */

static void go_forward(void *job)
{
    const bench *b = job;
    tn_forward(b->g, &b->feed);
}

static void go_backward(void *job)
{
    const bench *b = job;
    tn_backward(b->g);
}

static void count(void (*work)(void *job))
{
    enum { ROWS = 256 };
    static bench b;
    fill_batch(&b, ROWS);
    build(&b, &(tn_graph_opts){.max_rows = ROWS, .train = true}, (const uint32_t[]){128, 64, 32});
    go_forward(&b);
    tn_count(work, &b);
    tn_graph_free(b.g);
    tn_params_free(b.params);
}

static void count_forward(void)
{
    count(go_forward);
}

static void count_backward(void)
{
    count(go_backward);
}

static const tn_counted counted[] = {
    {"forward", count_forward}, {"backward", count_backward}, {NULL, NULL}};

int main(int argc, char **argv)
{
    if (tn_counted_main(argc, argv, counted)) {
        return 0;
    }
    tn_flush_denormals();
    uint32_t threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    uint32_t rows = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1024;
    uint32_t steps = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 50;
    tn_team *team = NULL;
    tn_error err = {0};
    if (threads == 0 || rows == 0 || steps == 0 || tn_team_open(&team, threads, &err) != TN_OK) {
        (void)fprintf(stderr, "usage: bench_net [threads] [rows] [steps] [big|small]\n");
        return 2;
    }
    const char *only = argc > 4 ? argv[4] : "";
    if (strcmp(only, "small") != 0) {
        run((const uint32_t[]){400, 400, 400}, team, threads, rows, steps);
    }
    if (strcmp(only, "big") != 0) {
        run((const uint32_t[]){128, 64, 32}, team, threads, rows, steps);
    }
    tn_team_close(team);
    return 0;
}
