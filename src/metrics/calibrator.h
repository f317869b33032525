/* calibrator.h - rising maps from a model's logits to calibrated probabilities, fitted on rows that
 * it was not trained on.
 *
 *     tn_calibrator *c = NULL;
 *     TN_TRY(tn_calibrator_new(&c, sampling, err));
 *     tn_calibrator_add(c, &rows);                         as often as there are rows
 *
 *     tn_calibration map;
 *     TN_TRY(tn_calibrator_platt(c, false, &map, err));    p = sigmoid(a z + b + c m)
 *     TN_TRY(tn_calibrator_isotonic(c, arena, &map, err)); or lines between rising knots
 *     tn_calibrator_free(c);
 *     z = tn_calibration_logit(&map, z, m);                of the calibrated probability
 *
 * m is the number of a row's slots that hold keys, but none that the model knows: each leaves a
 * score without what a key adds there in the mean, which a map of z alone cannot mend.
 *
 * Memory is the same for any number of rows, 37 MB: rows are added up in the bins of the metrics'
 * histogram and placed at the mean logit of their bin, so that no row moves by more than 2^-15 and
 * their sum not at all. Only those beyond +-16 share the first or the last bin. For c they are
 * added up once more, in bins 2^-8 wide for each m. One thread per calibrator.
 */
#pragma once

#include "metrics/metrics.h"

typedef struct tn_arena tn_arena; /* base/core/arena.h */

/* Ways to fit a map, in the order of tn_calibrate_words, which ends before AUTO, and of
 * tn_calibrate_choices, which has all. */
typedef enum tn_calibrate_method {
    TN_CALIBRATE_NONE,
    TN_CALIBRATE_PLATT,
    TN_CALIBRATE_PLATT_SMOOTHED,
    TN_CALIBRATE_ISOTONIC,
    TN_CALIBRATE_AUTO, /* platt, held to the scores where they are few */
} tn_calibrate_method;

extern const char *const tn_calibrate_words[]; /* both end with NULL */
extern const char *const tn_calibrate_choices[];

typedef enum tn_calibration_kind {
    TN_CALIBRATION_NONE,
    TN_CALIBRATION_PLATT,
    TN_CALIBRATION_ISOTONIC,
} tn_calibration_kind;

typedef struct tn_knot {
    double z, p;
} tn_knot;

enum { TN_KNOTS_MAX = 1 << 16, TN_UNKNOWN_MAX = 63 /* larger m are this one */ };
#define TN_KNOT_MAX 1e30        /* bound of |z|, which is a float's */
#define TN_LEVEL_LOGIT_MAX 16.0 /* logit of isotonic levels of 0 and 1 */

/* A map of logits that are corrected for sampled negatives. */
typedef struct tn_calibration {
    tn_calibration_kind kind;
    uint32_t n;          /* isotonic: knots, at least one; z ascends, p does not fall */
    double a, b, c;      /* Platt: a > 0; c is 0 where m is no matter */
    const tn_knot *knot; /* lent */
} tn_calibration;

/* Returns the calibrated logit. Isotonic: p is linear between knots and constant outside, and a p
 * of 0 or 1 is served as sigmoid(-16) or sigmoid(16), so that no click has an infinite loss. */
double tn_calibration_logit(const tn_calibration *map, double z, uint32_t unknown);

/* Returns "platt" or "isotonic"; NULL for no map. */
const char *tn_calibration_name(const tn_calibration *map);

/* Returns whether a method may have fitted this map. */
bool tn_calibration_is_of(const tn_calibration *map, tn_calibrate_method method);

typedef struct tn_calibrator tn_calibrator;

/* Makes a calibrator. `sampling`: the share of negatives that were kept in training, as in
 * tn_metrics_opts. */
tn_status tn_calibrator_new(tn_calibrator **out, double sampling, tn_error *err) TN_MUST_USE;
void tn_calibrator_free(tn_calibrator *c);  /* NULL is fine */
void tn_calibrator_clear(tn_calibrator *c); /* no rows, also after a fit */

/* Adds rows. Labels between 0 and 1 count in part. Rows of weight 0 add nothing. Not after a
 * fit. */
void tn_calibrator_add(tn_calibrator *c, const tn_scored *rows);

/* Fits by weighted maximum likelihood with Newton's method from (1, 0), ridge 1e-9. PLATT_SMOOTHED:
 * targets (P+1)/(P+2) and 1/(N+2) instead of 1 and 0. AUTO: where that gains at most 5 nats with a
 * prior, a of N(1, .3) and b of N(0, .3), rows weighing 1 in the mean. With c where rows of an m
 * above and of one below its mean both hold 50 of each class, and c gains more than 3.7 nats of log
 * likelihood, which chance alone does once in 150 fits. TN_E_DATA: no weight, one class only, or
 * higher scores have fewer clicks. */
tn_status tn_calibrator_platt(tn_calibrator *c, tn_calibrate_method method, tn_calibration *out,
                              tn_error *err) TN_MUST_USE;

/* Pools adjacent violators; knots are the ends of the blocks, in `arena`. TN_E_DATA as above,
 * TN_E_LIMIT: more blocks than half of TN_KNOTS_MAX. */
tn_status tn_calibrator_isotonic(tn_calibrator *c, tn_arena *arena, tn_calibration *out,
                                 tn_error *err) TN_MUST_USE;

/* Computes log loss, COPC, ECE and the like of the same rows after the map; a bin counts as a
 * row. */
tn_status tn_calibrator_metrics(const tn_calibrator *c, const tn_calibration *map, tn_metrics **out,
                                tn_error *err) TN_MUST_USE;
