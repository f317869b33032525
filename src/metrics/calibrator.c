/* calibrator.c - Platt's sigmoid and isotonic regression over bins of the logit. */
#include "metrics/calibrator.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/fmath.h"
#include "metrics/metrics_state.h"

#include <math.h>
#include <string.h>

enum { NEWTON_STEPS = 100, HALVINGS = 40, POINTS_AT_ONCE = 128 };
#define RIDGE 1e-9
#define STEP_MIN 1e-12
#define LOGIT_MAX 16.0 /* of isotonic levels of 0 and 1 */

/* Rows of about one logit; clicks are the weighted sum of their labels. */
typedef struct point {
    double z; /* while rows are added: the weighted sum of their logits */
    double weight, clicks;
} point;

struct tn_calibrator {
    double shift; /* ln of the share of negatives */
    uint32_t n;
    bool packed;
    double clicks, others; /* weights */
    point point[TN_BINS];  /* once packed, n points that ascend by z */
};

/* ---- the map ---- */

const char *const tn_calibrate_words[] = {"none", "platt", "platt_smoothed", "isotonic", NULL};
const char *const tn_calibrate_choices[] = {"none",     "platt", "platt_smoothed",
                                            "isotonic", "auto",  NULL};

const char *tn_calibration_name(const tn_calibration *map)
{
    static const char *const names[] = {NULL, "platt", "isotonic"};
    return names[map->kind];
}

bool tn_calibration_is_of(const tn_calibration *map, tn_calibrate_method method)
{
    const bool isotonic = map->kind == TN_CALIBRATION_ISOTONIC;
    const bool none = map->kind == TN_CALIBRATION_NONE;
    return none == (method == TN_CALIBRATE_NONE) &&
           (none || method == TN_CALIBRATE_AUTO || isotonic == (method == TN_CALIBRATE_ISOTONIC));
}

static double logit_of(double p)
{
    if (p <= 0 || p >= 1) {
        return p <= 0 ? -LOGIT_MAX : LOGIT_MAX;
    }
    return fmin(fmax(tn_ln(p) - tn_ln(1 - p), -LOGIT_MAX), LOGIT_MAX);
}

static double interpolate(const tn_calibration *map, double z)
{
    uint32_t low = 0; /* the first knot above z, by bisection */
    uint32_t high = map->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (map->knot[middle].z > z) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == 0 || low == map->n) {
        return map->knot[low == 0 ? 0 : map->n - 1].p;
    }
    const tn_knot *left = &map->knot[low - 1];
    const tn_knot *right = &map->knot[low];
    return left->p + (z - left->z) / (right->z - left->z) * (right->p - left->p);
}

double tn_calibration_logit(const tn_calibration *map, double z)
{
    if (map->kind == TN_CALIBRATION_NONE || isnan(z)) {
        return z;
    }
    if (map->kind == TN_CALIBRATION_PLATT) {
        return map->a * z + map->b;
    }
    TN_ASSERT(map->n > 0);
    return logit_of(interpolate(map, z));
}

/* ---- rows become points ---- */

tn_status tn_calibrator_new(tn_calibrator **out, double sampling, tn_error *err)
{
    TN_ASSERT(sampling >= 0 && sampling <= 1);
    *out = NULL;
    TN_TRY(TN_ALLOC(*out, 1, "scores of a calibration", err));
    (*out)->shift = sampling > 0 ? tn_ln(sampling) : 0;
    return TN_OK;
}

void tn_calibrator_free(tn_calibrator *c)
{
    tn_free(c);
}

void tn_calibrator_clear(tn_calibrator *c)
{
    const double shift = c->shift;
    memset(c, 0, sizeof *c);
    c->shift = shift;
}

void tn_calibrator_add(tn_calibrator *c, const tn_scored *rows)
{
    TN_ASSERT(!c->packed);
    for (uint32_t i = 0; i < rows->n; i++) {
        double w = rows->weight != NULL ? (double)rows->weight[i] : 1;
        double y = (double)rows->label[i];
        double z = (double)rows->logit[i] + c->shift;
        if (!(w > 0) || isnan(y) || isnan(z)) {
            continue;
        }
        double bin = fmin(fmax((z + 16) * 0x1p15, 0), TN_BINS - 1);
        point *p = &c->point[(uint32_t)bin];
        p->z += w * z;
        p->weight += w;
        p->clicks += w * y;
    }
}

/* Leaves the points that hold something, at the mean logit of their rows. */
static void pack(tn_calibrator *c)
{
    for (uint32_t i = 0; i < TN_BINS && !c->packed; i++) {
        point p = c->point[i];
        if (p.weight > 0) {
            p.z /= p.weight;
            if (c->n > 0 && p.z <= c->point[c->n - 1].z) { /* both rounded to the edge */
                c->point[c->n - 1].weight += p.weight;
                c->point[c->n - 1].clicks += p.clicks;
            } else {
                c->point[c->n++] = p;
            }
            c->clicks += p.clicks;
            c->others += p.weight - p.clicks;
        }
    }
    c->packed = true;
}

static tn_status begin_fit(tn_calibrator *c, tn_error *err)
{
    pack(c);
    if (c->clicks > 0 && c->others > 0) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_DATA, "cannot calibrate: the rows hold %s",
                   c->n > 0 ? "one class only" : "no weight");
}

/* ---- Platt ---- */

/* What is fitted; targets of whole labels. */
typedef struct fit {
    const tn_calibrator *c;
    double click, other;
} fit;

static double target(const fit *f, const point *p)
{
    return f->other * p->weight + (f->click - f->other) * p->clicks;
}

/* Weighted loss with its ridge. */
static double loss_at(const fit *f, double a, double b)
{
    double sum = RIDGE / 2 * (a * a + b * b);
    for (uint32_t i = 0; i < f->c->n; i++) {
        const point *p = &f->c->point[i];
        double z = a * p->z + b;
        sum += p->weight * tn_log1p_exp(z) - target(f, p) * z;
    }
    return sum;
}

/* Newton's step from (a, b): solves the 2 x 2 system of gradient and Hessian. */
static void newton_step(const fit *f, double a, double b, double step[2])
{
    double ga = RIDGE * a;
    double gb = RIDGE * b;
    double haa = RIDGE;
    double hab = 0;
    double hbb = RIDGE;
    for (uint32_t i = 0; i < f->c->n; i++) {
        const point *p = &f->c->point[i];
        double q = tn_sigmoid(a * p->z + b);
        double d = p->weight * q - target(f, p);
        double h = p->weight * q * (1 - q);
        ga += d * p->z;
        gb += d;
        haa += h * p->z * p->z;
        hab += h * p->z;
        hbb += h;
    }
    double det = haa * hbb - hab * hab;
    step[0] = (hbb * ga - hab * gb) / det;
    step[1] = (haa * gb - hab * ga) / det;
}

tn_status tn_calibrator_platt(tn_calibrator *c, bool smoothed, tn_calibration *out, tn_error *err)
{
    TN_TRY(begin_fit(c, err));
    fit f = {c, 1, 0};
    if (smoothed) {
        f.click = (c->clicks + 1) / (c->clicks + 2);
        f.other = 1 / (c->others + 2);
    }
    double a = 1;
    double b = 0;
    double loss = loss_at(&f, a, b);
    for (uint32_t step = 0; step < NEWTON_STEPS; step++) {
        double d[2];
        newton_step(&f, a, b, d);
        double next = loss_at(&f, a - d[0], b - d[1]);
        for (uint32_t i = 0; i < HALVINGS && !(next <= loss); i++) {
            d[0] /= 2;
            d[1] /= 2;
            next = loss_at(&f, a - d[0], b - d[1]);
        }
        bool moved = next < loss;
        if (next <= loss) {
            a -= d[0];
            b -= d[1];
            loss = next;
        }
        if (!moved && fabs(d[0]) + fabs(d[1]) < STEP_MIN * (1 + fabs(a) + fabs(b))) {
            break;
        }
    }
    if (!(a > 0)) {
        return tn_fail(err, TN_E_DATA,
                       "cannot calibrate: higher scores have fewer clicks (a = %.6g)", a);
    }
    *out = (tn_calibration){.kind = TN_CALIBRATION_PLATT, .a = a, .b = b};
    return TN_OK;
}

/* ---- isotonic regression ---- */

static double level(const point *block)
{
    return block->clicks / block->weight;
}

/* Puts a point behind n blocks and joins while a level falls. Returns how many there are. A block
 * keeps the weighted sum of logits. */
static uint32_t push(point *block, uint32_t n, const point *p)
{
    point b = {p->z * p->weight, p->weight, p->clicks};
    while (n > 0 && level(&b) < level(&block[n - 1])) {
        n--;
        b.z += block[n].z;
        b.weight += block[n].weight;
        b.clicks += block[n].clicks;
    }
    block[n] = b;
    return n + 1;
}

/* Centres and levels of the blocks; of a run of equal levels its first and last one, between which
 * nothing changes. Overwrites the blocks' logits. */
static uint32_t thin_out(point *block, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        double p = level(&block[i]);
        bool within =
            kept > 0 && i + 1 < n && level(&block[kept - 1]) == p && level(&block[i + 1]) == p;
        double z = block[i].z / block[i].weight;
        if (!within && (kept == 0 || z > block[kept - 1].z)) {
            block[kept++] = (point){z, block[i].weight, block[i].clicks};
        }
    }
    return kept;
}

tn_status tn_calibrator_isotonic(tn_calibrator *c, tn_arena *arena, tn_calibration *out,
                                 tn_error *err)
{
    TN_TRY(begin_fit(c, err));
    point *block = NULL;
    TN_TRY(TN_ALLOC(block, c->n, "blocks of an isotonic map", err));
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        n = push(block, n, &c->point[i]);
    }
    n = thin_out(block, n);
    tn_status status = TN_OK;
    if (n > TN_KNOTS_MAX) {
        status =
            tn_fail(err, TN_E_LIMIT, "an isotonic map of %u knots, %d at most", n, TN_KNOTS_MAX);
    } else {
        tn_knot *knot = TN_NEW_ARRAY(arena, tn_knot, n);
        for (uint32_t i = 0; i < n; i++) {
            knot[i] = (tn_knot){block[i].z, level(&block[i])};
        }
        *out = (tn_calibration){.kind = TN_CALIBRATION_ISOTONIC, .n = n, .knot = knot};
    }
    tn_free(block);
    return status;
}

/* ---- what it is worth ---- */

/* At most POINTS_AT_ONCE. */
static tn_status add_points(tn_metrics *m, const point *p, uint32_t n, const tn_calibration *map,
                            tn_error *err)
{
    float logit[POINTS_AT_ONCE];
    float label[POINTS_AT_ONCE];
    float weight[POINTS_AT_ONCE];
    for (uint32_t i = 0; i < n; i++) {
        logit[i] = (float)tn_calibration_logit(map, p[i].z);
        label[i] = (float)level(&p[i]);
        weight[i] = (float)p[i].weight;
    }
    const tn_scored rows = {.n = n, .logit = logit, .label = label, .weight = weight};
    return tn_metrics_add(m, &rows, err);
}

tn_status tn_calibrator_metrics(const tn_calibrator *c, const tn_calibration *map, tn_metrics **out,
                                tn_error *err)
{
    TN_ASSERT(c->packed);
    tn_metrics *m = NULL;
    TN_TRY(tn_metrics_new(&m, &(tn_metrics_opts){0}, err));
    uint32_t at = 0;
    tn_status status = TN_OK;
    while (at < c->n && status == TN_OK) {
        uint32_t n = c->n - at < POINTS_AT_ONCE ? c->n - at : (uint32_t)POINTS_AT_ONCE;
        status = add_points(m, &c->point[at], n, map, err);
        at += n;
    }
    if (status != TN_OK) {
        tn_metrics_free(m);
        return status;
    }
    *out = m;
    return TN_OK;
}
