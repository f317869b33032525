/* calibrator.c - Platt's sigmoid and isotonic regression. */
#include "metrics/calibrator.h"

#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "metrics/ranking.h"

#include <math.h>

enum { NEWTON_STEPS = 100, HALVINGS = 40 };
#define RIDGE 1e-9
#define STEP_MIN 1e-12

typedef struct block {
    double low, high; /* first and last score in it */
    double sum_z, weight, clicks;
} block;

struct tn_isotonic {
    block *block; /* owned; ascending, levels rise */
    uint32_t n;
};

/* What rows are fitted to. */
typedef struct fit {
    const tn_scored *rows;
    double click, other; /* targets of whole labels */
} fit;

static double target(const fit *f, uint32_t i)
{
    double y = (double)f->rows->label[i];
    return f->other + (f->click - f->other) * y;
}

static double weight_of(const tn_scored *rows, uint32_t i)
{
    return rows->weight != NULL ? (double)rows->weight[i] : 1;
}

/* Weighted loss with its ridge. */
static double loss_at(const fit *f, tn_platt p)
{
    double sum = RIDGE / 2 * (p.a * p.a + p.b * p.b);
    for (uint32_t i = 0; i < f->rows->n; i++) {
        double z = p.a * (double)f->rows->logit[i] + p.b;
        sum += weight_of(f->rows, i) * (tn_log1p_exp(z) - target(f, i) * z);
    }
    return sum;
}

/* Newton's step from p: solves the 2 x 2 system of gradient and Hessian. */
static tn_platt newton_step(const fit *f, tn_platt p)
{
    double ga = RIDGE * p.a;
    double gb = RIDGE * p.b;
    double haa = RIDGE;
    double hab = 0;
    double hbb = RIDGE;
    for (uint32_t i = 0; i < f->rows->n; i++) {
        double x = (double)f->rows->logit[i];
        double w = weight_of(f->rows, i);
        double q = tn_sigmoid(p.a * x + p.b);
        double d = w * (q - target(f, i));
        double h = w * q * (1 - q);
        ga += d * x;
        gb += d;
        haa += h * x * x;
        hab += h * x;
        hbb += h;
    }
    double det = haa * hbb - hab * hab;
    return (tn_platt){(hbb * ga - hab * gb) / det, (haa * gb - hab * ga) / det};
}

tn_status tn_platt_fit(const tn_scored *rows, bool smoothed, tn_platt *out, tn_error *err)
{
    double pos = 0;
    double neg = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        double w = weight_of(rows, i);
        pos += w * (double)rows->label[i];
        neg += w * (1 - (double)rows->label[i]);
    }
    if (!(pos > 0 && neg > 0)) {
        return tn_fail(err, TN_E_DATA, "cannot calibrate: the rows hold %s",
                       pos + neg > 0 ? "one class only" : "no weight");
    }
    fit f = {rows, smoothed ? (pos + 1) / (pos + 2) : 1, smoothed ? 1 / (neg + 2) : 0};
    tn_platt p = {1, 0};
    double loss = loss_at(&f, p);
    for (uint32_t step = 0; step < NEWTON_STEPS; step++) {
        tn_platt d = newton_step(&f, p);
        tn_platt next = {p.a - d.a, p.b - d.b};
        double next_loss = loss_at(&f, next);
        for (uint32_t i = 0; i < HALVINGS && !(next_loss <= loss); i++) {
            d = (tn_platt){d.a / 2, d.b / 2};
            next = (tn_platt){p.a - d.a, p.b - d.b};
            next_loss = loss_at(&f, next);
        }
        bool moved = next_loss < loss;
        if (next_loss <= loss) {
            p = next;
            loss = next_loss;
        }
        if (!moved && fabs(d.a) + fabs(d.b) < STEP_MIN * (1 + fabs(p.a) + fabs(p.b))) {
            break;
        }
    }
    *out = p;
    return TN_OK;
}

double tn_platt_at(const tn_platt *p, double logit)
{
    return tn_sigmoid(p->a * logit + p->b);
}

static double level(const block *b)
{
    return b->clicks / b->weight;
}

static double centre(const block *b)
{
    return b->sum_z / b->weight;
}

/* Puts a point behind the blocks and joins while a level falls. */
static void push(tn_isotonic *iso, const tn_iso_point *p)
{
    block b = {p->z, p->z, p->z * p->weight, p->weight, p->clicks};
    while (iso->n > 0 && level(&b) < level(&iso->block[iso->n - 1])) {
        const block *before = &iso->block[iso->n - 1];
        b.low = before->low;
        b.sum_z += before->sum_z;
        b.weight += before->weight;
        b.clicks += before->clicks;
        iso->n--;
    }
    iso->block[iso->n++] = b;
}

static tn_status new_isotonic(uint32_t n_max, tn_isotonic **out, tn_error *err)
{
    tn_isotonic *iso = tn_alloc(1, sizeof *iso, "isotonic map");
    iso->block = tn_try_alloc(n_max, sizeof *iso->block, "blocks of an isotonic map", err);
    if (iso->block == NULL) {
        tn_free(iso);
        return TN_E_MEMORY;
    }
    *out = iso;
    return TN_OK;
}

tn_status tn_isotonic_fit(const tn_iso_point *points, uint32_t n, tn_isotonic **out, tn_error *err)
{
    tn_isotonic *iso = NULL;
    TN_TRY(new_isotonic(n > 0 ? n : 1, &iso, err));
    for (uint32_t i = 0; i < n; i++) {
        TN_ASSERT(i == 0 || points[i].z > points[i - 1].z);
        if (points[i].weight > 0) {
            push(iso, &points[i]);
        }
    }
    *out = iso;
    return TN_OK;
}

tn_status tn_isotonic_fit_metrics(const tn_metrics *m, tn_isotonic **out, tn_error *err)
{
    tn_isotonic *iso = NULL;
    tn_walk w = tn_walk_begin(m);
    uint32_t n_max = w.cell != NULL ? w.n_bins : (uint32_t)w.n_rows + 1;
    TN_TRY(new_isotonic(n_max, &iso, err));
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        double clicks = (double)c.pos / w.unit;
        double weight = (double)c.neg / w.unit + clicks;
        if (weight > 0) {
            push(iso, &(tn_iso_point){c.z, weight, clicks});
        }
    }
    *out = iso;
    return TN_OK;
}

void tn_isotonic_free(tn_isotonic *iso)
{
    if (iso != NULL) {
        tn_free(iso->block);
        tn_free(iso);
    }
}

uint32_t tn_isotonic_blocks(const tn_isotonic *iso)
{
    return iso->n;
}

double tn_isotonic_level(const tn_isotonic *iso, double z)
{
    if (iso->n == 0) {
        return (double)NAN;
    }
    uint32_t i = 0;
    while (i + 1 < iso->n && z >= (iso->block[i].high + iso->block[i + 1].low) / 2) {
        i++;
    }
    return level(&iso->block[i]);
}

double tn_isotonic_at(const tn_isotonic *iso, double z)
{
    if (iso->n == 0) {
        return (double)NAN;
    }
    uint32_t low = 0; /* first block whose centre is above z: by bisection, there may be many */
    uint32_t high = iso->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (centre(&iso->block[middle]) > z) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == 0 || low == iso->n) {
        return level(&iso->block[low == 0 ? 0 : iso->n - 1]);
    }
    const block *left = &iso->block[low - 1];
    const block *right = &iso->block[low];
    double share = (z - centre(left)) / (centre(right) - centre(left));
    return level(left) + share * (level(right) - level(left));
}
