/* test_launcher_demo.c - the environment of the recipe's launcher. */
#include "cluster/fakeenv.h"
#include "support/test.h"

static int tear_down(void **state)
{
    (void)state;
    fakeenv_done();
    return 0;
}

static void rank_and_size_are_read(void **state)
{
    (void)state;
    const char *const words[] = {"DEMO_RANK", "1", "DEMO_SIZE", "3", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 1);
    assert_int_equal(r.size, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_and_size_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
