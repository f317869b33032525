/* rounds.c - see rounds.h. */
#include "support/rounds.h"

#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static const char *chosen(void)
{
    const char *text = getenv("TNET_TEST_ROUNDS"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    return text != NULL ? text : "0";
}

uint32_t tn_round_step(void)
{
#ifdef TN_SANITIZED
    return strcmp(chosen(), "all") == 0 ? 1 : 3;
#else
    return 1;
#endif
}

uint32_t tn_first_round(void)
{
    const uint32_t step = tn_round_step();
    if (step == 1) {
        return 0;
    }
    const uint32_t first = (uint32_t)strtoul(chosen(), NULL, 10) % step;
    print_message("every third round, from %u on: TNET_TEST_ROUNDS=%u\n", first, first);
    return first;
}
