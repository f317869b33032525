/* testdir.c - a folder is made and removed. */
#include "cluster/testdir.h"

#include "base/core/alloc.h"
#include "base/core/failpoint.h"
#include "support/tmpdir.h"

char testdir[256];

int testdir_set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(testdir);
    return 0;
}

int testdir_tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(testdir);
    tn_alloc_fail_at(0);
    return tn_failpoint_set(NULL, NULL) == TN_OK ? 0 : 1;
}
