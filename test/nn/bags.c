/* bags.c - see bags.h. */
#include "nn/bags.h"

#include "base/keys/record.h"
#include "nn/near.h"
#include "support/test.h"

enum { ROWS = TN_BAGS_ROWS, SLOTS = TN_BAGS_SLOTS, KEYS = TN_BAGS_KEYS, ENTRIES = 3 };
enum { LINE = 16, PARTS = 3 };

typedef struct bags {
    tn_sparse sparse;
    tn_bag bag[SLOTS];
    tn_row_block block[SLOTS * PARTS];
    uint32_t slot[SLOTS];
    uint32_t offset[SLOTS][ROWS + 1], index[SLOTS][ENTRIES * ROWS];
    float weight[ENTRIES * ROWS];
    tn_real *rows, *grads;
} bags;

static const tn_real untouched = 7;

/* Floats from the first row of a slot to that of the next: rows, and a gap behind. */
static uint32_t slot_floats(uint32_t dim)
{
    return (KEYS * (dim + 1) / LINE + 1) * LINE;
}

static uint32_t entries_of(uint32_t slot, uint32_t row, bool mixed)
{
    return !mixed ? 1 : slot == 1 ? row % 3 : slot == 3 ? row % 4 : 1;
}

static void fill_slot(bags *b, const tn_bags_run *run, uint32_t s)
{
    uint64_t stream = tn_stream0(s + 1);
    const uint32_t from = run->shared ? 0 : s * slot_floats(run->dim);
    uint32_t n = 0;
    bool ones = true;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t j = 0; j < entries_of(s, r, run->mixed); j++, n++) {
            uint32_t key = (uint32_t)tn_below(tn_draw(stream, n), KEYS);
            b->index[s][n] = from + key * (run->dim + 1);
        }
        b->offset[s][r + 1] = n;
        ones &= n == r + 1;
    }
    b->slot[s] = s;
    b->bag[s] = (tn_bag){.offset = b->offset[s],
                         .index = b->index[s],
                         .weight = run->mixed && (s == 2 || s == 3) ? b->weight : NULL,
                         .ones = ones};
}

/* The rows of slot s in so many blocks. */
static void cut_slot(bags *b, const tn_bags_run *run, uint32_t s, uint32_t parts)
{
    const uint32_t width = run->dim + 1;
    const uint32_t from = s * slot_floats(run->dim);
    for (uint32_t i = 0; i < parts; i++) {
        b->block[b->sparse.n_blocks++] = (tn_row_block){.from = from + KEYS * i / parts * width,
                                                        .to = from + KEYS * (i + 1) / parts * width,
                                                        .slot = &b->slot[s],
                                                        .n_slots = run->shared ? SLOTS : 1,
                                                        .whole = parts == 1};
    }
}

static void cut_rows(bags *b, const tn_bags_run *run)
{
    const uint32_t n = run->shared ? 1 : SLOTS;
    for (uint32_t s = 0; run->cut != TN_BAGS_IN_ONE && s < n; s++) {
        cut_slot(b, run, s, run->cut == TN_BAGS_IN_THREE ? PARTS : 1);
    }
    if (run->cut == TN_BAGS_IN_ONE) {
        const uint32_t to = (n - 1) * slot_floats(run->dim) + KEYS * (run->dim + 1);
        b->block[b->sparse.n_blocks++] = (tn_row_block){0, to, b->slot, SLOTS, true};
    }
}

static bags *bags_new(const tn_bags_run *run)
{
    uint64_t stream = tn_stream0(100);
    bags *b = tn_alloc(1, sizeof *b, "a batch");
    const uint32_t floats = SLOTS * slot_floats(run->dim);
    b->rows = tn_alloc(floats, sizeof *b->rows, "rows");
    b->grads = tn_alloc(floats, sizeof *b->grads, "gradients");
    for (uint32_t i = 0; i < ENTRIES * ROWS; i++) {
        b->weight[i] = (float)(2 * tn_unit(tn_draw(stream, i)) - 1);
    }
    for (uint32_t s = 0; s < SLOTS; s++) {
        fill_slot(b, run, s);
    }
    for (uint32_t i = 0; i < floats; i++) {
        b->rows[i] = (tn_real)(2 * tn_unit(tn_draw(stream, 10000 + i)) - 1);
        b->grads[i] = untouched; /* must not be added to */
    }
    b->sparse = (tn_sparse){floats, b->rows, b->grads, b->bag, b->block, 0};
    cut_rows(b, run);
    return b;
}

static void bags_free(bags *b)
{
    tn_free(b->rows);
    tn_free(b->grads);
    tn_free(b);
}

static double *factors(uint32_t cols)
{
    double *dy = tn_alloc((size_t)ROWS * cols, sizeof *dy, "factors");
    for (uint32_t i = 0; i < ROWS * cols; i++) {
        dy[i] = tn_unit(tn_draw(tn_stream0(7), i)) - .5;
    }
    return dy;
}

/* Appends the gradients of all rows, slot by slot, without the gaps. */
static void take_grads(const bags *b, const tn_bags_run *run, tn_real *out)
{
    const uint32_t n = KEYS * (run->dim + 1);
    const uint32_t step = slot_floats(run->dim);
    for (uint32_t s = 0; s < SLOTS; s++) {
        memcpy(out + (size_t)s * n, b->grads + (size_t)s * step, n * sizeof *out);
    }
}

/* One big block may clear the gaps within it. */
static void check_gaps(const bags *b, const tn_bags_run *run)
{
    for (uint32_t i = 0; i < b->sparse.floats; i++) {
        bool inside = false;
        for (uint32_t k = 0; k < b->sparse.n_blocks; k++) {
            inside |= b->block[k].from <= i && i < b->block[k].to;
        }
        fail_if(!inside && (b->grads[i] < untouched || b->grads[i] > untouched),
                "dim %u: float %u of no block was written to", run->dim, i);
    }
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

/* Room for y and the gradients of all rows. */
static tn_real *results_new(const tn_bags_run *run, uint32_t cols, size_t *n)
{
    *n = (size_t)ROWS * cols + (size_t)SLOTS * KEYS * (run->dim + 1);
    return tn_alloc(*n, sizeof(tn_real), "results");
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
    double *dy FREED(tn_free) = factors(cols);
    t.feed.sparse = &b->sparse;
    tn_trial_run(&t, dy);
    check_gaps(b, run);
    *op = y->op;
    tn_real *out = results_new(run, cols, n);
    for (uint32_t r = 0; r < ROWS; r++) {
        memcpy(out + (size_t)r * cols, tn_val_row(y, r), cols * sizeof *out);
    }
    take_grads(b, run, out + (size_t)ROWS * cols);
    tn_graph_free(g);
    bags_free(b);
    return out;
}

/* What row r's entries of slot s add: to y, assigned first, and to their gradients. */
static void add_by_hand(const bags *b, uint32_t dim, uint32_t s, uint32_t r, const double *dy,
                        tn_real *y)
{
    for (uint32_t j = b->offset[s][r]; j < b->offset[s][r + 1]; j++) {
        const tn_real x = b->bag[s].weight != NULL ? (tn_real)b->bag[s].weight[j] : 1;
        const size_t at = (size_t)b->index[s][j] + 1;
        for (uint32_t c = 0; c < dim; c++) {
            const tn_real here = x * b->rows[at + c];
            y[c] = j == b->offset[s][r] ? here : y[c] + here;
            b->grads[at + c] += x * (tn_real)dy[c];
        }
    }
}

tn_real *tn_bags_by_hand(const tn_bags_run *run, size_t *n)
{
    bags *b = bags_new(run);
    const uint32_t cols = SLOTS * run->dim;
    double *dy FREED(tn_free) = factors(cols);
    tn_real *out = results_new(run, cols, n);
    for (uint32_t s = 0; s < (run->shared ? 1 : SLOTS); s++) {
        memset(b->grads + (size_t)s * slot_floats(run->dim), 0,
               (size_t)KEYS * (run->dim + 1) * sizeof *b->grads);
    }
    for (uint32_t i = 0; i < ROWS * SLOTS; i++) {
        const size_t at = (size_t)i * run->dim;
        add_by_hand(b, run->dim, i % SLOTS, i / SLOTS, dy + at, out + at);
    }
    take_grads(b, run, out + (size_t)ROWS * cols);
    bags_free(b);
    return out;
}
