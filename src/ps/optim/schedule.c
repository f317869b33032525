/* schedule.c - the schedules of numerics section 6; every one begins with an optional warm-up. */
#include "ps/optim/schedule.h"

#include "base/core/error.h"
#include "base/math/fmath.h"
#include "config/field.h"

#include <stdbool.h>

/* One struct for all; each choice lists the fields that it reads. */
typedef struct sched_opts {
    uint64_t warmup;
    uint64_t steps; /* TN_UNSET_U64: of the run */
    double final;
    double power;
    double rate;
    uint64_t every;
    bool staircase;
    tn_f64s at, factors;
} sched_opts;

typedef struct sched {
    tn_choice choice; /* its impl is this constant itself */
    double (*factor)(const sched_opts *o, uint64_t step, uint64_t end); /* after the warm-up */
    bool needs_end;
} sched;

/* Share of the way from the end of the warm-up to the end. */
static double way(const sched_opts *o, uint64_t step, uint64_t end)
{
    TN_ASSERT(step >= o->warmup);
    if (step >= end || end <= o->warmup) {
        return 1;
    }
    return (double)(step - o->warmup) / (double)(end - o->warmup);
}

/* cos(pi u), 0 <= u <= 1: the Taylor series of sin(pi/2 - pi u), so that no libm decides a bit. */
static double cos_pi(double u)
{
    const double pi = 3.14159265358979323846;
    const int last = 21;
    double x = pi * (0.5 - u);
    double term = x;
    double sum = x;
    for (int k = 3; k <= last; k += 2) {
        term *= -x * x / (k * (k - 1));
        sum += term;
    }
    return sum;
}

static double power_of(double base, double exponent)
{
    return base > 0 ? tn_exp(exponent * tn_ln(base)) : 0;
}

static double constant(const sched_opts *o, uint64_t step, uint64_t end)
{
    (void)o;
    (void)step;
    (void)end;
    return 1;
}

static double linear(const sched_opts *o, uint64_t step, uint64_t end)
{
    return 1 - (1 - o->final) * way(o, step, end);
}

static double cosine(const sched_opts *o, uint64_t step, uint64_t end)
{
    const double up = 1 + cos_pi(way(o, step, end)); /* at the end a rounding below 0 */
    return o->final + (1 - o->final) * (up > 0 ? up : 0) / 2;
}

static double polynomial(const sched_opts *o, uint64_t step, uint64_t end)
{
    return o->final + (1 - o->final) * power_of(1 - way(o, step, end), o->power);
}

static double exponential(const sched_opts *o, uint64_t step, uint64_t end)
{
    (void)end;
    TN_ASSERT(step >= o->warmup && o->every > 0);
    uint64_t past = step - o->warmup;
    uint64_t whole = past / o->every;
    double times = o->staircase ? (double)whole : (double)past / (double)o->every;
    return power_of(o->rate, times);
}

static double inverse_sqrt(const sched_opts *o, uint64_t step, uint64_t end)
{
    (void)end;
    uint64_t warm = o->warmup > 0 ? o->warmup : 1;
    double ratio = (double)warm / (double)(step > warm ? step : warm);
    return power_of(ratio, 0.5);
}

static double piecewise(const sched_opts *o, uint64_t step, uint64_t end)
{
    (void)end;
    double factor = 1;
    for (uint32_t i = 0; i < o->at.n && (double)step >= o->at.item[i]; i++) {
        factor = o->factors.item[i];
    }
    return factor;
}

#define WARMUP                                                                                     \
    TN_FIELD_U64(sched_opts, warmup, "0", 0, 1e15, "steps", "rate grows from 0 over these steps")
#define STEPS                                                                                      \
    TN_FIELD_U64(sched_opts, steps, "~", 1, 1e15, "steps", "where it ends; default: with the run")
#define FINAL TN_FIELD_F64(sched_opts, final, "0", 0, 1, "", "factor at the end")

static const tn_field constant_fields[] = {WARMUP, TN_FIELD_END};
static const tn_field falling_fields[] = {WARMUP, FINAL, STEPS, TN_FIELD_END};
static const tn_field polynomial_fields[] = {
    WARMUP,       FINAL,
    STEPS,        TN_FIELD_F64(sched_opts, power, "2", 0.01, 100, "", "exponent of the way left"),
    TN_FIELD_END,
};
static const tn_field exponential_fields[] = {
    WARMUP,
    TN_FIELD_F64(sched_opts, rate, "0.96", 1e-9, 1, "", "factor per `every` steps"),
    TN_FIELD_U64(sched_opts, every, "1000", 1, 1e15, "steps", "steps for one factor"),
    TN_FIELD_BOOL(sched_opts, staircase, "false", "falls at once after `every` steps"),
    TN_FIELD_END,
};
static const tn_field piecewise_fields[] = {
    WARMUP,
    TN_FIELD_F64S(sched_opts, at, "~", 0, 1e15, "steps at which the factor changes, ascending"),
    TN_FIELD_F64S(sched_opts, factors, "~", 0, 1e6, "factor from each of these steps on"),
    TN_FIELD_END,
};

#define SCHED(id, help_, fields_, needs_end_)                                                      \
    static const sched sched_##id = {                                                              \
        .choice = {#id, help_, fields_, sizeof(sched_opts), &sched_##id},                          \
        .factor = (id),                                                                            \
        .needs_end = (needs_end_)}

SCHED(constant, "the base rate", constant_fields, false);
SCHED(linear, "a straight line to `final`", falling_fields, true);
SCHED(cosine, "half a cosine to `final`", falling_fields, true);
SCHED(polynomial, "a power of the way left", polynomial_fields, true);
SCHED(exponential, "the same factor every so many steps", exponential_fields, false);
SCHED(inverse_sqrt, "root of warmup / step", constant_fields, false);
SCHED(piecewise, "given factors from given steps on", piecewise_fields, false);

const tn_choice *const tn_schedule_choices[] = {
    &sched_constant.choice,    &sched_linear.choice,
    &sched_cosine.choice,      &sched_polynomial.choice,
    &sched_exponential.choice, &sched_inverse_sqrt.choice,
    &sched_piecewise.choice,   NULL,
};

double tn_schedule_factor(const tn_variant *schedule, uint64_t step, uint64_t steps)
{
    if (schedule->choice == NULL) {
        return 1;
    }
    const sched_opts *o = schedule->opts;
    const sched *s = schedule->choice->impl;
    if (step < o->warmup) {
        return (double)(step + 1) / (double)o->warmup;
    }
    if (!s->needs_end) {
        return s->factor(o, step, 0);
    }
    uint64_t end = o->steps != TN_UNSET_U64 ? o->steps : steps;
    TN_ASSERT(end != 0);
    return s->factor(o, step, end);
}

static const char *check_lists(const sched_opts *o)
{
    if (o->at.n != o->factors.n || o->at.n == 0) {
        return "`at` and `factors` must be lists of the same length";
    }
    for (uint32_t i = 1; i < o->at.n; i++) {
        if (!(o->at.item[i] > o->at.item[i - 1])) {
            return "the steps of `at` must ascend";
        }
    }
    return NULL;
}

const char *tn_schedule_check(const tn_variant *schedule, uint64_t steps)
{
    if (schedule->choice == NULL) {
        return NULL;
    }
    const sched_opts *o = schedule->opts;
    const sched *s = schedule->choice->impl;
    if (s == &sched_piecewise) {
        return check_lists(o);
    }
    if (s->needs_end && o->steps == TN_UNSET_U64 && steps == 0) {
        return "the run has no known end, so the schedule needs `steps`";
    }
    if (s->needs_end && o->steps != TN_UNSET_U64 && o->warmup >= o->steps) {
        return "`warmup` must be shorter than `steps`";
    }
    return NULL;
}
