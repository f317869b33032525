/* op_ffm.c - field-aware factorization machines (Juan 2016): ffm, ffm_within, embed_ffm.
 *
 * A row of x holds f fields of f vectors of length dim; A[i,j] is the vector of field i for field
 * j, the values of the field folded into it:
 *
 *   ffm          y        = sum over i < j of <A[i,j], A[j,i]>
 *                dA[i,j] += dy A[j,i]        i != j
 *
 * ffm_within adds the pairs of values of one field, which meet by the vectors that they hold for
 * their own field. q has the sums of the values' squares (op_embed_squares.c):
 *
 *   ffm_within   y        = 1/2 sum_i (|A[i,i]|^2 - sum_c q[i,i]_c)
 *                dA[i,i] += dy A[i,i],  dq[i,i] -= dy / 2
 *
 * embed_ffm is what ffm(embed) gives, straight from the rows that an example holds; see below.
 */
#include "nn/embed/embedlist.h"

#include "base/core/compiler.h"
#include "config/field.h"
#include "nn/vec/vec.h"

enum { WIDTH_MAX = 1024 }; /* n * dim that embed_ffm does */

/* ---- the loops over pairs ----
 *
 * Field f of an example is n blocks of `dim` numbers; block g is what f holds for field g. Vectors
 * of four numbers, the usual length, go four by four: sixteen pairs lie in two blocks of 4 x 4
 * vectors, of which one is turned about its diagonal.
 *
 *     field[f .. f+3]   | f,g    f,g+1   f,g+2   f,g+3   |
 *                       | f+1,g  f+1,g+1 ..              |      times, entry by entry,
 *
 *     field[g .. g+3]   | g,f    g,f+1   g,f+2   g,f+3   |
 *                       | g+1,f  g+1,f+1 ..              |      its columns as rows
 *
 * What comes out has the same bits with every instruction set: additions are ordered lane by lane.
 */
typedef struct ffm_row {
    uint32_t n;
    uint32_t dim;
    const tn_real *const *field; /* n pointers to n * dim numbers */
} ffm_row;

enum { FOUR = 4, LANES = FOUR * FOUR };

/* Four vectors of four. */
typedef tn_real quad __attribute__((vector_size(LANES * sizeof(tn_real))));
/* The same where numbers lie, which is anywhere. */
typedef quad loose_quad __attribute__((aligned(sizeof(tn_real)), may_alias));

/* Rows of four blocks at `at`, as columns. */
TN_ALWAYS_INLINE void turn(const tn_real *const *row, size_t at, quad out[FOUR])
{
    quad a = *(const loose_quad *)(row[0] + at);
    quad b = *(const loose_quad *)(row[1] + at);
    quad c = *(const loose_quad *)(row[2] + at);
    quad d = *(const loose_quad *)(row[3] + at);
#define HALVES(x, y, i)                                                                            \
    __builtin_shufflevector(x, y, (i), (i) + 1, (i) + 2, (i) + 3, (i) + 4, (i) + 5, (i) + 6,       \
                            (i) + 7, (i) + 16, (i) + 17, (i) + 18, (i) + 19, (i) + 20, (i) + 21,   \
                            (i) + 22, (i) + 23)
#define QUARTERS(x, y, i)                                                                          \
    __builtin_shufflevector(x, y, (i), (i) + 1, (i) + 2, (i) + 3, (i) + 8, (i) + 9, (i) + 10,      \
                            (i) + 11, (i) + 16, (i) + 17, (i) + 18, (i) + 19, (i) + 24, (i) + 25,  \
                            (i) + 26, (i) + 27)
    quad ab = HALVES(a, b, 0);
    quad cd = HALVES(c, d, 0);
    out[0] = QUARTERS(ab, cd, 0);
    out[1] = QUARTERS(ab, cd, FOUR);
    ab = HALVES(a, b, 2 * FOUR);
    cd = HALVES(c, d, 2 * FOUR);
    out[2] = QUARTERS(ab, cd, 0);
    out[3] = QUARTERS(ab, cd, FOUR);
#undef HALVES
#undef QUARTERS
}

/* One pair, added to the first lanes. */
TN_ALWAYS_INLINE void add_pair(const ffm_row *x, uint32_t f, uint32_t g, const uint32_t dim,
                               tn_real *sum)
{
    const tn_real *a = x->field[f] + (size_t)g * dim;
    const tn_real *b = x->field[g] + (size_t)f * dim;
    for (uint32_t c = 0; c < dim; c++) {
        sum[c] += a[c] * b[c];
    }
}

/* Pairs of two different fours of fields. */
TN_ALWAYS_INLINE void add_fours(const ffm_row *x, uint32_t f, uint32_t g, quad sum[FOUR])
{
    quad turned[FOUR];
    turn(x->field + g, (size_t)f * FOUR, turned);
    for (uint32_t i = 0; i < FOUR; i++) {
        sum[i] += *(const loose_quad *)(x->field[f + i] + (size_t)g * FOUR) * turned[i];
    }
}

TN_HOT static tn_real pairs_4(const ffm_row *x)
{
    quad sum[FOUR] = {{0}};
    tn_real rest[FOUR] = {0};
    tn_real lane[LANES] = {0};
    uint32_t whole = x->n / FOUR * FOUR;
    for (uint32_t f = 0; f < whole; f += FOUR) {
        for (uint32_t g = f + FOUR; g < whole; g += FOUR) {
            add_fours(x, f, g, sum);
        }
        for (uint32_t i = f; i < f + FOUR; i++) {
            for (uint32_t j = i + 1; j < f + FOUR; j++) {
                add_pair(x, i, j, FOUR, rest);
            }
            for (uint32_t j = whole; j < x->n; j++) {
                add_pair(x, i, j, FOUR, rest);
            }
        }
    }
    for (uint32_t i = whole; i < x->n; i++) {
        for (uint32_t j = i + 1; j < x->n; j++) {
            add_pair(x, i, j, FOUR, rest);
        }
    }
    quad all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    memcpy(lane, &all, sizeof lane);
    tn_real total = (rest[0] + rest[1]) + (rest[2] + rest[3]);
    for (uint32_t i = 0; i < LANES; i += FOUR) {
        total += (lane[i] + lane[i + 1]) + (lane[i + 2] + lane[i + 3]);
    }
    return total;
}

TN_HOT static tn_real pairs_any(const ffm_row *x)
{
    tn_real total = 0;
    for (uint32_t f = 0; f < x->n; f++) {
        for (uint32_t g = f + 1; g < x->n; g++) {
            const tn_real *a = x->field[f] + (size_t)g * x->dim;
            const tn_real *b = x->field[g] + (size_t)f * x->dim;
            tn_real lane[LANES] = {0};
            uint32_t c = 0;
            for (; c + LANES <= x->dim; c += LANES) {
                for (uint32_t i = 0; i < LANES; i++) {
                    lane[i] += a[c + i] * b[c + i];
                }
            }
            for (uint32_t i = 0; c + i < x->dim; i++) {
                lane[i] += a[c + i] * b[c + i];
            }
            for (uint32_t i = 0; i < LANES; i++) {
                total += lane[i];
            }
        }
    }
    return total;
}

/* Returns the sum over f < g of <field[f][g], field[g][f]>. */
static tn_real ffm_pairs(const ffm_row *x)
{
    return x->dim == FOUR ? pairs_4(x) : pairs_any(x);
}

/* dfield[f][g] += dy field[g][f] of one f and the g of a range, but for g = f. */
TN_ALWAYS_INLINE void back_pairs(const ffm_row *x, uint32_t f, tn_range to, tn_real dy,
                                 tn_real *restrict df, const uint32_t dim)
{
    for (uint32_t g = to.from; g < to.to; g++) {
        const tn_real *restrict a = x->field[g] + (size_t)f * dim;
        tn_real *restrict d = df + (size_t)g * dim;
        for (uint32_t c = 0; c < dim && g != f; c++) {
            d[c] += dy * a[c];
        }
    }
}

/* The same of all g. */
TN_HOT static void back_one(const ffm_row *x, uint32_t f, tn_real dy, tn_real *df)
{
    TN_UNROLLED(back_pairs, x->dim, x, f, ((tn_range){0, x->n}), dy, df);
}

/* Does the same for four f, with vectors of four. */
TN_HOT static void back_four(const ffm_row *x, uint32_t f, tn_real dy, tn_real *const dfield[FOUR])
{
    for (uint32_t g = 0; g < x->n; g += FOUR) {
        if (g + FOUR <= x->n && (g + FOUR <= f || f + FOUR <= g)) {
            quad turned[FOUR];
            turn(x->field + g, (size_t)f * FOUR, turned);
            for (uint32_t i = 0; i < FOUR; i++) {
                *(loose_quad *)(dfield[i] + (size_t)g * FOUR) += turned[i] * dy;
            }
            continue;
        }
        const tn_range some = {g, g + FOUR <= x->n ? g + FOUR : x->n};
        for (uint32_t i = 0; i < FOUR; i++) {
            back_pairs(x, f + i, some, dy, dfield[i], FOUR);
        }
    }
}

/* dfield[f][g] += dy field[g][f] for all f and g, but for f = g. */
static void ffm_pairs_back(const ffm_row *x, tn_real dy, tn_real *const *dfield)
{
    uint32_t f = 0;
    for (; x->dim == FOUR && f + FOUR <= x->n; f += FOUR) {
        back_four(x, f, dy, dfield + f);
    }
    for (; f < x->n; f++) {
        back_one(x, f, dy, dfield[f]);
    }
}

/* ---- ffm, ffm_within ---- */

static const tn_field attrs[] = {
    TN_FIELD_U32(tn_ffm_attr, fields, "1", 1, TN_FFM_FIELDS_MAX, "", "number of fields"),
    TN_FIELD_U32(tn_ffm_attr, dim, "4", 1, TN_DIM_MAX, "columns", "width of a vector"),
    TN_FIELD_END,
};

bool tn_ffm_fits(const tn_ffm_attr *attr, const tn_node *x)
{
    return (uint64_t)attr->fields * attr->fields * attr->dim == x->shape.cols;
}

static const tn_ffm_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape ffm_shape(const tn_node *y)
{
    const tn_node *x = y->in[0];
    bool fits = tn_ffm_fits(attr_of(y), x) && y->in[y->n_in - 1]->shape.cols == x->shape.cols;
    return fits ? (tn_shape){x->shape.rows, 1} : TN_MISFIT;
}

static void ffm_forward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    const tn_real *field[TN_FFM_FIELDS_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t f = 0; f < a->fields; f++) {
            field[f] = tn_val_row(y->in[0], r) + (size_t)f * a->fields * a->dim;
        }
        *tn_val_row(y, r) = ffm_pairs(&(ffm_row){a->fields, a->dim, field});
    }
}

static void ffm_backward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    const tn_node *x = y->in[0];
    const tn_real *field[TN_FFM_FIELDS_MAX];
    tn_real *dfield[TN_FFM_FIELDS_MAX];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_real *dx = tn_grad_row_to_add(y, x, r);
        for (uint32_t f = 0; f < a->fields; f++) {
            field[f] = tn_val_row(x, r) + (size_t)f * a->fields * a->dim;
            dfield[f] = dx + (size_t)f * a->fields * a->dim;
        }
        ffm_pairs_back(&(ffm_row){a->fields, a->dim, field}, *tn_grad_row(y, r), dfield);
    }
}

static double ffm_flops(const tn_node *y)
{
    const tn_ffm_attr *a = attr_of(y);
    return (double)y->shape.rows * a->fields * (a->fields - 1) * a->dim;
}

const tn_op tn_op_ffm = {
    TN_OP_MEMBERS(ffm, ffm),
    .shape = ffm_shape,
    .example = {.cols = 9 * 9 * 4, .attr = &(const tn_ffm_attr){9, 4}},
    .formula = "y = sum of <A[i,j], A[j,i]> over all pairs of fields",
    .n_in = 1,
    TN_OP_ATTRS(attrs, tn_ffm_attr),
    .flops = ffm_flops,
};

/* Returns the position of A[i,i]. */
static size_t own_block(const tn_ffm_attr *a, uint32_t i)
{
    return ((size_t)i * a->fields + i) * a->dim;
}

static void within_forward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real sum = 0;
        for (uint32_t i = 0; i < a->fields; i++) {
            const tn_real *own = tn_val_row(y->in[0], r) + own_block(a, i);
            sum += tn_vec_dot(a->dim, own, own) -
                   tn_vec_sum(a->dim, tn_val_row(y->in[1], r) + own_block(a, i));
        }
        *tn_val_row(y, r) = sum / 2;
    }
}

static void within_backward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    const tn_node *x = y->in[0];
    const tn_node *q = y->in[1];
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real dy = *tn_grad_row(y, r);
        tn_real *dx = x->grad != NULL ? tn_grad_row_to_add(y, x, r) : NULL;
        tn_real *dq = q->grad != NULL ? tn_grad_row_to_add(y, q, r) : NULL;
        for (uint32_t i = 0; i < a->fields; i++) {
            size_t at = own_block(a, i);
            if (dx != NULL) {
                tn_vec_scale(a->dim, dx + at, tn_val_row(x, r) + at, dy, true);
            }
            if (dq != NULL) {
                tn_vec_shift(a->dim, dq + at, -dy / 2);
            }
        }
    }
}

static double within_flops(const tn_node *y)
{
    const tn_ffm_attr *a = attr_of(y);
    return 3.0 * y->shape.rows * a->fields * a->dim;
}

const tn_op tn_op_ffm_within = {
    TN_OP_MEMBERS(ffm_within, within),
    .shape = ffm_shape,
    .example = {.cols = 3 * 3 * 2, .attr = &(const tn_ffm_attr){3, 2}},
    .formula = "y = sum of <x_i v_i, x_j v_j> over the pairs of values of one field",
    .n_in = 2,
    TN_OP_ATTRS(attrs, tn_ffm_attr),
    .flops = within_flops,
};

/* ---- embed_ffm ----
 *
 * What ffm(embed) gives, without a matrix of slots * slots * dim columns and without one of
 * gradients; training graphs are rewritten to it (fuse.c). A[i,j] = sum over values of slot i of
 * x v_j:
 *
 *   forward     y       = sum over i < j of <A[i,j], A[j,i]>       tiles of examples
 *   backward    dv_j   += x dy A[j,i]    for the values of i       blocks of the batch's rows
 *
 * A gradient is as wide as all slots together, and of a row of slot i all of it comes from the
 * vectors that the other slots hold for i. Those of four slots lie side by side: where four blocks
 * are four slots, each line of the batch's rows is read once, and their gradients and that strip of
 * all rows mostly stay in the second cache:
 *
 *     rows    key 0   | 0 .. 3 | 4 .. 7 | 8 .. 11 |      grads   key of slot 4   | 0 1 .. 11 |
 *             key 1   | 0 .. 3 | 4 .. 7 | 8 .. 11 |              key of slot 5   | 0 1 .. 11 |
 *                                read                                              written
 *
 * `place` (state) is where each slot's vector begins in the batch's rows, when the slot has one
 * value with x = 1; else NOWHERE, and its values are folded again where they are needed.
 */
#define NOWHERE UINT32_MAX
enum { ROWS_AHEAD = 2, LINE_REALS = 64 / (int)sizeof(tn_real) };

static size_t embed_state_bytes(const tn_node *y)
{
    return (size_t)tn_max_rows(y) * tn_embed_pairs_of(y)->list->n * sizeof(uint32_t);
}

static uint32_t *places_of(const tn_node *y, size_t row)
{
    return (uint32_t *)y->state + row * tn_embed_pairs_of(y)->list->n;
}

static tn_range entries_of(const tn_bag *bag, uint32_t row)
{
    return (tn_range){bag->offset[row], bag->offset[row + 1]};
}

/* Pointers that an operator's function reads all the time. */
typedef struct view {
    const tn_embed_list *e;
    const tn_sparse *sparse;
    uint32_t n;   /* slots */
    uint32_t dim; /* k */
} view;

static view view_of(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    return (view){a->list, tn_feed_of(y)->sparse, a->list->n, a->dim};
}

static bool in_block(const tn_row_block *block, uint32_t at)
{
    return at - block->from < block->to - block->from;
}

static size_t row_of(const view *v, uint32_t slot, uint32_t entry)
{
    const tn_embed_slot *s = &v->e->slot[slot];
    return (size_t)v->sparse->bag[s->slot].index[entry] + s->segment->at;
}

/* Slot by slot, as bags lie. */
static void note_places(const tn_node *y, const view *v, tn_range rows)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const tn_bag *bag = &v->sparse->bag[v->e->slot[i].slot];
        uint32_t *place = places_of(y, rows.from) + i;
        for (uint32_t r = rows.from; r < rows.to; r++, place += v->n) {
            tn_range entries = entries_of(bag, r);
            bool single = bag->weight == NULL && entries.to - entries.from == 1;
            *place = single ? (uint32_t)row_of(v, i, entries.from) : NOWHERE;
        }
    }
}

static bool all_single(const uint32_t *place, uint32_t n)
{
    bool single = true;
    for (uint32_t i = 0; i < n; i++) {
        single &= place[i] != NOWHERE;
    }
    return single;
}

/* Numbers [from, to) of a slot's vectors, values folded. */
static void fold(const view *v, uint32_t slot, uint32_t row, tn_range part, tn_real *out)
{
    const tn_bag *bag = &v->sparse->bag[v->e->slot[slot].slot];
    tn_range entries = entries_of(bag, row);
    tn_clear(out, part.to - part.from);
    for (uint32_t j = entries.from; j < entries.to; j++) {
        const tn_real *from = v->sparse->rows + row_of(v, slot, j) + part.from;
        tn_add_scaled(part.to - part.from, out, from, tn_weight_of(bag, j));
    }
}

/* Slots that are folded together, with all their blocks. */
enum { FOLDED = 8 };
typedef struct folded {
    tn_real own[FOLDED][WIDTH_MAX];
    tn_real other[WIDTH_MAX];
} folded;

static tn_range tile_of(const view *v, uint32_t from)
{
    return (tn_range){from, from + FOLDED < v->n ? from + FOLDED : v->n};
}

static void fold_own(const view *v, uint32_t row, tn_range tile, folded *f)
{
    for (uint32_t g = tile.from; g < tile.to; g++) {
        fold(v, g, row, (tn_range){0, v->n * v->dim}, f->own[g - tile.from]);
    }
}

/* Returns the pairs of an example with other slots than those of one plain value, tile by tile. */
static tn_real folded_pairs(const view *v, uint32_t row)
{
    folded f;
    tn_real sum = 0;
    for (uint32_t from = 0; from < v->n; from += FOLDED) {
        tn_range tile = tile_of(v, from);
        fold_own(v, row, tile, &f);
        for (uint32_t i = 0; i < tile.to; i++) {
            fold(v, i, row, (tn_range){tile.from * v->dim, tile.to * v->dim}, f.other);
            for (uint32_t g = i < tile.from ? tile.from : i + 1; g < tile.to; g++) {
                const tn_real *a = f.other + (size_t)(g - tile.from) * v->dim;
                const tn_real *b = f.own[g - tile.from] + (size_t)i * v->dim;
                for (uint32_t c = 0; c < v->dim; c++) {
                    sum += a[c] * b[c];
                }
            }
        }
    }
    return sum;
}

static void fetch(const tn_real *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += LINE_REALS) {
        __builtin_prefetch(from + i);
    }
}

static void embed_forward(tn_node *y, tn_range rows)
{
    const view v = view_of(y);
    const tn_real *field[TN_FFM_FIELDS_MAX];
    note_places(y, &v, rows);
    for (uint32_t r = rows.from; r < rows.to; r++) {
        const uint32_t *place = places_of(y, r);
        const uint32_t *soon = places_of(y, r + ROWS_AHEAD < rows.to ? r + ROWS_AHEAD : r);
        if (!all_single(place, v.n)) {
            *tn_val_row(y, r) = folded_pairs(&v, r);
            continue;
        }
        for (uint32_t i = 0; i < v.n; i++) {
            field[i] = v.sparse->rows + place[i];
            if (soon[i] != NOWHERE) {
                fetch(v.sparse->rows + soon[i], v.n * v.dim);
            }
        }
        *tn_val_row(y, r) = ffm_pairs(&(ffm_row){v.n, v.dim, field});
    }
}

static bool any_in_block(const tn_row_block *block, const tn_bag *bag, tn_range entries)
{
    bool any = false;
    for (uint32_t j = entries.from; j < entries.to && !any; j++) {
        any = in_block(block, bag->index[j]);
    }
    return any;
}

/* dv_j[g] += x_j dy A[g,i] of one example, for the values j of slot i whose rows are in the block.
 */
static void back_folded(const view *v, uint32_t row, uint32_t i, const tn_row_block *block,
                        tn_real dy)
{
    const tn_bag *bag = &v->sparse->bag[v->e->slot[i].slot];
    const tn_range entries = entries_of(bag, row);
    const tn_range part = {i * v->dim, (i + 1) * v->dim};
    tn_real sum[WIDTH_MAX];
    if (!any_in_block(block, bag, entries)) {
        return;
    }
    for (uint32_t g = 0; g < v->n; g++) {
        if (g == i) {
            continue;
        }
        fold(v, g, row, part, sum);
        for (uint32_t j = entries.from; j < entries.to; j++) {
            if (in_block(block, bag->index[j])) {
                tn_add_scaled(v->dim, v->sparse->grads + row_of(v, i, j) + (size_t)g * v->dim, sum,
                              dy * tn_weight_of(bag, j));
            }
        }
    }
}

/* The slots of a block, one example. */
static void back_block(const view *v, uint32_t row, const ffm_row *x, const tn_row_block *block,
                       tn_real dy)
{
    for (uint32_t k = 0; k < block->n_slots; k++) {
        const uint32_t i = tn_use_of(v->e, block->slot[k])->i;
        if (i == TN_NO_SLOT) {
            continue;
        }
        if (x == NULL) {
            back_folded(v, row, i, block, dy);
            continue;
        }
        const size_t at = (size_t)(x->field[i] - v->sparse->rows);
        if (in_block(block, (uint32_t)at)) {
            back_one(x, i, dy, v->sparse->grads + at);
        }
    }
}

/* Returns whether four blocks are all rows of four slots side by side; *first: of these in the
 * list. */
static bool is_four(const view *v, const tn_row_block *block, uint32_t n, uint32_t *first)
{
    *first = tn_use_of(v->e, block->slot[0])->i;
    bool four = n == FOUR && v->dim == FOUR && *first != TN_NO_SLOT;
    for (uint32_t k = 0; k < n && four; k++) {
        four = block[k].whole && block[k].n_slots == 1 &&
               tn_use_of(v->e, block[k].slot[0])->i == *first + k;
    }
    return four;
}

/* Four slots from `first` on, one example; gradients of one that comes `soon` are asked for. */
static void back_four_slots(const view *v, const ffm_row *x, uint32_t first, const uint32_t *soon,
                            tn_real dy)
{
    tn_real *dfield[FOUR];
    for (uint32_t i = 0; i < FOUR; i++) {
        dfield[i] = v->sparse->grads + (x->field[first + i] - v->sparse->rows);
        if (soon[first + i] != NOWHERE) {
            fetch(v->sparse->grads + soon[first + i], v->n * v->dim);
        }
    }
    back_four(x, first, dy, dfield);
}

static void embed_backward_blocks(tn_node *y, const tn_row_block *block, uint32_t n)
{
    const view v = view_of(y);
    const tn_real *field[TN_FFM_FIELDS_MAX];
    const ffm_row x = {v.n, v.dim, field};
    uint32_t first = 0;
    const bool four = is_four(&v, block, n, &first);
    for (uint32_t r = 0; r < y->shape.rows; r++) {
        const uint32_t *place = places_of(y, r);
        const uint32_t *soon = places_of(y, r + ROWS_AHEAD < y->shape.rows ? r + ROWS_AHEAD : r);
        const tn_real dy = *tn_grad_row(y, r);
        const bool single = all_single(place, v.n);
        for (uint32_t i = 0; i < v.n && single; i++) {
            field[i] = v.sparse->rows + place[i];
            if (four && soon[i] != NOWHERE) {
                __builtin_prefetch(v.sparse->rows + soon[i] + (size_t)first * FOUR);
            }
        }
        if (single && four) {
            back_four_slots(&v, &x, first, soon, dy);
            continue;
        }
        for (uint32_t k = 0; k < n; k++) {
            back_block(&v, r, single ? &x : NULL, &block[k], dy);
        }
    }
}

static double embed_flops(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    return (double)y->shape.rows * a->list->n * (a->list->n - 1) * a->dim;
}

static tn_node *embed_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 0, .dim = 4};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "c", .slot = 2, .segment = &deep, .pool = TN_POOL_SUM},
    };
    const tn_embed_pairs a = {.list = tn_embed(g, NULL, slots, 2)->attr, .dim = 2};
    return tn_apply(g, &tn_op_embed_ffm, NULL, NULL, 0, &a);
}

const tn_op tn_op_embed_ffm = {
    .name = "embed_ffm",
    .formula = "y = sum of <A[i,j], A[j,i]> over all pairs of slots",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_pairs),
    .shape = tn_column_shape,
    .state_bytes = embed_state_bytes,
    .forward = embed_forward,
    .sparse.backward_blocks = embed_backward_blocks,
    .flops = embed_flops,
    .example = {.build = embed_example},
};

bool tn_embed_can_ffm(const tn_node *embed, uint32_t dim)
{
    const tn_embed_list *e = tn_embed_list_of(embed);
    return e != NULL && e->n <= TN_FFM_FIELDS_MAX && e->n * dim <= WIDTH_MAX &&
           tn_embed_is_summed(embed, e->n * dim);
}
