/* purchases.c - scales of planted purchases. */
#include "extra/synth/purchases.h"

#include "base/core/error.h"
#include "base/math/fmath.h"

#include <math.h>

enum { HALVINGS = 60 };

#define BIAS_MAX 400.0

double tn_purchase_logit(const tn_gen_purchases *t, double click, double v)
{
    return t->bias + t->click * (click - t->mean) + t->own * v;
}

double tn_purchase_both(double click, double purchase)
{
    /* as nn/op/op_tasks.c: the largest of the powers is taken out */
    const double top = fmax(fmax(-click, -purchase), -click - purchase);
    return -top -
           tn_ln(tn_exp(-click - top) + tn_exp(-purchase - top) + tn_exp(-click - purchase - top));
}

/* The share of purchases among clicks, and the mean over all rows of that given a click. */
static void find_rates(tn_gen_purchases *t, const double *click, const double *v, uint32_t n)
{
    double clicks = 0;
    double both = 0;
    double all = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double p = tn_sigmoid(click[i]);
        const double given = tn_sigmoid(tn_purchase_logit(t, click[i], v[i]));
        clicks += p;
        both += p * given;
        all += given;
    }
    t->rate = both / clicks;
    t->rate_all = all / n;
}

static double mean_of(const double *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum / n;
}

/* v is made free of a, with which it may have the number of values of a row in common. */
void tn_purchases_fit(double rate, double selection, const double *click, const double *v,
                      uint32_t n, tn_gen_purchases *out)
{
    TN_ASSERT(n > 0 && rate > 0);
    const double middle = mean_of(v, n);
    double aa = 0;
    double av = 0;
    double vv = 0;
    out->mean = mean_of(click, n);
    for (uint32_t i = 0; i < n; i++) {
        const double a = click[i] - out->mean;
        aa += a * a;
        av += a * (v[i] - middle);
        vv += (v[i] - middle) * (v[i] - middle);
    }
    const double common = aa > 0 ? av / aa : 0;
    const double rest = vv - common * av;
    out->own = rest > 0 ? sqrt((1 - selection * selection) * aa / rest) : 0;
    out->click = selection - out->own * common;
    double low = -BIAS_MAX;
    double high = BIAS_MAX;
    for (int i = 0; i < HALVINGS; i++) { /* the rate rises with the bias */
        out->bias = (low + high) / 2;
        find_rates(out, click, v, n);
        *(out->rate < rate ? &low : &high) = out->bias;
    }
}
