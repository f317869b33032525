/* nets.c - see nets.h. */
#include "nn/nets.h"

#include "base/keys/record.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "nn/loss/loss.h"
#include "nn/passes/finish.h"
#include "support/test.h"

enum { SLOTS = 6, DIM = 8, WIDTH = DIM + 1, KEYS = 33 /* per slot */, NUMERIC = 3, UNITS = 40 };
enum { ENTRIES = 3, SLOT_FLOATS = KEYS * WIDTH, FLOATS = SLOTS * SLOT_FLOATS };

static const tn_segment wide_segment = {.name = "wide", .at = 0, .dim = 1};
static const tn_segment deep_segment = {.name = "deep", .at = 1, .dim = DIM};
static const tn_init glorot = {.kind = TN_INIT_GLOROT_UNIFORM};
static const tn_init zero = {.kind = TN_INIT_CONSTANT};
static const tn_init one = {.kind = TN_INIT_CONSTANT, .a = 1};

static tn_node *embedding(tn_graph *g, const char *name, const tn_segment *segment)
{
    static const char *const names[SLOTS] = {"a", "b", "c", "d", "e", "f"};
    tn_embed_slot slots[SLOTS];
    for (uint32_t s = 0; s < SLOTS; s++) {
        slots[s] = (tn_embed_slot){.name = names[s],
                                   .slot = s,
                                   .segment = segment,
                                   .pool = s % 2 == 0 ? TN_POOL_MEAN : TN_POOL_SUM};
    }
    return tn_embed(g, name, slots, SLOTS);
}

tn_node *tn_test_net_input(tn_graph *g, const char *name)
{
    if (strcmp(name, "in.wide") == 0) {
        return embedding(g, name, &wide_segment);
    }
    if (strcmp(name, "in.deep") == 0) {
        return embedding(g, name, &deep_segment);
    }
    return strcmp(name, "in.numeric") == 0
               ? tn_apply(g, &tn_op_numeric, name, NULL, 0, &(tn_numeric_attr){.cols = NUMERIC})
               : NULL;
}

static tn_node *batch_norm(tn_test_net *n, tn_node *x)
{
    tn_shape s = {1, x->shape.cols};
    tn_node *params[] = {tn_param(n->g, n->params, "bn.gamma", s, one),
                         tn_param(n->g, n->params, "bn.beta", s, zero),
                         tn_running(n->g, n->params, "bn.mean", s, 0),
                         tn_running(n->g, n->params, "bn.var", s, 1)};
    return tn_apply(n->g, &tn_op_batch_norm, "bn",
                    TN_IN(x, params[0], params[1], params[2], params[3]),
                    &(tn_batch_norm_attr){1e-5, 0.9, true});
}

static tn_node *linear(tn_test_net *n, tn_node *x, const char *name, uint32_t units)
{
    char w[32];
    char b[32];
    (void)snprintf(w, sizeof w, "%s.W", name);
    (void)snprintf(b, sizeof b, "%s.b", name);
    tn_node *z = tn_apply(
        n->g, &tn_op_matmul, NULL,
        TN_IN(x, tn_param(n->g, n->params, w, (tn_shape){x->shape.cols, units}, glorot)), NULL);
    return tn_apply(n->g, &tn_op_bias, name,
                    TN_IN(z, tn_param(n->g, n->params, b, (tn_shape){1, units}, zero)), NULL);
}

tn_test_net tn_test_net_build(tn_params *params, const tn_graph_opts *opts)
{
    tn_test_net n = {.g = tn_graph_new(opts), .params = params};
    if (params == NULL) {
        n.params = tn_params_new();
    }
    tn_graph *g = n.g;
    tn_node *wide = tn_test_net_input(g, "in.wide");
    n.deep = tn_test_net_input(g, "in.deep");
    n.numeric = tn_test_net_input(g, "in.numeric");
    n.e = tn_apply(g, &tn_op_concat, "e", TN_IN(n.deep, n.numeric), NULL);
    tn_node *z = linear(&n, n.e, "deep.1", UNITS);
    tn_node *h = tn_activate(g, "deep.1.act", batch_norm(&n, z), "relu");
    h = tn_apply(g, &tn_op_dropout, "deep.1.drop", TN_IN(h), &(tn_dropout_attr){.2});
    n.hidden = tn_activate(g, "deep.2.act", linear(&n, h, "deep.2", UNITS), "tanh");
    tn_shape row = {1, n.e->shape.cols};
    tn_node *wb[] = {tn_param(g, n.params, "cross.w", row, glorot),
                     tn_param(g, n.params, "cross.b", row, zero)};
    tn_node *cross = tn_apply(g, &tn_op_cross, "cross", TN_IN(n.e, n.e, wb[0], wb[1]), NULL);
    tn_node *both = tn_apply(g, &tn_op_concat, "both", TN_IN(n.hidden, cross), NULL);
    tn_node *parts[] = {linear(&n, both, "out", 1),
                        tn_apply(g, &tn_op_sum_cols, "wide", TN_IN(wide), NULL),
                        tn_apply(g, &tn_op_fm, "fm", TN_IN(n.deep), &(tn_pairs_attr){DIM})};
    n.logit = tn_apply(g, &tn_op_add, "logit", parts, 3, NULL);
    n.loss = tn_apply(g, &tn_loss_mse.op, "loss", TN_IN(n.logit), NULL);
    return n;
}

void tn_test_net_finish(tn_test_net *n)
{
    tn_error err = {0};
    tn_wanted wanted = {.logit = n->logit, .loss = n->loss};
    assert_ok(tn_graph_finish(n->g, &wanted, &err), err.text);
    tn_params_init(n->params, 42);
}

struct tn_test_batch {
    tn_sparse sparse;
    tn_bag bag[SLOTS];
    uint32_t *offset[SLOTS], *index[SLOTS];
    float *weight;
    tn_row_block block[SLOTS];
    uint32_t slot[SLOTS];
    tn_real *rows, *grads, *numeric, *label, *row_weight;
    uint32_t n;
};

/* Slot 0 has one value each, slot 1 none to two, slot 2 three with weights, the rest one. */
static uint32_t entries_of(uint32_t slot, uint32_t row)
{
    return slot == 1 ? row % 3 : slot == 2 ? ENTRIES : 1;
}

static void fill_bags(tn_test_batch *b, uint64_t stream)
{
    for (uint32_t s = 0; s < SLOTS; s++) {
        b->offset[s] = tn_alloc(b->n + 1, sizeof(uint32_t), "a batch");
        b->index[s] = tn_alloc((size_t)b->n * ENTRIES, sizeof(uint32_t), "a batch");
        uint32_t at = 0;
        for (uint32_t r = 0; r < b->n; r++) {
            for (uint32_t k = 0; k < entries_of(s, r); k++, at++) {
                uint64_t x = tn_draw(stream, (uint64_t)s << 40 | at);
                b->index[s][at] = s * SLOT_FLOATS + (uint32_t)tn_below(x, KEYS) * WIDTH;
            }
            b->offset[s][r + 1] = at;
        }
        b->bag[s] = (tn_bag){
            .offset = b->offset[s], .index = b->index[s], .weight = s == 2 ? b->weight : NULL};
        b->slot[s] = s;
        b->block[s] = (tn_row_block){s * SLOT_FLOATS, (s + 1) * SLOT_FLOATS, &b->slot[s], 1, true};
    }
}

static tn_real real_of(uint64_t stream, uint64_t i)
{
    return (tn_real)(2 * tn_unit(tn_draw(stream, i)) - 1);
}

tn_test_batch *tn_test_batch_new(uint32_t rows, uint64_t seed)
{
    uint64_t stream = tn_stream0(seed);
    tn_test_batch *b = tn_alloc(1, sizeof *b, "a batch");
    b->n = rows;
    b->weight = tn_alloc((size_t)rows * ENTRIES, sizeof *b->weight, "a batch");
    b->rows = tn_alloc(FLOATS, sizeof *b->rows, "a batch");
    b->grads = tn_alloc(FLOATS, sizeof *b->grads, "a batch");
    b->numeric = tn_alloc((size_t)rows * NUMERIC, sizeof *b->numeric, "a batch");
    b->label = tn_alloc(rows, sizeof *b->label, "a batch");
    b->row_weight = tn_alloc(rows, sizeof *b->row_weight, "a batch");
    for (uint32_t i = 0; i < rows * ENTRIES; i++) {
        b->weight[i] = (float)real_of(stream, 1000000 + i);
        b->numeric[i] = real_of(stream, 2000000 + i);
    }
    for (uint32_t i = 0; i < FLOATS; i++) {
        b->rows[i] = real_of(stream, 3000000 + i);
    }
    for (uint32_t i = 0; i < rows; i++) {
        b->label[i] = (tn_real)(i % 3 == 0);
        b->row_weight[i] = (tn_real)(1 + i % 4);
    }
    fill_bags(b, stream);
    b->sparse = (tn_sparse){FLOATS, b->rows, b->grads, b->bag, b->block, SLOTS};
    return b;
}

void tn_test_batch_free(tn_test_batch *b)
{
    for (uint32_t s = 0; s < SLOTS; s++) {
        tn_free(b->offset[s]);
        tn_free(b->index[s]);
    }
    tn_free(b->weight);
    tn_free(b->rows);
    tn_free(b->grads);
    tn_free(b->numeric);
    tn_free(b->label);
    tn_free(b->row_weight);
    tn_free(b);
}

tn_graph_feed tn_test_feed(tn_test_batch *b, bool training)
{
    return (tn_graph_feed){.rows = b->n,
                           .sparse = &b->sparse,
                           .numeric = b->numeric,
                           .label = b->label,
                           .weight = b->row_weight,
                           .info = {.seed = 7, .step = 2, .training = training}};
}

size_t tn_test_grads_size(const tn_test_batch *b)
{
    return b->sparse.floats;
}
