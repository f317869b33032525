/* test_schedule.c - the rate over the steps. */
#include "kit.h"
#include "ps/optim/schedule.h"
#include "support/test.h"

static void assert_factor(const tn_variant *v, uint64_t step, uint64_t steps, double want)
{
    double got = tn_schedule_factor(v, step, steps);
    fail_if(!(fabs(got - want) <= 1e-9), "step %llu: %.12f is not %.12f", (unsigned long long)step,
            got, want);
}

TEST(v20_cosine_after_warmup)
{
    tn_arena *a FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_variant v = kit_schedule(a, "cosine", "warmup=10 final=0");
    assert_factor(&v, 0, 110, .1);
    assert_factor(&v, 4, 110, .5);
    assert_factor(&v, 9, 110, 1);
    assert_factor(&v, 10, 110, 1);
    assert_factor(&v, 35, 110, .5 * (1 + sqrt(.5)));
    assert_factor(&v, 60, 110, .5);
    assert_factor(&v, 110, 110, 0);
    assert_factor(&v, 5000, 110, 0);
}

TEST(every_schedule_follows_its_formula)
{
    tn_arena *a FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const double e = .1;
    tn_variant linear = kit_schedule(a, "linear", "warmup=4 final=.1");
    tn_variant cosine = kit_schedule(a, "cosine", "warmup=4 final=.1");
    tn_variant poly = kit_schedule(a, "polynomial", "warmup=4 final=.1 power=3");
    tn_variant expo = kit_schedule(a, "exponential", "warmup=4 rate=.5 every=8");
    tn_variant stair = kit_schedule(a, "exponential", "warmup=4 rate=.5 every=8 staircase=yes");
    tn_variant root = kit_schedule(a, "inverse_sqrt", "warmup=4");
    tn_variant piece = kit_schedule(a, "piecewise", "at=10,20,30 factors=.5,.25,2");
    for (uint64_t s = 4; s < 60; s++) {
        double u = fmin(1, ((double)s - 4) / 46);
        double k = ((double)s - 4) / 8;
        assert_factor(&linear, s, 50, 1 - (1 - e) * u);
        assert_factor(&cosine, s, 50, e + (1 - e) * (1 + cos(acos(-1) * u)) / 2);
        assert_factor(&poly, s, 50, e + (1 - e) * pow(1 - u, 3));
        assert_factor(&expo, s, 50, pow(.5, k));
        assert_factor(&stair, s, 50, pow(.5, floor(k)));
        assert_factor(&root, s, 50, sqrt(4 / (double)s));
        assert_factor(&piece, s, 50, s < 10 ? 1 : s < 20 ? .5 : s < 30 ? .25 : 2);
    }
}

TEST(every_schedule_warms_up_and_none_is_the_base_rate)
{
    tn_arena *a FREED(tn_arena_free) = tn_arena_new(1 << 14);
    for (const tn_choice *const *c = tn_schedule_choices; *c != NULL; c++) {
        tn_variant v = kit_schedule(a, (*c)->name, "warmup=5");
        for (uint64_t s = 0; s < 5; s++) {
            assert_factor(&v, s, 100, (double)(s + 1) / 5);
        }
    }
    tn_variant unset = {0};
    assert_factor(&unset, 3, 0, 1);
    assert_null(tn_schedule_check(&unset, 0));
    tn_variant plain = kit_schedule(a, "constant", NULL);
    assert_factor(&plain, 0, 0, 1);
    tn_variant root = kit_schedule(a, "inverse_sqrt", NULL);
    assert_factor(&root, 0, 0, 1);
    assert_factor(&root, 4, 0, .5);
}

/* An owner refuses a push with a negative rate. */
TEST(no_rate_falls_below_zero)
{
    static const char *const falls[] = {"linear", "cosine", "polynomial"};
    tn_arena *a FREED(tn_arena_free) = tn_arena_new(1 << 12);
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        tn_variant v = kit_schedule(a, falls[i], "final=0");
        for (uint64_t end = 1; end < 400; end++) {
            for (uint64_t s = 0; s < end + 2; s++) {
                assert_true(tn_schedule_factor(&v, s, end) >= 0);
            }
        }
    }
}

TEST(an_end_may_be_the_schedules_own)
{
    tn_arena *a FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_variant own = kit_schedule(a, "linear", "steps=10");
    assert_factor(&own, 5, 0, .5);
    assert_factor(&own, 5, 1000, .5);
    tn_variant shorter = kit_schedule(a, "linear", "warmup=8 steps=4 final=.2");
    assert_factor(&shorter, 8, 0, .2);
}

TEST(schedules_that_cannot_run_say_why)
{
    tn_arena *a FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_variant open_end = kit_schedule(a, "cosine", NULL);
    assert_non_null(tn_schedule_check(&open_end, 0));
    assert_null(tn_schedule_check(&open_end, 10));
    tn_variant uneven = kit_schedule(a, "piecewise", "at=1,2 factors=1,2,3");
    assert_non_null(tn_schedule_check(&uneven, 10));
    tn_variant unsorted = kit_schedule(a, "piecewise", "at=2,2 factors=1,3");
    assert_non_null(tn_schedule_check(&unsorted, 10));
    tn_variant good = kit_schedule(a, "piecewise", "at=1,2 factors=1,3");
    assert_null(tn_schedule_check(&good, 0));
    tn_variant empty = kit_schedule(a, "piecewise", NULL);
    assert_non_null(tn_schedule_check(&empty, 0));
}
