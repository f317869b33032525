/* test_failpoint.c - rules that make a test build fail. */
#include "support/test.h"

#include "base/core/failpoint.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void set(const char *rules)
{
    assert_int_equal(tn_failpoint_set(rules, NULL), TN_OK);
}

TEST(without_rules_nothing_fails)
{
    set(NULL);
    uint64_t before = tn_failpoint_passed();
    assert_int_equal(tn_failpoint("io.write"), 0);
    assert_int_equal(tn_failpoint_passed(), before + 1);
}

TEST(the_nth_pass_fails_once)
{
    set("io#2:ENOSPC");
    assert_int_equal(tn_failpoint("io.write"), 0);
    assert_int_equal(tn_failpoint("iota"), 0); /* another point */
    assert_int_equal(tn_failpoint("io.fsync"), ENOSPC);
    assert_int_equal(tn_failpoint("io.fsync"), 0);
}

TEST(a_plus_goes_on_failing)
{
    set("io.write#2+:EDQUOT");
    assert_int_equal(tn_failpoint("io.write"), 0);
    assert_int_equal(tn_failpoint("io.fsync"), 0);
    assert_int_equal(tn_failpoint("io.write"), EDQUOT);
    assert_int_equal(tn_failpoint("io.write"), EDQUOT);
}

TEST(every_nth_pass_fails)
{
    set("io%3:EIO");
    for (int pass = 1; pass <= 9; pass++) {
        assert_int_equal(tn_failpoint("io.write"), pass % 3 == 0 ? EIO : 0);
    }
}

TEST(several_rules_count_for_themselves)
{
    set("io.a#1:short,io#2:error,x:sleep=1");
    assert_int_equal(tn_failpoint("io.a"), TN_FAIL_SHORT);
    assert_int_equal(tn_failpoint("io.a"), EIO);
    assert_int_equal(tn_failpoint("x"), 0);
    assert_int_equal(tn_failpoint("io.a"), 0);
}

TEST(a_wrong_rule_is_refused_and_changes_nothing)
{
    static const char *const wrong[] = {
        "io",
        "io:",
        ":kill",
        "io#0:kill",
        "io#:kill",
        "io#x:kill",
        "io#1x:kill",
        "io#1+x:kill",
        "io%0:kill",
        "io%:kill",
        "io%3+:kill",
        "io:ENOSUCH",
        "io:sleep=abc",
        "io:kill,other",
        "a:kill,a:kill,a:kill,a:kill,a:kill,a:kill,a:kill,a:kill,a:kill",
    };
    set("io:EIO");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tn_error err = {0};
        assert_int_equal(tn_failpoint_set(wrong[i], &err), TN_E_USAGE);
        assert_int_equal(tn_failpoint("io.write"), EIO);
    }
    set("");
}

TEST(kill_ends_the_process)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tn_status status = tn_failpoint_set("ckpt.before_rename#2:kill", NULL);
        (void)tn_failpoint("ckpt.before_rename");
        (void)tn_failpoint("ckpt.before_rename");
        _exit(status == TN_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
