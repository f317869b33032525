/* rule.c - the chain around every optimizer: scale, L2, clips before; L1 prox and bounds after. */
#include "ps/optim/rule.h"

#include "base/core/compiler.h"
#include "base/core/error.h"
#include "ps/optim/optim.h"

#include <math.h>
#include <string.h>

TN_HOT static void chain_scale(size_t n, float *g, float factor)
{
    for (size_t i = 0; i < n; i++) {
        g[i] *= factor;
    }
}

/* x - x is 0 where x is finite, else NaN: a clip must not hide a gradient that is not finite. */
TN_HOT static void chain_clamp_gradient(size_t n, float *g, float most)
{
    for (size_t i = 0; i < n; i++) {
        float x = g[i];
        float low = x < -most ? -most : x;
        g[i] = (low > most ? most : low) + (x - x);
    }
}

TN_HOT static void chain_clamp(size_t n, float *w, float low, float high)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] < low ? low : w[i];
        w[i] = x > high ? high : x;
    }
}

TN_HOT static void chain_shrink(size_t n, float *w, float by)
{
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(w[i]) - by;
        w[i] = copysignf(size > 0 ? size : 0, w[i]);
    }
}

TN_HOT static double chain_square_sum(size_t n, const float *x)
{
    return tn_square_sum(n, x);
}

bool tn_rule_reaches_all(const tn_rule *rule)
{
    const tn_rule_opts *o = rule->opts;
    const bool changes = rule->optim->decay != NULL || (o->l2 != 0 && !rule->optim->own_l2);
    return changes && o->l2_mode == TN_L2_DENSE;
}

bool tn_rule_plain(const tn_rule *rule)
{
    const tn_rule_opts *o = rule->opts;
    bool no_l2 = o->l2 == 0 || rule->optim->own_l2;
    return no_l2 && o->grad_scale == TN_SCALE_NONE && !o->grad_normalize &&
           isinf(rule->clip_value) && isinf(rule->clip_row);
}

static double scale_of(const tn_rule *rule, const tn_push *push, uint32_t show)
{
    switch (tn_rule_common(rule)->grad_scale) {
    case TN_SCALE_SHOW:
        return show > 1 ? 1 / (double)show : 1;
    case TN_SCALE_SUM:
        return push->weight_sum;
    default:
        return 1;
    }
}

double tn_clip_factor(double norm, double most)
{
    return norm > most ? most / norm : 1;
}

/* Divides the gradient of each row by its norm (DiFacto, Li 2016). */
static void normalize(const tn_row_grads *rows, float *scale)
{
    const double least = 1e-5;
    for (uint32_t i = 0; i < rows->n; i++) {
        if (rows->grad[i] != NULL) {
            const double norm =
                fabs((double)scale[i]) * sqrt(chain_square_sum(rows->dim, rows->grad[i]));
            scale[i] = norm > least ? (float)((double)scale[i] / norm) : scale[i];
        }
    }
}

typedef struct chain {
    const tn_row_grads *rows;
    const float *scale; /* one for each row */
    float l2;
} chain;

__attribute__((always_inline)) static inline void chain_begin(const chain *c, const size_t dim)
{
    for (uint32_t i = 0; i < c->rows->n; i++) {
        const float *grad = c->rows->grad[i];
        const float *w = c->l2 != 0 ? c->rows->w[i] : NULL;
        const float scale = c->scale[i];
        float *restrict g = c->rows->g + i * dim;
        if (grad == NULL) {
            memset(g, 0, dim * sizeof *g);
        } else {
#pragma omp simd
            for (size_t j = 0; j < dim; j++) {
                g[j] = grad[j] * scale;
            }
        }
        if (w != NULL) {
#pragma omp simd
            for (size_t j = 0; j < dim; j++) {
                g[j] += c->l2 * w[j];
            }
        }
        c->rows->norm2[i] = dim == 1 ? (double)*g * (double)*g : tn_square_sum(dim, g);
    }
}

/* Scale and L2 of all rows, with their squared norms. */
TN_HOT static void chain_rows(const chain *c)
{
    TN_UNROLLED(chain_begin, c->rows->dim, c);
}

static bool rule_grads(const tn_rule *rule, const tn_push *push, const tn_row_grads *rows,
                       double clip_row, double clip)
{
    const tn_rule_opts *o = rule->opts;
    const uint32_t dim = rows->dim;
    float scale[TN_ROWS_MAX];
    TN_ASSERT(rows->n <= TN_ROWS_MAX);
    for (uint32_t i = 0; i < rows->n; i++) {
        scale[i] = (float)scale_of(rule, push, rows->show != NULL ? rows->show[i] : 0);
    }
    if (o->grad_normalize) {
        normalize(rows, scale);
    }
    chain_rows(&(chain){rows, scale, rule->optim->own_l2 ? 0 : (float)o->l2});
    if (!isinf(rule->clip_value)) {
        chain_clamp_gradient((size_t)rows->n * dim, rows->g, (float)rule->clip_value);
        for (uint32_t i = 0; i < rows->n; i++) {
            rows->norm2[i] = chain_square_sum(dim, rows->g + (size_t)i * dim);
        }
    }
    const bool clipped = clip != 1 || !isinf(clip_row);
    for (uint32_t i = 0; clipped && i < rows->n; i++) {
        const double row = isinf(clip_row) ? 1 : tn_clip_factor(sqrt(rows->norm2[i]), clip_row);
        if (row * clip != 1) {
            chain_scale(dim, rows->g + (size_t)i * dim, (float)(row * clip));
        }
        rows->norm2[i] = rows->norm2[i] * row * row;
    }
    return !clipped;
}

bool tn_rule_row_grads(const tn_rule *rule, const tn_push *push, const tn_row_grads *rows,
                       double clip)
{
    return rule_grads(rule, push, rows, rule->clip_row, clip);
}

double tn_rule_grad(const tn_rule *rule, const tn_push *push, const tn_trained *x, double clip,
                    float *g) // NOLINT(readability-non-const-parameter): written by way of `one`
{
    double norm2 = 0;
    const tn_row_grads one = {.n = 1,
                              .dim = (uint32_t)x->n,
                              .w = &x->w,
                              .grad = &x->grad,
                              .show = &x->show,
                              .g = g,
                              .norm2 = &norm2};
    (void)rule_grads(rule, push, &one, x->is_row ? rule->clip_row : (double)INFINITY, clip);
    return norm2;
}

/* Updates of rows one after the other, by an optimizer without update_rows. */
static void update_each(const tn_rule *rule, const tn_update *u, const tn_row_run *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        float *state[TN_STATES_MAX];
        for (uint32_t s = 0; s < TN_STATES_MAX; s++) {
            state[s] = rows->w[i] + rows->state[s];
        }
        tn_update own = *u;
        if (rows->counts != NULL) {
            own.t = rows->counts[i];
        }
        rule->optim->update(rule->opts, &own, rows->dim, rows->w[i], state, rows->grad[i]);
    }
}

/* L1 and bounds of n weights that were just updated. */
static void finish(const tn_rule *rule, const tn_update *u, size_t n, float *w)
{
    const tn_rule_opts *o = rule->opts;
    if (o->l1 != 0 && !rule->optim->own_l2) {
        chain_shrink(n, w, (float)(u->lr * o->l1));
    }
    if (o->bounds.n == 2) {
        chain_clamp(n, w, (float)o->bounds.item[0], (float)o->bounds.item[1]);
    }
}

void tn_rule_update_rows(const tn_rule *rule, const tn_update *u, const tn_row_run *rows)
{
    const tn_rule_opts *o = rule->opts;
    if (rule->optim->update_rows != NULL) {
        rule->optim->update_rows(o, u, rows);
    } else {
        update_each(rule, u, rows);
    }
    const bool more = (o->l1 != 0 && !rule->optim->own_l2) || o->bounds.n == 2;
    for (uint32_t i = 0; more && i < rows->n; i++) {
        finish(rule, u, rows->dim, rows->w[i]);
    }
}

void tn_rule_update(const tn_rule *rule, const tn_update *u, size_t n, float *w,
                    float *const state[], const float *g)
{
    rule->optim->update(rule->opts, u, n, w, state, g);
    finish(rule, u, n, w);
}

void tn_rule_decay(const tn_rule *rule, const tn_update *u, size_t n, float *w)
{
    rule->optim->decay(rule->opts, u, n, w);
    finish(rule, u, n, w);
}
