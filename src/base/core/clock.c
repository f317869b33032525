/* clock.c - monotonic time, wall time, and timers that tests shorten. */
#include "base/core/clock.h"

#include "base/core/error.h"
#include "base/core/number.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NS_PER_S = 1000000000, S_PER_DAY = 86400 };

static struct timespec now(clockid_t clock)
{
    struct timespec t;
    int failure = clock_gettime(clock, &t);
    TN_ASSERT(failure == 0);
    return t;
}

uint64_t tn_clock_ns(void)
{
    struct timespec t = now(CLOCK_MONOTONIC);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

double tn_clock_s(void)
{
    return (double)tn_clock_ns() / NS_PER_S;
}

double tn_wall_s(void)
{
    struct timespec t = now(CLOCK_REALTIME);
    return (double)t.tv_sec + (double)t.tv_nsec / NS_PER_S;
}

uint32_t tn_wall_day(void)
{
    time_t seconds = now(CLOCK_REALTIME).tv_sec;
    return seconds > 0 ? (uint32_t)(seconds / S_PER_DAY) : 0;
}

/* Returns `ns`, divided in test builds by the first of two variables that is set. */
static uint64_t divided(uint64_t ns, const char *name, const char *other)
{
#if defined(TN_FAILPOINTS)
    uint64_t by = 0;
    const char *own = getenv(name);                       // NOLINT(concurrency-mt-unsafe)
    const char *text = own != NULL ? own : getenv(other); // NOLINT(concurrency-mt-unsafe)
    const bool good = text != NULL && tn_read_u64(text, strlen(text), &by) == TN_NUM_OK;
    return good && by > 0 ? ns / by : ns;
#else
    (void)name;
    (void)other;
    return ns;
#endif
}

uint64_t tn_timer_ns(uint64_t ns)
{
    return divided(ns, "TNET_FAST", "TNET_FAST");
}

uint64_t tn_silence_ns(uint64_t ns)
{
    return divided(ns, "TNET_SILENCE", "TNET_FAST");
}
