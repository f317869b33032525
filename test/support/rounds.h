/* rounds.h - which rounds a test makes of what it repeats at thousands of points or seeds.
 *
 * Under a sanitizer such a test takes minutes, so there it makes every third round. It makes all of
 * them in the other trees, and at night. The environment's TNET_TEST_ROUNDS chooses: `all`, or 0
 * (the default), 1 or 2, the first round of the third.
 *
 *     for (uint32_t i = tn_first_round(); i < 2000; i += tn_round_step()) { .. }
 */
#pragma once

#include <stdint.h>

/* Returns the first round, and prints which rounds the test makes when it does not make all. */
uint32_t tn_first_round(void);

/* Returns 1, or 3 where only a third of the rounds is made. */
uint32_t tn_round_step(void);
