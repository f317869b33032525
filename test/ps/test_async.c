/* test_async.c - ranks that do not wait for each other: every update is made once, and the model is
 * that of all gradients. */
#include "freeranks.h"

#include "support/test.h"
#include "support/tmpdir.h"

#include <math.h>
#include <string.h>

static char dir[256];

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return 0;
}

static void every_gradient_counts_once_at_any_staleness(void **state)
{
    (void)state;
    const double staleness[] = {0, 1, 3, (double)INFINITY};
    for (uint32_t n = 1; n <= FREE_RANKS_MAX; n++) {
        for (uint32_t i = 0; i < sizeof staleness / sizeof *staleness; i++) {
            const uint32_t permits = tn_permits_of(staleness[i]);
            free_world *w = free_world_new(
                &(free_opts){.n = n, .staleness = staleness[i], .ahead = permits > 1 ? 2 : 1}, dir);
            free_world_run(w);
            free_world_check(w, 0.1, 1e-5);
            free_world_free(w);
        }
    }
}

static void requests_that_are_lost_come_again_and_count_once(void **state)
{
    (void)state;
    free_world *w = free_world_new(
        &(free_opts){.n = 3, .staleness = (double)INFINITY, .ahead = 6, .lossy = true}, dir);
    free_world_run(w);
    free_world_check(w, 0.1, 1e-5);
    tn_link_counts counts;
    tn_link_counts_of(w->seat[0].link, &counts);
    assert_true(counts.repeated > 0);
    free_world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_counts_once_at_any_staleness),
        cmocka_unit_test(requests_that_are_lost_come_again_and_count_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
