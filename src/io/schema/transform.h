/* transform.h - what becomes of a raw number before it is an input or a key.
 *
 *     identity   v                      minmax   (v - a) / (b - a), cut to 0 .. 1
 *     log        sign(v) ln(1 + |v|)    zscore   (v - a) / max(b, 1e-12)
 *
 *     ln2_bucket   v > 2: sign floor(ln(v)^2); else 2^32 + (u32)(i32) trunc(v), not below -2^31
 *     buckets      sign = number of bounds <= v
 *     hour, weekday (0: Monday), weekend (1: it is)   of a date: a number YYMMDDHH, unix seconds
 *                  of 1990 and later, in UTC; or a text 2026-11-29, with or without T, t or a
 *                  blank, 23, :15, :07, .5, and Z or +02:00, whose hour counts as it is written
 *     quantiles    as buckets; the bounds are in a file, or are found in the data before training
 *                  begins (train/config/choices.h): until then all numbers are in one bucket
 *
 * Pure functions of a finite v; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_binder;
struct tn_tree;

typedef enum tn_transform_kind {
    TN_TRANSFORM_IDENTITY,
    TN_TRANSFORM_LOG,
    TN_TRANSFORM_MINMAX, /* a .. b */
    TN_TRANSFORM_ZSCORE, /* given: mean a, deviation b; running: a is NAN, done by the graph */
    TN_TRANSFORM_LN2_BUCKET,
    TN_TRANSFORM_BUCKETS,
    TN_TRANSFORM_HOUR,
    TN_TRANSFORM_WEEKDAY,
    TN_TRANSFORM_WEEKEND,
} tn_transform_kind;

typedef struct tn_transform {
    tn_transform_kind kind;
    double a, b;
    uint32_t n_bounds; /* 0: the bounds are not found yet, tn_transform_parts */
    const double *bound;
    uint64_t freeze_rows; /* running zscore */
    const uint8_t *small; /* ln2_bucket of whole numbers below TN_LN2_SMALL, from 3 on */
} tn_transform;

enum { TN_LN2_SMALL = 4096 };

#define TN_LN2_OFFSET (UINT64_C(1) << 32)

/* From its piece of configuration (NULL: identity). Faults go to b->diag; false then. */
bool tn_transform_read(tn_transform *out, const struct tn_tree *tree, const struct tn_binder *b);

/* A running zscore learns from so many rows, when nothing else is said. */
enum { TN_ZSCORE_FREEZE_ROWS = 1000000 };

/* Buckets of `transform: quantiles`, when nothing else is said. */
enum { TN_TRANSFORM_PARTS = 20 };

/* How many buckets of equal share a transform wants whose bounds are still to be found in the data:
 * `quantiles`, `{quantiles: n}`, or nothing where `is_bucketed`. 0: none. */
uint32_t tn_transform_parts(const struct tn_tree *tree, bool is_bucketed);

/* Makes signs (ln2_bucket, buckets, hour ..) rather than values. */
static inline bool tn_transform_is_sign(const tn_transform *t)
{
    return t->kind == TN_TRANSFORM_LN2_BUCKET || t->kind >= TN_TRANSFORM_BUCKETS;
}

/* hour, weekday, weekend. */
static inline bool tn_transform_is_date(const tn_transform *t)
{
    return t->kind >= TN_TRANSFORM_HOUR;
}

/* Returns whether v is rounded to a float32 first. Inputs of the graph are so up to rounding, and
 * numbers below 2^24 that are calculated with, since float32 has all whole ones of them. */
static inline bool tn_transform_rounds(const tn_transform *t, double v)
{
    const bool as_is = t->kind == TN_TRANSFORM_IDENTITY ||
                       (t->kind == TN_TRANSFORM_ZSCORE && t->a != t->a /* running */);
    return as_is || (!tn_transform_is_sign(t) && v > -16777216.0 && v < 16777216.0);
}

/* Whether it has a sign for v; any other than hour and its like has. */
bool tn_transform_takes(const tn_transform *t, double v);

/* The sign of a text that is a date; false: it is none. */
bool tn_transform_date(const tn_transform *t, const char *text, size_t size, uint64_t *out);

/* Returns the double that a float32 means: .7 is a little less as a float32, and meets a bound of
 * .7. */
double tn_transform_of_single(const tn_transform *t, float v);

/* Undefined for a v that it does not take. */
float tn_transform_value(const tn_transform *t, double v);
uint64_t tn_transform_sign(const tn_transform *t, double v);
