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
/* Nats above which AUTO's fit needs no prior: chance alone gains them once in e^5 = 148 runs, since
 * twice the gain of two numbers that were not needed is chi squared (Wilks). */
#define SURE_GAIN 5.0
/* prior with less gain: a is about 1 and b about 0, see docs/numerics.md */
#define PRIOR_DEVIATION .3
#define STEP_MIN 1e-12

enum { CELLS = 1 << 13 /* bins of the logit, for each m */ };
/* Conditions for c: rows of each class on either side of the mean m, and nats that it gains. */
#define UNKNOWN_CLASS_MIN 50.0
#define UNKNOWN_GAIN_MIN 3.7

/* Rows of about one logit; clicks are the weighted sum of their labels. */
typedef struct point {
    double z; /* while rows are added: the weighted sum of their logits */
    double weight, clicks;
} point;

struct tn_calibrator {
    double shift; /* ln of the share of negatives */
    uint32_t n;
    bool packed;
    uint64_t rows;
    double clicks, others; /* weights */
    point point[TN_BINS];  /* once packed, n points that ascend by z */
    bool some_unknown;     /* some m is not 0 */
    point
        cell[(TN_UNKNOWN_MAX + 1) * CELLS]; /* the same rows, by m and z; packed if some_unknown */
    uint32_t cell_end[TN_UNKNOWN_MAX + 1];  /* end of the cells of each m; set once packed */
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
        return p <= 0 ? -TN_LEVEL_LOGIT_MAX : TN_LEVEL_LOGIT_MAX;
    }
    return fmin(fmax(tn_ln(p) - tn_ln(1 - p), -TN_LEVEL_LOGIT_MAX), TN_LEVEL_LOGIT_MAX);
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

double tn_calibration_logit(const tn_calibration *map, double z, uint32_t unknown)
{
    if (map->kind == TN_CALIBRATION_NONE || isnan(z)) {
        return z;
    }
    if (map->kind == TN_CALIBRATION_PLATT) {
        return map->a * z + map->b + map->c * (unknown < TN_UNKNOWN_MAX ? unknown : TN_UNKNOWN_MAX);
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

static void add_to(point *p, double z, double w, double y)
{
    p->z += w * z;
    p->weight += w;
    p->clicks += w * y;
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
        uint32_t m = rows->unknown != NULL ? rows->unknown[i] : 0;
        m = m < TN_UNKNOWN_MAX ? m : TN_UNKNOWN_MAX;
        add_to(&c->point[(uint32_t)bin], z, w, y);
        add_to(&c->cell[m * CELLS + (uint32_t)bin / (TN_BINS / CELLS)], z, w, y);
        c->some_unknown = c->some_unknown || m > 0;
        c->rows++;
    }
}

/* Packs the cells that hold something, at the mean logit of their rows. */
static void pack_cells(tn_calibrator *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < (TN_UNKNOWN_MAX + 1) * CELLS; i++) {
        const point p = c->cell[i];
        if (p.weight > 0) {
            c->cell[n++] = (point){p.z / p.weight, p.weight, p.clicks};
        }
        c->cell_end[i / CELLS] = n;
    }
}

/* Does the same with all points. */
static void pack(tn_calibrator *c)
{
    if (c->some_unknown && !c->packed) {
        pack_cells(c);
    }
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

/* Data of a fit, with the targets that whole labels get. */
typedef struct fit {
    const point *point;
    /* number of different m, from 0: `point` holds the points of each in turn */
    uint32_t n_m;
    const uint32_t *end; /* n_m: end of the points of each m */
    double click, other;
    double ridge, a; /* ridge of (a, b) about (a, 0); c has RIDGE about 0 */
} fit;

static double target(const fit *f, const point *p)
{
    return f->other * p->weight + (f->click - f->other) * p->clicks;
}

static double logit_at(const point *p, const double x[3], uint32_t m)
{
    return x[0] * p->z + x[1] + x[2] * m;
}

/* Returns the weighted loss of x = (a, b, c) with its ridge. */
static double loss_at(const fit *f, const double x[3])
{
    const double off = x[0] - f->a;
    double sum = f->ridge / 2 * (off * off + x[1] * x[1]) + RIDGE / 2 * x[2] * x[2];
    const point *p = f->point;
    for (uint32_t m = 0; m < f->n_m; m++) {
        for (; p < f->point + f->end[m]; p++) {
            double z = logit_at(p, x, m);
            sum += p->weight * tn_log1p_exp(z) - target(f, p) * z;
        }
    }
    return sum;
}

/* Sets step := inverse of the 2 x 2 matrix (aa, ab, bb) times (ga, gb). */
static void solve(const double h[3], double ga, double gb, double step[2])
{
    double det = h[0] * h[2] - h[1] * h[1];
    step[0] = (h[2] * ga - h[1] * gb) / det;
    step[1] = (h[0] * gb - h[1] * ga) / det;
}

/* Newton's step from x: solves the system of gradient and Hessian, c first by its Schur complement,
 * which is the ridge where no row has an m. */
static void newton_step(const fit *f, const double x[3], double step[3])
{
    double g[3] = {f->ridge * (x[0] - f->a), f->ridge * x[1], RIDGE * x[2]};
    double h[3] = {f->ridge, 0, f->ridge}; /* aa, ab, bb */
    double hc[3] = {0, 0, RIDGE};          /* ac, bc, cc */
    const point *p = f->point;
    for (uint32_t m = 0; m < f->n_m; m++) {
        for (; p < f->point + f->end[m]; p++) {
            double q = tn_sigmoid(logit_at(p, x, m));
            double d = p->weight * q - target(f, p);
            double w = p->weight * q * (1 - q);
            g[0] += d * p->z;
            g[1] += d;
            g[2] += d * m;
            h[0] += w * p->z * p->z;
            h[1] += w * p->z;
            h[2] += w;
            hc[0] += w * p->z * m;
            hc[1] += w * m;
            hc[2] += w * m * m;
        }
    }
    double by_c[2];
    solve(h, g[0], g[1], step);
    solve(h, hc[0], hc[1], by_c);
    step[2] =
        (g[2] - hc[0] * step[0] - hc[1] * step[1]) / (hc[2] - hc[0] * by_c[0] - hc[1] * by_c[1]);
    step[0] -= by_c[0] * step[2];
    step[1] -= by_c[1] * step[2];
}

/* Moves x to the least loss, which it returns. */
static double minimize(const fit *f, double x[3])
{
    double loss = loss_at(f, x);
    for (uint32_t step = 0; step < NEWTON_STEPS; step++) {
        double d[3];
        double to[3];
        double next = (double)NAN;
        newton_step(f, x, d);
        for (uint32_t i = 0; i <= HALVINGS && !(next <= loss); i++) {
            for (uint32_t k = 0; k < 3; k++) {
                d[k] /= i > 0 ? 2 : 1;
                to[k] = x[k] - d[k];
            }
            next = loss_at(f, to);
        }
        bool moved = next < loss;
        if (next <= loss) {
            memcpy(x, to, sizeof to);
            loss = next;
        }
        if (!moved && fabs(d[0]) + fabs(d[1]) + fabs(d[2]) <
                          STEP_MIN * (1 + fabs(x[0]) + fabs(x[1]) + fabs(x[2]))) {
            break;
        }
    }
    return loss;
}

/* Returns whether there are enough clicks and non-clicks in rows of few and of many unknown
 * slots. */
static bool tells_of_unknown(const tn_calibrator *c)
{
    double clicks[TN_UNKNOWN_MAX + 1] = {0};
    double all[TN_UNKNOWN_MAX + 1] = {0};
    double mean = 0;
    const double rows = (double)c->rows / (c->clicks + c->others); /* per weight */
    const point *p = c->cell;
    for (uint32_t m = 0; m <= TN_UNKNOWN_MAX; m++) {
        for (; p < c->cell + c->cell_end[m]; p++) {
            clicks[m] += rows * p->clicks;
            all[m] += rows * p->weight;
        }
        mean += m * all[m] / (double)c->rows;
    }
    double side[2][2] = {{0}};
    for (uint32_t m = 0; m <= TN_UNKNOWN_MAX; m++) {
        side[m > mean][0] += clicks[m];
        side[m > mean][1] += all[m] - clicks[m];
    }
    return side[0][0] >= UNKNOWN_CLASS_MIN && side[0][1] >= UNKNOWN_CLASS_MIN &&
           side[1][0] >= UNKNOWN_CLASS_MIN && side[1][1] >= UNKNOWN_CLASS_MIN;
}

/* Scales the prior to rows whose weights are 1 in the mean. */
static double prior_of(const tn_calibrator *c)
{
    return (c->clicks + c->others) / (double)c->rows / (PRIOR_DEVIATION * PRIOR_DEVIATION);
}

tn_status tn_calibrator_platt(tn_calibrator *c, tn_calibrate_method method, tn_calibration *out,
                              tn_error *err)
{
    TN_ASSERT(method != TN_CALIBRATE_NONE && method != TN_CALIBRATE_ISOTONIC);
    TN_TRY(begin_fit(c, err));
    fit f = {c->point, 1, &c->n, 1, 0, RIDGE, 0};
    if (method == TN_CALIBRATE_PLATT_SMOOTHED) {
        f.click = (c->clicks + 1) / (c->clicks + 2);
        f.other = 1 / (c->others + 2);
    }
    double x[3] = {1, 0, 0};
    const double raw = loss_at(&f, x);
    const double won = (raw - minimize(&f, x)) * (double)c->rows / (c->clicks + c->others);
    if (method == TN_CALIBRATE_AUTO && !(won > SURE_GAIN)) {
        f.ridge = prior_of(c);
        f.a = 1;
        memcpy(x, (const double[]){1, 0, 0}, sizeof x);
        (void)minimize(&f, x);
    }
    if (!(x[0] > 0)) {
        return tn_fail(err, TN_E_DATA,
                       "cannot calibrate: higher scores have fewer clicks (a = %.6g)", x[0]);
    }
    if (tells_of_unknown(c)) {
        f.point = c->cell;
        f.n_m = TN_UNKNOWN_MAX + 1;
        f.end = c->cell_end;
        double with[3] = {x[0], x[1], 0};
        const double gain = loss_at(&f, x) - minimize(&f, with);
        if (with[0] > 0 && gain * (double)c->rows > UNKNOWN_GAIN_MIN * (c->clicks + c->others)) {
            memcpy(x, with, sizeof x);
        }
    }
    *out = (tn_calibration){.kind = TN_CALIBRATION_PLATT, .a = x[0], .b = x[1], .c = x[2]};
    return TN_OK;
}

/* ---- isotonic regression ---- */

/* A block: points first .. last, which have one level. */
typedef struct block {
    double weight, clicks;
    uint32_t first, last;
} block;

static double level(const block *b)
{
    return b->clicks / b->weight;
}

/* Appends point `i` to n blocks and joins them while a level falls. Returns how many there are. */
static uint32_t push(block *blocks, uint32_t n, const point *p, uint32_t i)
{
    block b = {p->weight, p->clicks, i, i};
    while (n > 0 && level(&b) < level(&blocks[n - 1])) {
        n--;
        b.weight += blocks[n].weight;
        b.clicks += blocks[n].clicks;
        b.first = blocks[n].first;
    }
    blocks[n] = b;
    return n + 1;
}

/* Adds a knot where the logit rises. Of a run of equal levels the first and the last one stay. */
static uint32_t add_knot(tn_knot *knot, uint32_t n, double z, double p)
{
    if (n > 0 && !(z > knot[n - 1].z)) {
        return n;
    }
    if (n > 1 && knot[n - 1].p == p && knot[n - 2].p == p) {
        n--;
    }
    knot[n] = (tn_knot){z, p};
    return n + 1;
}

/* Writes the knots. Both ends of each block are knots: rows of a block have its level, as in
 * scikit-learn's IsotonicRegression. Returns how many there are, two a block at most. */
static uint32_t knots_of(const tn_calibrator *c, const block *blocks, uint32_t n, tn_knot *knot)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double p = level(&blocks[i]);
        kept = add_knot(knot, kept, c->point[blocks[i].first].z, p);
        kept = add_knot(knot, kept, c->point[blocks[i].last].z, p);
    }
    return kept;
}

tn_status tn_calibrator_isotonic(tn_calibrator *c, tn_arena *arena, tn_calibration *out,
                                 tn_error *err)
{
    TN_TRY(begin_fit(c, err));
    block *blocks = NULL;
    TN_TRY(TN_ALLOC(blocks, c->n, "blocks of an isotonic map", err));
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        n = push(blocks, n, &c->point[i], i);
    }
    tn_status status = TN_OK;
    if (n > TN_KNOTS_MAX / 2) {
        status = tn_fail(err, TN_E_LIMIT, "an isotonic map of %u steps, %d at most", n,
                         TN_KNOTS_MAX / 2);
    } else {
        tn_knot *knot = TN_NEW_ARRAY(arena, tn_knot, 2 * (size_t)n);
        *out = (tn_calibration){
            .kind = TN_CALIBRATION_ISOTONIC, .n = knots_of(c, blocks, n, knot), .knot = knot};
    }
    tn_free(blocks);
    return status;
}

/* ---- what it is worth ---- */

/* Adds at most POINTS_AT_ONCE points, all of one m. */
static tn_status add_points(tn_metrics *m, const point *p, uint32_t n, const tn_calibration *map,
                            uint32_t unknown, tn_error *err)
{
    float logit[POINTS_AT_ONCE];
    float label[POINTS_AT_ONCE];
    float weight[POINTS_AT_ONCE];
    for (uint32_t i = 0; i < n; i++) {
        logit[i] = (float)tn_calibration_logit(map, p[i].z, unknown);
        label[i] = (float)(p[i].clicks / p[i].weight);
        weight[i] = (float)p[i].weight;
    }
    const tn_scored rows = {.n = n, .logit = logit, .label = label, .weight = weight};
    return tn_metrics_add(m, &rows, err);
}

tn_status tn_calibrator_metrics(const tn_calibrator *c, const tn_calibration *map, tn_metrics **out,
                                tn_error *err)
{
    TN_ASSERT(c->packed);
    const bool by_m = map->c != 0 && c->some_unknown;
    const point *all = by_m ? c->cell : c->point;
    const uint32_t *end = by_m ? c->cell_end : &c->n;
    tn_metrics *m = NULL;
    TN_TRY(tn_metrics_new(&m, &(tn_metrics_opts){0}, err));
    uint32_t at = 0;
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < (by_m ? TN_UNKNOWN_MAX + 1 : 1); k++) {
        while (at < end[k] && status == TN_OK) {
            uint32_t n = end[k] - at < POINTS_AT_ONCE ? end[k] - at : (uint32_t)POINTS_AT_ONCE;
            status = add_points(m, all + at, n, map, k, err);
            at += n;
        }
    }
    if (status != TN_OK) {
        tn_metrics_free(m);
        return status;
    }
    *out = m;
    return TN_OK;
}
