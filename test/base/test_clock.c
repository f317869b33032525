/* test_clock.c - clocks run forward and agree with each other. */
#include "base/core/clock.h"
#include "support/test.h"

#include <math.h>
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
