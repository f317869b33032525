/* crash.c - see crash.h. */
#include "support/crash.h"

#include "support/crashlog.h"
#include "support/rounds.h"
#include "support/test.h"

#include "base/core/failpoint.h"
#include "base/math/key.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POINTS_MAX = 5000 };

/* The run that is going on; one at a time. */
static uint64_t *saved_so_far; /* shared with a child */
static tn_crashlog *recording;

void tn_crash_saved(uint64_t n)
{
    if (saved_so_far != NULL) {
        *saved_so_far = n;
    }
    if (recording != NULL) {
        tn_crashlog_mark(recording, n);
    }
}

static void begin(void)
{
    saved_so_far =
        mmap(NULL, sizeof *saved_so_far, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(saved_so_far != MAP_FAILED);
}

static void end(void)
{
    assert_int_equal(munmap(saved_so_far, sizeof *saved_so_far), 0);
    saved_so_far = NULL;
}

static void set_rule(const char *rule)
{
    assert_int_equal(tn_failpoint_set(rule, NULL), TN_OK);
}

/* True: the child was killed; false: it survived and succeeded. */
static bool run_in_child(const tn_crash_case *test, const char *dir, const char *rule)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tn_error err = {0};
        tn_status status = tn_failpoint_set(rule, &err);
        if (status == TN_OK) {
            status = test->run(dir, test->ctx, &err);
        }
        if (status != TN_OK) {
            (void)dprintf(2, "%s\n", err.text);
        }
        _exit(status == TN_OK ? 0 : 1); /* without atexit: what the child holds is not a leak */
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

uint32_t tn_crash_kill_everywhere(const tn_crash_case *test)
{
    begin();
    bool killed = true;
    uint32_t n = 1 + tn_first_round();
    for (; killed; n += tn_round_step()) {
        assert_true(n < POINTS_MAX);
        char rule[64];
        (void)snprintf(rule, sizeof rule, "io#%u:kill", n);
        TMPDIR(dir);
        *saved_so_far = 0;
        killed = run_in_child(test, dir, rule);
        test->check(dir, *saved_so_far, test->ctx);
    }
    end();
    return n - tn_round_step();
}

/* Returns whether the protocol succeeded. */
static bool run_with(const tn_crash_case *test, const char *rule)
{
    tn_error err = {0};
    TMPDIR(dir);
    *saved_so_far = 0;
    set_rule(rule);
    tn_status status = test->run(dir, test->ctx, &err);
    set_rule(NULL);
    if (status != TN_OK) {
        assert_int_equal(err.code, status);
        assert_true(strlen(err.text) > 0);
    }
    test->check(dir, *saved_so_far, test->ctx);
    return status == TN_OK;
}

uint32_t tn_crash_fail_everywhere(const tn_crash_case *test)
{
    static const char *const action[] = {"EIO", "ENOSPC", "EDQUOT", "EMFILE", "short"};
    begin();
    uint64_t before = tn_failpoint_passed();
    assert_true(run_with(test, NULL)); /* without a fault it works */
    const uint32_t points = (uint32_t)(tn_failpoint_passed() - before);
    const uint32_t actions = sizeof action / sizeof action[0];
    const uint32_t rounds = points * actions * 2;
    for (uint32_t i = tn_first_round(); i < rounds; i += tn_round_step()) {
        char rule[64];
        const uint32_t a = i / 2 % actions;
        (void)snprintf(rule, sizeof rule, "io#%u%s:%s", 1 + i / (2 * actions),
                       i % 2 != 0 ? "+" : "", action[a]);
        (void)run_with(test, rule);
    }
    end();
    return rounds;
}

static void check_state(const tn_crash_case *test, const tn_crashlog *log, const tn_crash_cut *cut)
{
    TMPDIR(dir);
    uint64_t saved = tn_crashlog_replay(log, cut, dir);
    test->check(dir, saved, test->ctx);
}

uint32_t tn_crash_states(const tn_crash_case *test, uint32_t samples, uint64_t seed)
{
    print_message("crash states: seed %llu\n", (unsigned long long)seed);
    char dir[256];
    tn_error err = {0};
    tn_tmpdir_make(dir);
    recording = tn_crashlog_start(dir);
    tn_status status = test->run(dir, test->ctx, &err);
    tn_crashlog_stop(recording);
    tn_tmpdir_remove(dir);
    tn_crashlog *log = recording;
    recording = NULL;
    assert_int_equal(status, TN_OK);

    const uint32_t ops = tn_crashlog_count(log);
    const uint32_t first = tn_first_round();
    for (uint32_t i = first; i < 2 * (ops + 1); i += tn_round_step()) { /* nothing, and all of it */
        check_state(test, log, &(tn_crash_cut){.at = i / 2, .keep_of_8 = i % 2 * 8, .seed = seed});
    }
    for (uint32_t i = first; i < samples; i += tn_round_step()) {
        uint64_t dice = tn_mix(seed ^ tn_mix(i + 1));
        check_state(test, log,
                    &(tn_crash_cut){.at = (uint32_t)(dice % (ops + 1)),
                                    .keep_of_8 = 1 + (uint32_t)(dice >> 40) % 7,
                                    .seed = tn_mix(dice)});
    }
    tn_crashlog_free(log);
    return 2 * (ops + 1) + samples;
}
