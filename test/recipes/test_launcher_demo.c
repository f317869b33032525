/* test_launcher_demo.c - the environment of the recipe's launcher. */
#include "cluster/fakeenv.h"
#include "support/test.h"

GROUP_TEAR_DOWN
{
    fakeenv_done();
}

TEST(rank_and_size_are_read)
{
    const char *const words[] = {"DEMO_RANK", "1", "DEMO_SIZE", "3", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 1);
    assert_int_equal(r.size, 3);
}
