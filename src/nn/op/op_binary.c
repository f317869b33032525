/* op_binary.c - two matrices element by element, and the choice between two by a third.
 *
 *   sub       y = a - b            da += dy                 db -= dy
 *   div       y = a / b            da += dy / b             db -= dy y / b
 *   maximum   y = a >= b ? a : b   da += a >= b ? dy : 0    db += a >= b ? 0 : dy   a tie is a's
 *   minimum   y = a <= b ? a : b   da += a <= b ? dy : 0    db += a <= b ? 0 : dy   a tie is a's
 *   where     y = c > 0 ? a : b    da += c > 0 ? dy : 0     db += c > 0 ? 0 : dy    dc += 0
 *
 * b, and the c of where, may have fewer columns than a, as the second factor of mul: each then
 * is paired with a.cols / b.cols neighbours, and its gradient is their sum, in order. What is not a
 * number stays so and is seen in the loss; so does what is divided by 0.
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

enum { PIECE = 256 }; /* columns at a time */

/* out[i] of dy[i], a[i] and b[i]; a value does not ask for dy. */
typedef void pair_fn(size_t n, tn_real *restrict out, const tn_real *dy, const tn_real *a,
                     const tn_real *b);

static tn_shape pair_shape(const tn_node *y)
{
    tn_shape a = y->in[0]->shape;
    tn_shape b = y->in[1]->shape;
    return a.rows == b.rows && a.cols % b.cols == 0 ? a : TN_MISFIT;
}

/* Returns the columns of `x` that are paired with columns from .. from + n of y; they are in `room`
 * if they are fewer. */
static const tn_real *spread(const tn_node *y, const tn_node *x, size_t r, uint32_t from,
                             uint32_t n, tn_real *room)
{
    const tn_real *row = tn_val_row(x, r);
    const uint32_t group = y->shape.cols / x->shape.cols;
    if (group == 1) {
        return row + from;
    }
    for (uint32_t i = 0; i < n; i++) {
        room[i] = row[(from + i) / group];
    }
    return room;
}

/* Goes the other way: adds d, of columns from .. from + n of y, to the gradient of x. */
static void gather(const tn_node *y, const tn_node *x, size_t r, uint32_t from, uint32_t n,
                   const tn_real *d)
{
    tn_real *row = tn_grad_row(x, r);
    const uint32_t group = y->shape.cols / x->shape.cols;
    if (group == 1) {
        tn_vec_copy(n, row + from, d, tn_adds(y, x));
        return;
    }
    if (from == 0 && !tn_adds(y, x)) {
        tn_clear(row, x->shape.cols);
    }
    for (uint32_t i = 0; i < n; i++) {
        row[(from + i) / group] += d[i];
    }
}

static uint32_t piece_at(const tn_node *y, uint32_t from)
{
    return y->shape.cols - from < PIECE ? y->shape.cols - from : PIECE;
}

static void pair_forward(tn_node *y, tn_range rows, pair_fn *value)
{
    tn_real room[PIECE];
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t c = 0; c < y->shape.cols; c += PIECE) {
            const uint32_t n = piece_at(y, c);
            const tn_real *a = tn_val_row(y->in[0], r) + c;
            value(n, tn_val_row(y, r) + c, a, a, spread(y, y->in[1], r, c, n, room));
        }
    }
}

static void pair_backward(tn_node *y, tn_range rows, pair_fn *const slope[2])
{
    tn_real room[PIECE];
    tn_real d[PIECE];
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t c = 0; c < y->shape.cols; c += PIECE) {
            const uint32_t n = piece_at(y, c);
            const tn_real *b = spread(y, y->in[1], r, c, n, room);
            for (uint32_t k = 0; k < 2; k++) {
                if (y->in[k]->grad != NULL) {
                    slope[k](n, d, tn_grad_row(y, r) + c, tn_val_row(y->in[0], r) + c, b);
                    gather(y, y->in[k], r, c, n, d);
                }
            }
        }
    }
}

/* Defines one loop; the formula may use `a`, `b` and `dy`. */
#define PAIR_LOOP(name, formula)                                                                   \
    TN_HOT static void name(size_t n, tn_real *restrict out, const tn_real *dys,                   \
                            const tn_real *as, const tn_real *bs)                                  \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            const tn_real a = as[i];                                                               \
            const tn_real b = bs[i];                                                               \
            const tn_real dy = dys[i];                                                             \
            (void)a;                                                                               \
            (void)b;                                                                               \
            (void)dy;                                                                              \
            out[i] = (formula);                                                                    \
        }                                                                                          \
    }

/* Returns a second operand, of a quotient away from 0. */
static tn_node *second(tn_graph *g, const tn_op *op, uint32_t cols)
{
    tn_node *x = tn_input(g, NULL, cols, true);
    if (op != &tn_op_div) {
        return x;
    }
    x = tn_activate(g, NULL, x, "exp");
    return tn_apply(g, &tn_op_scale, NULL, TN_IN(x), &(tn_scale_attr){.by = 1, .plus = 0.5});
}

/* Builds an example: six columns by six, by itself, by three and by one. */
static tn_node *example_of(tn_graph *g, const tn_op *op)
{
    tn_node *a = tn_input(g, NULL, 6, true);
    tn_node *b = second(g, op, 6);
    a = tn_apply(g, op, NULL, TN_IN(a, b), NULL);
    b = tn_apply(g, op, NULL, TN_IN(b, b), NULL);
    a = tn_apply(g, &tn_op_add, NULL, TN_IN(a, b), NULL);
    a = tn_apply(g, op, NULL, TN_IN(a, second(g, op, 3)), NULL);
    return tn_apply(g, op, NULL, TN_IN(a, second(g, op, 1)), NULL);
}

/* The functions of operator `id`: its value, and what dy adds to the gradients of both operands. */
#define PAIR_LOOPS(id, value, to_a, to_b)                                                          \
    PAIR_LOOP(id##_value, value)                                                                   \
    PAIR_LOOP(id##_to_a, to_a)                                                                     \
    PAIR_LOOP(id##_to_b, to_b)                                                                     \
    static void id##_forward(tn_node *y, tn_range rows)                                            \
    {                                                                                              \
        pair_forward(y, rows, id##_value);                                                         \
    }                                                                                              \
    static void id##_backward(tn_node *y, tn_range rows)                                           \
    {                                                                                              \
        pair_backward(y, rows, (pair_fn *const[]){id##_to_a, id##_to_b});                          \
    }                                                                                              \
    static tn_node *id##_example(tn_graph *g)                                                      \
    {                                                                                              \
        return example_of(g, &tn_op_##id);                                                         \
    }

/* Members that the operators have in common. */
#define PAIR_OP(id)                                                                                \
    TN_OP_MEMBERS(id, id), .shape = pair_shape, .n_in = 2, .example = {.build = id##_example}

/* If neither of two values is larger, one of them is no number, and so is a + b. */
PAIR_LOOPS(sub, a - b, dy, -dy)
PAIR_LOOPS(div, a / b, dy / b, -dy *(a / b) / b)
PAIR_LOOPS(maximum, a >= b ? a : b > a ? b : a + b, a >= b ? dy : 0, a >= b ? 0 : dy)
PAIR_LOOPS(minimum, a <= b ? a : b < a ? b : a + b, a <= b ? dy : 0, a <= b ? 0 : dy)

const tn_op tn_op_sub = {PAIR_OP(sub),
                         .formula = "y = a - b, elementwise; or each column of b from some of a"};
const tn_op tn_op_div = {PAIR_OP(div),
                         .formula = "y = a / b, elementwise; or some of a by each column of b"};
const tn_op tn_op_maximum = {PAIR_OP(maximum), .formula = "y = the larger of a and b, elementwise"};
const tn_op tn_op_minimum = {PAIR_OP(minimum),
                             .formula = "y = the smaller of a and b, elementwise"};

/* ---- where ---- */

static tn_shape where_shape(const tn_node *y)
{
    tn_shape c = y->in[0]->shape;
    tn_shape a = y->in[1]->shape;
    tn_shape b = y->in[2]->shape;
    return a.rows == c.rows && b.rows == c.rows && a.cols == b.cols && a.cols % c.cols == 0
               ? a
               : TN_MISFIT;
}

static void where_forward(tn_node *y, tn_range rows)
{
    tn_real room[PIECE];
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t from = 0; from < y->shape.cols; from += PIECE) {
            const uint32_t n = piece_at(y, from);
            const tn_real *c = spread(y, y->in[0], r, from, n, room);
            const tn_real *a = tn_val_row(y->in[1], r) + from;
            const tn_real *b = tn_val_row(y->in[2], r) + from;
            tn_real *out = tn_val_row(y, r) + from;
            for (uint32_t i = 0; i < n; i++) {
                out[i] = c[i] > 0 ? a[i] : c[i] <= 0 ? b[i] : c[i];
            }
        }
    }
}

/* Gradients of a, and of b, in columns from .. from + n of row r. */
static void where_piece(const tn_node *y, size_t r, uint32_t from, uint32_t n)
{
    tn_real room[PIECE];
    tn_real d[PIECE];
    const tn_real *c = spread(y, y->in[0], r, from, n, room);
    const tn_real *dy = tn_grad_row(y, r) + from;
    for (uint32_t k = 1; k < 3; k++) {
        for (uint32_t i = 0; i < n; i++) {
            d[i] = (c[i] > 0) == (k == 1) ? dy[i] : 0;
        }
        if (y->in[k]->grad != NULL) {
            gather(y, y->in[k], r, from, n, d);
        }
    }
}

static void where_backward(tn_node *y, tn_range rows)
{
    const tn_node *c = y->in[0];
    for (size_t r = rows.from; r < rows.to; r++) {
        if (c->grad != NULL && !tn_adds(y, c)) {
            tn_clear(tn_grad_row(c, r), c->shape.cols);
        }
        for (uint32_t from = 0; from < y->shape.cols; from += PIECE) {
            where_piece(y, r, from, piece_at(y, from));
        }
    }
}

static tn_node *where_example(tn_graph *g)
{
    tn_node *a = tn_input(g, NULL, 6, true);
    tn_node *b = tn_input(g, NULL, 6, true);
    a = tn_apply(g, &tn_op_where, NULL, TN_IN(tn_input(g, NULL, 6, true), a, b), NULL);
    a = tn_apply(g, &tn_op_where, NULL, TN_IN(tn_input(g, NULL, 3, true), a, b), NULL);
    return tn_apply(g, &tn_op_where, NULL, TN_IN(tn_input(g, NULL, 1, true), b, a), NULL);
}

const tn_op tn_op_where = {
    TN_OP_MEMBERS(where, where),
    .shape = where_shape,
    .example = {.build = where_example},
    .formula = "y = a where c > 0, else b, elementwise; or each column of c for some of a",
    .n_in = 3,
};
