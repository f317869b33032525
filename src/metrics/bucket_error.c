/* bucket_error.c - the walk of Baidu's bucket error. Scores are compared with < only, so
 * predictions of exactly 0 take part (Paddle leaves them out by |x| > 1e-6). */
#include "metrics/bucket_error.h"

#include "base/math/fmath.h"
#include "metrics/metrics_state.h"

#define SPAN_MAX .01
#define DEVIATION_MAX .05

void tn_buckets_add(tn_buckets *b, double c, double shows, double clicks)
{
    TN_ASSERT(shows > 0 && clicks >= 0 && clicks <= shows);
    b->shows += shows;
    if (!b->is_open || fabs(c - b->c_start) > SPAN_MAX) {
        b->is_open = true;
        b->c_start = c;
        b->n = 0;
        b->sum_c = 0;
        b->clicks = 0;
    }
    b->n += shows;
    b->sum_c += c * shows;
    b->clicks += clicks;
    double a = b->sum_c / b->n;
    if (a > 0 && sqrt((1 - a) / (a * b->n)) < DEVIATION_MAX) {
        b->error += fabs(b->clicks / b->n / a - 1) * b->n;
        b->judged += b->n;
        b->is_open = false;
    }
}

tn_buckets tn_buckets_of(const tn_metrics *m)
{
    tn_buckets b = {0};
    tn_walk w = tn_walk_begin(m);
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        if ((c.neg | c.pos) > 0) {
            tn_buckets_add(&b, tn_sigmoid(c.z), ((double)c.neg + (double)c.pos) / w.unit,
                           (double)c.pos / w.unit);
        }
    }
    return b;
}
