/* test_children.c - the processes of --peers: signals, losses, the code of the whole. */
#include "cluster/launch/children.h"

#include "base/core/log.h"
#include "base/core/stop.h"
#include "base/core/text.h"
#include "cli/roles.h"
#include "cli/signals.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GUARD_S = 120, FD_BYTES = 16 };

static const char self[] = "/proc/self/exe";

typedef struct fixture {
    int from, to; /* a pipe that every child may write to */
    char fd[FD_BYTES], from_text[FD_BYTES];
    tn_text log;
} fixture;

static fixture fix;

static void keep_line(tn_log_level level, const char *line)
{
    assert_true(level == TN_LOG_ERROR || level == TN_LOG_WARN);
    tn_text_addf(&fix.log, "%s%s\n", level == TN_LOG_WARN ? "warn: " : "", line);
}

static int set_up(void **state)
{
    int ends[2];
    memset(&fix, 0, sizeof fix);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fix.from = ends[0];
    fix.to = ends[1];
    assert_int_equal(fcntl(fix.to, F_SETFD, 0), 0);
    (void)snprintf(fix.fd, sizeof fix.fd, "%d", fix.to);
    (void)snprintf(fix.from_text, sizeof fix.from_text, "%d", fix.from);
    tn_log_set(keep_line, TN_LOG_DEBUG);
    (void)alarm(GUARD_S); /* a fault here would be a test without end */
    *state = &fix;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)alarm(0);
    (void)close(fix.from);
    if (fix.to >= 0) {
        (void)close(fix.to);
    }
    tn_text_done(&fix.log);
    tn_log_set(NULL, TN_LOG_INFO);
    return 0;
}

FIXTURE(set_up, tear_down);

static char program_name[] = "test";

/* The code of `n` children with these words before the pipe's. */
static int run(uint32_t n, double grace_s, char *role, char *word)
{
    char *words[] = {program_name, role, word != NULL ? word : fix.fd, word != NULL ? fix.fd : NULL,
                     NULL};
    const tn_children_opts opts = {.path = self,
                                   .words = words,
                                   .n = n,
                                   .job = 0xabc,
                                   .grace_s = grace_s,
                                   .stops = tn_signals_stops};
    tn_error err = {0};
    int code = -1;
    assert_ok(tn_children_run(&opts, &code, &err), err.text);
    return code;
}

/* The same in a process of its own, whose code is that of its children. */
static pid_t start(uint32_t n, char *role, char *word)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setpgid(0, 0);
        int code = run(n, 100, role, word);
        tear_down(NULL);
        exit(code); // NOLINT(concurrency-mt-unsafe): one thread
    }
    return pid;
}

/* What wait says of it: its code, or 200 + the signal that killed it. */
static int end_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

/* The next bytes that the children say are all `byte`. */
static void hear(char byte, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char got = 0;
        assert_int_equal(read(fix.from, &got, 1), 1);
        assert_int_equal(got, byte);
    }
}

/* Returns when nobody is left who could say anything. */
static void hear_the_end(void)
{
    char got = 0;
    (void)close(fix.to);
    fix.to = -1;
    while (read(fix.from, &got, 1) == 1) {
    }
}

TEST(the_code_is_that_of_the_cause)
{
    static const struct {
        const char *codes; /* by rank */
        uint32_t n;
        int want;
    } cases[] = {
        {"0,0,0", 3, 0},   {"0", 1, 0},       {"75,75,75", 3, 75}, {"0,75,0", 3, 75},
        {"0,0,3", 3, 3},   {"6,6,4", 3, 4},   {"75,6,75", 3, 6},   {"6,0", 2, 6},
        {"75,9,6", 3, 9},  {"209,6,6", 3, 6}, {"6,209,75", 3, 6},  {"209,3", 2, 3},
        {"0,130", 2, 130}, {"75,75,1", 3, 1}, {"0,211,0", 3, 6},   {"206,0", 2, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char role[] = "codes";
        char codes[32];
        (void)snprintf(codes, sizeof codes, "%s", cases[i].codes);
        int got = run(cases[i].n, 100, role, codes);
        fail_if(got != cases[i].want, "children that end with %s make %d, not %d", codes, got,
                cases[i].want);
    }
}

TEST(the_first_failure_is_the_cause)
{
    char role[] = "order";
    assert_int_equal(fcntl(fix.from, F_SETFD, 0), 0); /* rank 0 reads it */
    assert_int_equal(run(2, 100, role, fix.from_text), 4);
}

TEST(a_child_that_is_killed_is_named)
{
    char role[] = "codes";
    char codes[] = "0,0,209,6";
    assert_int_equal(run(4, 100, role, codes), 6);
    assert_non_null(strstr(tn_text_str(&fix.log), "rank 2 (pid "));
    assert_non_null(strstr(tn_text_str(&fix.log), ") was killed by signal 9 (Killed)\n"));
    assert_null(strstr(tn_text_str(&fix.log), "rank 3"));
}

TEST(the_others_hear_at_once_who_was_killed)
{
    static const char end[] = ") was killed by signal 9 (Killed)\n";
    char role[] = "news";
    char text[1000];
    assert_int_equal(run(3, 100, role, NULL), 6);
    (void)close(fix.to);
    fix.to = -1;
    size_t n = 0;
    ssize_t got = 0;
    while ((got = read(fix.from, text + n, sizeof text - 1 - n)) > 0) {
        n += (size_t)got;
    }
    text[n] = '\0';
    const char *first = strstr(text, "0 rank 0 (pid ");
    assert_ptr_equal(first, text);
    const char *second = strstr(first + 1, "\n0 rank 0 (pid ");
    assert_non_null(second);
    assert_non_null(strstr(text, end));
    assert_string_equal(text + n - strlen(end), end);
}

TEST(those_that_do_not_end_after_a_failure_are_killed)
{
    char role[] = "deaf";
    char three[] = "3";
    assert_int_equal(run(3, 0.01, role, three), 3);
    assert_non_null(strstr(tn_text_str(&fix.log), "rank 1 (pid "));
    assert_non_null(strstr(tn_text_str(&fix.log), "rank 2 (pid "));
    assert_non_null(
        strstr(tn_text_str(&fix.log), ") does not end, 0.01 s after rank 0 did: killed\n"));
    assert_null(strstr(tn_text_str(&fix.log), "by signal")); /* told once */
}

TEST(nobody_outlives_rank_0)
{
    char role[] = "deaf";
    char zero[] = "0";
    char stopped[] = "75";
    assert_int_equal(run(2, 0.01, role, zero), 6);
    assert_int_equal(run(2, 0, role, stopped), 6);
    hear_the_end();
}

/* The code of two children with codes at the first start, others after a restart. */
static int run_again(const char *first, const char *second, uint32_t restarts, double within_s)
{
    char role[] = "codes";
    char codes[32];
    char later[32];
    (void)snprintf(codes, sizeof codes, "%s", first);
    (void)snprintf(later, sizeof later, "%s", second);
    char *words[] = {program_name, role, codes, NULL};
    char *again[] = {program_name, role, later, NULL};
    const tn_children_opts opts = {.path = self,
                                   .words = words,
                                   .again = again,
                                   .n = 2,
                                   .job = 0xabc,
                                   .grace_s = 100,
                                   .stops = tn_signals_stops,
                                   .restarts = restarts,
                                   .restart_s = within_s};
    tn_error err = {0};
    int code = -1;
    tn_text_clear(&fix.log);
    assert_ok(tn_children_run(&opts, &code, &err), err.text);
    return code;
}

static uint32_t times_said(const char *text)
{
    uint32_t n = 0;
    for (const char *at = tn_text_str(&fix.log); (at = strstr(at, text)) != NULL; at++) {
        n++;
    }
    return n;
}

TEST(a_group_that_fell_starts_again_with_other_words)
{
    assert_int_equal(run_again("209,6", "0,0", 3, 100), 0);
    assert_int_equal(times_said("warn: rank 0 (pid "), 1);
    assert_int_equal(times_said("warn: the group starts again and goes on from the newest "
                                "checkpoint (restart 1; at most 3 within 100 s"),
                     1);
    assert_int_equal(times_said("hint:"), 0);
    assert_int_equal(run_again("6,209", "0,75", 3, 100), 75);
}

TEST(a_group_starts_again_so_often_and_no_more)
{
    assert_int_equal(run_again("209,0", "0,209", 2, 100), 6);
    assert_int_equal(times_said("starts again"), 2);
    assert_int_equal(times_said("\nrank 1 (pid "), 1); /* the last one is an error, with a hint */
    assert_int_equal(times_said("hint: start the same command again"), 1);
    assert_int_equal(run_again("209,0", "0,209", 0, 100), 6);
    assert_int_equal(times_said("starts again"), 0);
}

TEST(only_a_kill_starts_a_group_again)
{
    static const struct {
        const char *codes;
        int want;
    } cases[] = {{"209,3", 3}, {"6,0", 6}, {"6,6", 6}, {"75,75", 75}, {"209,75", 6}, {"9,6", 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fail_if(run_again(cases[i].codes, "0,0", 3, 100) != cases[i].want, "after %s",
                cases[i].codes);
        assert_int_equal(times_said("starts again"), 0);
    }
}

/* The role writes its group's job, and falls until six have been written. */
TEST(restarts_of_long_ago_do_not_count)
{
    char role[] = "fall";
    char *words[] = {program_name, role, fix.fd, NULL};
    const tn_children_opts opts = {.path = self,
                                   .words = words,
                                   .again = words,
                                   .n = 1,
                                   .job = 0xabc,
                                   .grace_s = 100,
                                   .stops = tn_signals_stops,
                                   .restarts = 1,
                                   .restart_s = 1e-9};
    tn_error err = {0};
    int code = -1;
    assert_int_equal(fcntl(fix.to, F_SETFL, O_NONBLOCK), 0);
    assert_ok(tn_children_run(&opts, &code, &err), err.text);
    assert_int_equal(code, 0);
    assert_int_equal(times_said("starts again"), 5);
    char jobs[6 * 16];
    assert_int_equal(read(fix.from, jobs, sizeof jobs), sizeof jobs);
    for (uint32_t i = 0; i < 6; i++) { /* each start is a group of its own */
        for (uint32_t k = 0; k < i; k++) {
            assert_memory_not_equal(jobs + i * (size_t)16, jobs + k * (size_t)16, 16);
        }
    }
}

TEST(a_group_that_is_asked_to_end_does_not_start_again)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char role[] = "idle"; /* SIGTERM kills it */
        char *words[] = {program_name, role, fix.fd, NULL};
        const tn_children_opts opts = {.path = self,
                                       .words = words,
                                       .again = words,
                                       .n = 2,
                                       .job = 0xabc,
                                       .grace_s = 100,
                                       .stops = tn_signals_stops,
                                       .restarts = 3,
                                       .restart_s = 100};
        int code = -1;
        const tn_status status = tn_children_run(&opts, &code, NULL);
        exit(status == TN_OK ? code : 99); // NOLINT(concurrency-mt-unsafe): one thread
    }
    hear('r', 2);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(end_of(pid), 75);
}

TEST(sigterm_goes_to_every_child)
{
    char role[] = "watch";
    pid_t pid = start(3, role, NULL);
    hear('r', 3);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(end_of(pid), 75);
    pid = start(3, role, NULL);
    hear('r', 3);
    assert_int_equal(kill(pid, SIGHUP), 0);
    assert_int_equal(end_of(pid), 75);
}

/* As nohup starts it: neither the parent nor a child knows of a closed terminal. */
TEST(an_ignored_sighup_stays_ignored)
{
    char role[] = "watch";
    (void)signal(SIGHUP, SIG_IGN);
    pid_t pid = start(2, role, NULL);
    (void)signal(SIGHUP, SIG_DFL);
    hear('r', 2);
    assert_int_equal(kill(-pid, SIGHUP), 0);
    const struct timespec while_it_ends = {.tv_nsec = 50000000};
    (void)nanosleep(&while_it_ends, NULL);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(end_of(pid), 75);
}

/* From a terminal every process of the group gets it, and the parent passes it on. */
TEST(one_interrupt_of_all_is_one)
{
    char role[] = "watch";
    for (uint32_t i = 0; i < 20; i++) { /* in whatever order they come */
        pid_t pid = start(3, role, NULL);
        hear('r', 3);
        assert_int_equal(kill(-pid, SIGINT), 0);
        assert_int_equal(end_of(pid), 75);
    }
}

TEST(a_second_interrupt_kills_all)
{
    char role[] = "deaf";
    char none[] = "-1";
    pid_t pid = start(3, role, none);
    hear('r', 3);
    assert_int_equal(kill(pid, SIGINT), 0);
    hear('T', 3);
    assert_int_equal(kill(pid, SIGTERM), 0); /* no interrupt, so not the second */
    hear('T', 3);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(end_of(pid), 130);
    hear_the_end();
}

TEST(a_stop_before_a_child_can_save_is_a_stop)
{
    char idle[] = "idle";
    char late[] = "late";
    char codes[] = "codes";
    char by_term[] = "215,0";
    pid_t pid = start(3, late, NULL);
    hear('r', 3);
    assert_int_equal(kill(pid, SIGTERM), 0);
    hear('w', 3); /* none was ended by it */
    assert_int_equal(end_of(pid), 75);
    pid = start(2, idle, NULL);
    hear('r', 2);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(end_of(pid), 75);
    assert_int_equal(run(2, 100, codes, by_term), 6); /* nobody asked the parent */
    assert_non_null(strstr(tn_text_str(&fix.log), "by signal 15 (Terminated)"));
}

TEST(sigusr1_goes_to_rank_0_alone)
{
    char role[] = "save";
    pid_t pid = start(3, role, NULL);
    hear('r', 3);
    assert_int_equal(kill(pid, SIGUSR1), 0);
    hear('0', 1);
    assert_int_equal(kill(pid, SIGTERM), 0);
    hear('T', 2);
    assert_int_equal(end_of(pid), 0);
}

TEST(children_do_not_outlive_their_parent)
{
    char role[] = "watch";
    pid_t pid = start(3, role, NULL);
    hear('r', 3);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(end_of(pid), 200 + SIGKILL);
    hear_the_end();
}

TEST(many_children_are_one_group)
{
    char role[] = "watch";
    pid_t pid = start(100, role, NULL);
    hear('r', 100);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(end_of(pid), 75);
    hear_the_end();
}

TEST(what_cannot_be_started_is_an_error)
{
    char *words[] = {program_name, NULL};
    const tn_children_opts opts = {
        .path = "/nowhere/tnet", .words = words, .n = 3, .job = 1, .stops = tn_signals_stops};
    tn_error err = {0};
    int code = -1;
    assert_int_equal(tn_children_run(&opts, &code, &err), TN_E_IO);
    assert_string_equal(err.text,
                        "cannot start rank 0, '/nowhere/tnet': No such file or directory");
    assert_int_equal(code, -1);
}

TEST(a_stop_that_came_before_starts_nobody)
{
    static atomic_bool asked = true;
    char role[] = "watch";
    char *words[] = {program_name, role, fix.fd, NULL};
    const tn_children_opts opts = {
        .path = self, .words = words, .n = 2, .job = 1, .stops = tn_signals_stops};
    tn_error err = {0};
    int code = -1;
    tn_stop_set(&asked);
    const tn_status status = tn_children_run(&opts, &code, &err);
    tn_stop_set(NULL);
    assert_int_equal(status, TN_E_STOPPED);
    assert_string_equal(err.text, "stopped by a signal; no rank has begun");
    assert_int_equal(code, -1);
    hear_the_end();
}

ROLES(tn_role_play);
