/* rule.c - the chain around every optimizer: scale, L2, clips before; L1 prox and bounds after. */
#include "ps/optim/rule.h"

#include "base/core/compiler.h"
#include "ps/optim/optim.h"

#include <math.h>
#include <string.h>

TN_HOT static void chain_scale(size_t n, float *restrict g, const float *restrict grad,
                               float factor)
{
    for (size_t i = 0; i < n; i++) {
        g[i] = grad[i] * factor;
    }
}

TN_HOT static void chain_scale_in_place(size_t n, float *g, float factor)
{
    for (size_t i = 0; i < n; i++) {
        g[i] *= factor;
    }
}

TN_HOT static void chain_add_product(size_t n, float *restrict g, const float *restrict w,
                                     float factor)
{
    for (size_t i = 0; i < n; i++) {
        g[i] += factor * w[i];
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

bool tn_rule_plain(const tn_rule *rule)
{
    const tn_rule_opts *o = rule->opts;
    bool no_l2 = o->l2 == 0 || rule->optim->own_l2;
    return no_l2 && o->grad_scale == TN_SCALE_NONE && isinf(rule->clip_value) &&
           isinf(rule->clip_row);
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

double tn_rule_grad(const tn_rule *rule, const tn_push *push, const tn_trained *x, double clip,
                    float *g)
{
    const tn_rule_opts *o = rule->opts;
    size_t n = x->n;
    double factor = scale_of(rule, push, x->show);
    if (x->grad == NULL) {
        memset(g, 0, n * sizeof *g);
    } else if (factor == 1) {
        memcpy(g, x->grad, n * sizeof *g);
    } else {
        chain_scale(n, g, x->grad, (float)factor);
    }
    if (o->l2 != 0 && !rule->optim->own_l2 && x->w != NULL) {
        chain_add_product(n, g, x->w, (float)o->l2);
    }
    if (!isinf(rule->clip_value)) {
        chain_clamp_gradient(n, g, (float)rule->clip_value);
    }
    double sum = chain_square_sum(n, g);
    double row =
        x->is_row && !isinf(rule->clip_row) ? tn_clip_factor(sqrt(sum), rule->clip_row) : 1;
    if (row * clip != 1) {
        chain_scale_in_place(n, g, (float)(row * clip));
    }
    return sum * row * row;
}

void tn_rule_update(const tn_rule *rule, const tn_update *u, size_t n, float *w,
                    float *const state[], const float *g)
{
    const tn_rule_opts *o = rule->opts;
    rule->optim->update(o, u, n, w, state, g);
    if (o->l1 != 0 && !rule->optim->own_l2) {
        chain_shrink(n, w, (float)(u->lr * o->l1));
    }
    if (o->bounds.n == 2) {
        chain_clamp(n, w, (float)o->bounds.item[0], (float)o->bounds.item[1]);
    }
}
