/* test_clock.c - clocks run forward and agree with each other. */
#include "base/core/clock.h"
#include "support/test.h"

#include <time.h>

TEST(the_monotonic_clock_never_goes_back)
{
    uint64_t last = tn_clock_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = tn_clock_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(tn_clock_s() >= (double)last / 1e9);
    assert_true(tn_clock_s() - (double)last / 1e9 < 60);
}

TEST(wall_time_is_that_of_the_system)
{
    double before = (double)time(NULL);
    double now = tn_wall_s();
    assert_true(now >= before && now < before + 60);
    uint32_t day = tn_wall_day();
    uint32_t later = (uint32_t)floor(tn_wall_s() / 86400);
    assert_in_range(day, later - 1, later);
}

TEST(a_silence_is_divided_by_its_own_variable_and_else_by_that_of_timers)
{
    static const struct {
        const char *fast, *silence;
        uint64_t timer_ns, silence_ns;
    } rows[] = {{NULL, NULL, 600, 600}, {"20", NULL, 30, 30},  {"20", "1", 30, 600},
                {"20", "3", 30, 200},   {NULL, "3", 600, 200}, {"0", "x", 600, 600}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const name[] = {"TNET_FAST", "TNET_SILENCE"};
        const char *const value[] = {rows[i].fast, rows[i].silence};
        for (size_t k = 0; k < 2; k++) { /* NOLINTNEXTLINE(concurrency-mt-unsafe): alone */
            const int done = value[k] != NULL ? setenv(name[k], value[k], 1) : unsetenv(name[k]);
            assert_int_equal(done, 0);
        }
        assert_int_equal(tn_timer_ns(600), rows[i].timer_ns);
        assert_int_equal(tn_silence_ns(600), rows[i].silence_ns);
    }
}
