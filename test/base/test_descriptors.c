/* test_descriptors.c - the limit of open files, raised where it must be. */
#include "base/machine/descriptors.h"
#include "support/test.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A hard limit that was lowered stays so: each test has a process of its own, and returns 0 when
 * all is right. */
static void run_apart(int (*test)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(test() != 0 ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool set(uint64_t soft, uint64_t hard)
{
    const struct rlimit limit = {soft, hard};
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static bool is(uint64_t soft, uint64_t hard)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == soft &&
           limit.rlim_max == hard;
}

static int play_enough(void)
{
    const bool good = set(64, 200) && tn_descriptors_need(64, "a test", NULL) == TN_OK;
    return good && is(64, 200) ? 0 : 1;
}

static void a_limit_that_is_high_enough_stays(void **state)
{
    (void)state;
    run_apart(play_enough);
}

static int play_raised(void)
{
    const bool good = set(64, 200) && tn_descriptors_need(65, "a test", NULL) == TN_OK;
    return good && is(200, 200) ? 0 : 1;
}

static void a_soft_limit_is_raised_to_the_hard_one(void **state)
{
    (void)state;
    run_apart(play_raised);
}

static int play_too_low(void)
{
    static const char want[] = "9 peers may need 201 open files, the hard limit is 200\nhint: ";
    tn_error err = {0};
    const bool good = set(64, 200) && tn_descriptors_need(201, "9 peers", &err) == TN_E_CONFIG;
    return good && strncmp(err.text, want, sizeof want - 1) == 0 && is(64, 200) ? 0 : 1;
}

static void a_hard_limit_that_is_too_low_is_told(void **state)
{
    (void)state;
    run_apart(play_too_low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_is_high_enough_stays),
        cmocka_unit_test(a_soft_limit_is_raised_to_the_hard_one),
        cmocka_unit_test(a_hard_limit_that_is_too_low_is_told),
    };
    return cmocka_run_group_tests_name("base/descriptors", tests, NULL, NULL);
}
