/* gradcheck.c - see gradcheck.h. Central differences, every entry. */
#include "nn/gradcheck.h"

#include "nn/graph/embed.h"
#include "nn/graph/graphcore.h"
#include "nn/passes/finish.h"
#include "support/test.h"

static const double step = sizeof(tn_real) == 8 ? 1e-5 : 0x1p-8;

enum { KEYS = 7, WIDTH = 4, FLOATS = KEYS * WIDTH, ENTRIES_MAX = 64 };

struct tn_check_batch {
    tn_sparse sparse;
    tn_bag bag[TN_CHECK_SLOTS];
    uint32_t offset[TN_CHECK_SLOTS][TN_CHECK_ROWS + 1];
    uint32_t index[TN_CHECK_SLOTS][ENTRIES_MAX];
    float weight[TN_CHECK_SLOTS][ENTRIES_MAX];
    uint32_t slot[TN_CHECK_SLOTS];
    tn_row_block block[2];
    tn_real rows[FLOATS];
    tn_real grads[FLOATS];
    tn_real numeric[TN_CHECK_ROWS * TN_CHECK_NUMERIC];
    tn_real label[TN_CHECK_ROWS];
    uint64_t group[TN_CHECK_ROWS];
};

tn_real tn_random_real(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    double u = (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0;
    return (tn_real)(u + (u < 0 ? -0.1 : 0.1));
}

/* 0 to 3 entries per example and slot; slot 0 has no weights. A key may come twice, and in all
 * slots. */
static void fill_bags(struct tn_check_batch *b, uint64_t *seed)
{
    for (uint32_t s = 0; s < TN_CHECK_SLOTS; s++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < TN_CHECK_ROWS; r++) {
            b->offset[s][r] = n;
            for (uint32_t k = 0; k < (r + s) % 4; k++) {
                b->index[s][n] =
                    (uint32_t)(fabs((double)tn_random_real(seed)) * 1e6) % KEYS * WIDTH;
                b->weight[s][n] = (float)tn_random_real(seed);
                n++;
            }
        }
        b->offset[s][TN_CHECK_ROWS] = n;
        b->slot[s] = s;
        b->bag[s] = (tn_bag){
            .offset = b->offset[s], .index = b->index[s], .weight = s == 0 ? NULL : b->weight[s]};
    }
}

static struct tn_check_batch *new_batch(uint64_t *seed)
{
    struct tn_check_batch *b = tn_alloc(1, sizeof *b, "a batch");
    fill_bags(b, seed);
    for (uint32_t i = 0; i < FLOATS; i++) {
        b->rows[i] = tn_random_real(seed);
        b->grads[i] = 7; /* must not be added to */
    }
    for (uint32_t i = 0; i < TN_CHECK_ROWS * TN_CHECK_NUMERIC; i++) {
        b->numeric[i] = tn_random_real(seed);
    }
    for (uint32_t r = 0; r < TN_CHECK_ROWS; r++) {
        b->label[r] = (tn_real)(r % 3 == 0);
        b->group[r] = r % 2;
    }
    b->block[0] = (tn_row_block){0, 3 * WIDTH, b->slot, TN_CHECK_SLOTS, false};
    b->block[1] = (tn_row_block){3 * WIDTH, FLOATS, b->slot, TN_CHECK_SLOTS, false};
    b->sparse = (tn_sparse){FLOATS, b->rows, b->grads, b->bag, b->block, 2};
    return b;
}

static void randomize(tn_node *leaf, uint64_t *seed)
{
    for (size_t r = 0; r < leaf->shape.rows; r++) {
        for (size_t k = 0; k < leaf->shape.cols; k++) {
            tn_real x = tn_random_real(seed);
            leaf->val[r * leaf->stride + k] = leaf->is_state && x < 0 ? -x : x;
        }
    }
}

static const tn_real sentinel = (tn_real)12345.5;

void tn_check_open(tn_check *c, tn_node *(*build)(tn_graph *g), const tn_graph_opts *opts,
                   uint64_t seed)
{
    *c = (tn_check){.batch = new_batch(&seed)};
    tn_graph_opts o = *opts;
    o.max_rows = TN_CHECK_ROWS_MAX;
    o.reduction = TN_REDUCE_SUM;
    c->g = tn_graph_new(&o);
    c->y = build(c->g);
    c->factor = tn_input_positions(c->g, "factor", c->y->shape.cols, c->y->positions, false);
    tn_node *product = tn_apply(c->g, &tn_op_mul, NULL, TN_IN(c->y, c->factor), NULL);
    if (product->positions.max_len > 0) {
        product = tn_apply(c->g, &tn_op_sequence_pool, NULL, TN_IN(product),
                           &(tn_sequence_pool_attr){.kind = TN_SEQUENCE_SUM});
    }
    c->loss = tn_apply(c->g, &tn_op_sum_cols, "loss", TN_IN(product), NULL);
    tn_error err = {0};
    tn_status status = tn_graph_finish(c->g, &(tn_wanted){.loss = c->loss}, &err);
    assert_ok(status, err.text);
    for (size_t i = 0; i < c->g->block_size; i++) {
        c->g->block[i] = sentinel;
    }
    tn_node *n;
    for (uint32_t k = 0; (n = tn_graph_node(c->g, k)) != NULL; k++) {
        if (n->op == NULL && n->val != NULL) {
            const tn_positions *p = &n->positions;
            if (!n->is_param) {
                n->shape.rows = TN_CHECK_ROWS;
            }
            if (p->max_len > 0) {
                n->shape.rows = c->batch->offset[p->slot][TN_CHECK_ROWS] + p->extra * TN_CHECK_ROWS;
            }
            randomize(n, &seed);
        }
    }
    c->has_grads = c->loss->grad != NULL;
    c->feed = (tn_graph_feed){.rows = TN_CHECK_ROWS,
                              .sparse = &c->batch->sparse,
                              .numeric = c->batch->numeric,
                              .label = c->batch->label,
                              .group = c->batch->group,
                              .info = {.seed = 42, .step = 3, .training = opts->train}};
}

void tn_check_close(tn_check *c)
{
    tn_graph_free(c->g);
    tn_free(c->batch);
}

/* The loss when *entry is moved to `value`; *entry is as before afterwards. */
static double loss_at(const tn_check *c, tn_real *entry, double value)
{
    tn_real before = *entry;
    *entry = (tn_real)value;
    tn_forward(c->g, &c->feed);
    *entry = before;
    return tn_graph_loss(c->g);
}

static double error_of(const tn_check *c, tn_real *entry, double exact)
{
    double at = (double)*entry;
    double up = loss_at(c, entry, at + step);
    double down = loss_at(c, entry, at - step);
    double numeric = (up - down) / (2 * step);
    return fabs(numeric - exact) / fmax(1.0, fmax(fabs(numeric), fabs(exact)));
}

static double leaf_error(const tn_check *c, tn_node *leaf, uint64_t *n_entries)
{
    double worst = 0;
    for (size_t r = 0; r < leaf->shape.rows; r++) {
        for (size_t k = 0; k < leaf->shape.cols; k++) {
            size_t i = r * leaf->stride + k;
            worst = fmax(worst, error_of(c, &leaf->val[i], (double)leaf->grad[i]));
            ++*n_entries;
        }
    }
    return worst;
}

static bool has_embed(const tn_check *c)
{
    return c->y->op->sparse.backward_rows != NULL || c->y->op->sparse.backward_blocks != NULL;
}

double tn_check_differences(tn_check *c, uint64_t *n_entries)
{
    double worst = 0;
    *n_entries = 0;
    tn_forward(c->g, &c->feed);
    if (!c->has_grads) {
        return 0;
    }
    tn_backward(c->g);
    tn_node *n;
    for (uint32_t k = 0; (n = tn_graph_node(c->g, k)) != NULL; k++) {
        if (n->op == NULL && n->grad != NULL && !n->is_state) {
            worst = fmax(worst, leaf_error(c, n, n_entries));
        }
    }
    for (uint32_t i = 0; has_embed(c) && i < FLOATS; i++) {
        worst = fmax(worst, error_of(c, &c->batch->rows[i], (double)c->batch->grads[i]));
        ++*n_entries;
    }
    tn_forward(c->g, &c->feed); /* leave the values where the gradients were taken */
    return worst;
}

static double gradient_size(const tn_check *c)
{
    double size = 0;
    for (uint32_t k = 0; k < c->y->n_in; k++) {
        const tn_node *x = c->y->in[k];
        for (size_t r = 0; x->grad != NULL && !x->is_state && r < x->shape.rows; r++) {
            for (size_t i = 0; i < x->shape.cols; i++) {
                size += fabs((double)x->grad[r * x->stride + i]);
            }
        }
    }
    for (uint32_t i = 0; has_embed(c) && i < FLOATS; i++) {
        size += fabs((double)c->batch->grads[i]);
    }
    return size;
}

/* The gradient that y had: a dense layer changes its own in place. */
static void restore_gradient(const tn_check *c)
{
    for (size_t r = 0; r < c->y->shape.rows; r++) {
        memcpy(tn_grad_row(c->y, r), tn_val_row(c->factor, r), c->y->shape.cols * sizeof(tn_real));
    }
}

static void clear_operands(const tn_check *c)
{
    for (uint32_t k = 0; k < c->y->n_in; k++) {
        const tn_node *x = c->y->in[k];
        for (size_t r = 0; x->grad != NULL && !x->is_state && r < x->shape.rows; r++) {
            tn_clear(x->grad + r * x->stride, x->shape.cols);
        }
        c->y->in[k]->first_writer = NULL; /* from now on everybody adds */
    }
    tn_clear(c->batch->grads, FLOATS);
}

static void backward_once(const tn_check *c)
{
    tn_node *y = c->y;
    tn_range cols = {0, y->shape.cols};
    restore_gradient(c);
    if (y->op->cols[TN_BACKWARD_COLS] != NULL) {
        y->op->cols[TN_BACKWARD_COLS](y, cols);
    }
    if (y->op->backward != NULL) {
        y->op->backward(y, (tn_range){0, y->op->by_row ? c->feed.rows : y->shape.rows});
    }
    if (y->op->cols[TN_BACKWARD_PARAMS] != NULL) {
        y->op->cols[TN_BACKWARD_PARAMS](y, cols);
    }
    for (uint32_t i = 0; y->op->sparse.backward_rows != NULL && i < c->batch->sparse.n_blocks;
         i++) {
        y->op->sparse.backward_rows(y, &c->batch->block[i]);
    }
    if (y->op->sparse.backward_blocks != NULL) {
        y->op->sparse.backward_blocks(y, c->batch->block, c->batch->sparse.n_blocks);
    }
}

bool tn_check_doubles(tn_check *c)
{
    clear_operands(c);
    backward_once(c);
    double once = gradient_size(c);
    backward_once(c);
    double twice = gradient_size(c);
    double tolerance = sizeof(tn_real) == 8 ? 1e-12 : 1e-5;
    return once > 0 && fabs(twice - 2 * once) <= tolerance * once;
}

/* Clears what may be written, then counts what is not as it was. */
static void blank(const tn_node *n, tn_real *matrix)
{
    for (size_t r = 0; matrix != NULL && r < n->shape.rows; r++) {
        for (size_t k = 0; k < n->shape.cols; k++) {
            matrix[r * n->stride + k] = sentinel;
        }
    }
}

uint64_t tn_check_strays(tn_check *c)
{
    tn_node *n;
    for (uint32_t k = 0; (n = tn_graph_node(c->g, k)) != NULL; k++) {
        if (n->place->alive && !n->is_param) {
            blank(n, n->val);
            blank(n, n->grad);
        }
    }
    uint64_t strays = 0;
    for (size_t i = 0; i < c->g->block_size; i++) {
        strays += c->g->block[i] < sentinel || c->g->block[i] > sentinel;
    }
    return strays;
}
