/* rounds.c - see rounds.h. */
#include "support/rounds.h"

#include "support/test.h"

#ifdef TN_SANITIZED

enum { STEP = 3 };

static const char *chosen(void)
{
    const char *text = getenv("TNET_TEST_ROUNDS"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    return text != NULL ? text : "0";
}

uint32_t tn_round_step(void)
{
    return strcmp(chosen(), "all") == 0 ? 1 : STEP;
}

uint32_t tn_first_round(void)
{
    if (tn_round_step() == 1) {
        return 0;
    }
    const uint32_t first = (uint32_t)strtoul(chosen(), NULL, 10) % STEP;
    print_message("every third round, from %u on: TNET_TEST_ROUNDS=%u\n", first, first);
    return first;
}

#else

uint32_t tn_round_step(void)
{
    return 1;
}

uint32_t tn_first_round(void)
{
    return 0;
}

#endif
