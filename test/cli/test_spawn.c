/* test_spawn.c - what a child of --peers is given: environment, stdin, processors. */
#include "cli/children.h"

#include "roles.h"
#include "support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FD_BYTES = 16 };

static char program_name[] = "test";

static const char *const launchers[] = {"TNET_PEER_LIST",
                                        "TNET_ROOT",
                                        "TNET_BIND",
                                        "TNET_PORT",
                                        "TNET_SERVICE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK",
                                        "PMIX_RANK",
                                        "SLURM_STEP_NODELIST",
                                        "JOB_COMPLETION_INDEX"};

static void set(const char *name, const char *value)
{
    if (value == NULL) {
        (void)unsetenv(name); // NOLINT(concurrency-mt-unsafe): one thread
        return;
    }
    (void)setenv(name, value, 1); // NOLINT(concurrency-mt-unsafe): one thread
}

static void forget_launchers(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        set(launchers[i], NULL);
    }
    set("TNET_RANK", NULL);
    set("TNET_PEERS", NULL);
    set("TNET_JOB", NULL);
    set("TNET_PARENT", NULL);
}

static int set_up(void **state)
{
    *state = tn_arena_new(1 << 12);
    forget_launchers();
    return 0;
}

static int tear_down(void **state)
{
    forget_launchers();
    tn_arena_free(*state);
    return 0;
}

/* How often a variable occurs, and its last value. */
static uint32_t count(char *const *env, const char *name, const char **value)
{
    uint32_t n = 0;
    size_t size = strlen(name);
    for (; *env != NULL; env++) {
        if (strncmp(*env, name, size) == 0 && (*env)[size] == '=') {
            *value = *env + size + 1;
            n++;
        }
    }
    return n;
}

static void assert_holds(char *const *env, const char *name, const char *want)
{
    const char *value = NULL;
    assert_int_equal(count(env, name, &value), 1);
    assert_string_equal(value, want);
}

static void a_child_knows_its_place_and_nothing_of_other_groups(void **state)
{
    const char *value = NULL;
    char own[24];
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        set(launchers[i], "7");
    }
    set("TNET_RANK", "5");
    set("TNET_PEERS", "6");
    set("TNET_JOB", "mine");
    set("TNET_PARENT", "1");
    set("TNET_ROOTS", "kept");
    char *const *env = tn_spawn_env(&(tn_spawn){.rank = 2, .n = 4, .news = 77}, 0xabc, *state);
    assert_holds(env, "TNET_RANK", "2");
    assert_holds(env, "TNET_PEERS", "4");
    assert_holds(env, "TNET_JOB", "0000000000000abc");
    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    assert_holds(env, "TNET_PARENT", own);
    assert_holds(env, "TNET_NEWS", "77");
    assert_holds(env, "TNET_ROOTS", "kept");
    assert_holds(env, "PATH", getenv("PATH")); // NOLINT(concurrency-mt-unsafe): one thread
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        assert_int_equal(count(env, launchers[i], &value), 0);
    }
    set("TNET_ROOTS", NULL);
}

static void a_child_is_one_of_its_own_parent(void **state)
{
    (void)state;
    char parent[24];
    assert_false(tn_spawn_is_child());
    (void)snprintf(parent, sizeof parent, "%ld", (long)getppid());
    set("TNET_PARENT", parent);
    assert_true(tn_spawn_is_child());
    assert_int_equal(tn_spawn_news(), 0);
    set("TNET_NEWS", "77");
    assert_int_equal(tn_spawn_news(), 77);
    (void)snprintf(parent, sizeof parent, "%ld", (long)getpid()); /* handed down too far */
    set("TNET_PARENT", parent);
    assert_false(tn_spawn_is_child());
    assert_int_equal(tn_spawn_news(), 0);
    set("TNET_NEWS", NULL);
    set("TNET_PARENT", "init");
    assert_false(tn_spawn_is_child());
}

static void another_launcher_is_noticed(void **state)
{
    (void)state;
    assert_null(tn_spawn_other_launcher());
    set("TNET_SERVICE", "peers"); /* where pods would find each other, no place in a group */
    set("TNET_RANK", "");
    assert_null(tn_spawn_other_launcher());
    set("TNET_PEERS", "2");
    assert_string_equal(tn_spawn_other_launcher(), "TNET_PEERS");
    set("TNET_RANK", "0");
    assert_string_equal(tn_spawn_other_launcher(), "TNET_RANK");
}

/* What the child of this role and rank says. */
static size_t hear(tn_spawn s, char *role, void *out, size_t size)
{
    int ends[2];
    int status = 0;
    pid_t pid = 0;
    char fd[FD_BYTES];
    tn_error err = {0};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, 0), 0);
    (void)snprintf(fd, sizeof fd, "%d", ends[1]);
    char *words[] = {program_name, role, fd, NULL};
    s.path = "/proc/self/exe";
    s.words = words;
    if (tn_spawn_one(&s, &pid, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    (void)close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    ssize_t got = read(ends[0], out, size);
    assert_true(got > 0);
    (void)close(ends[0]);
    return (size_t)got;
}

static void only_rank_0_reads_stdin(void **state)
{
    char role[] = "tell";
    char said[2000];
    char path[] = "/proc/self/exe"; /* any file with a byte in it */
    int old = dup(STDIN_FILENO);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO);
    for (uint32_t rank = 0; rank < 3; rank++) {
        tn_spawn s = {.rank = rank,
                      .n = 3,
                      .env = tn_spawn_env(&(tn_spawn){.rank = rank, .n = 3}, 1, *state)};
        size_t n = hear(s, role, said, sizeof said - 1);
        said[n] = '\0';
        assert_non_null(strstr(said, rank == 0 ? " stdin\n" : " nothing\n"));
    }
    (void)close(file);
    if (old >= 0) {
        (void)dup2(old, STDIN_FILENO);
        (void)close(old);
    }
}

static void children_may_get_processors_of_their_own(void **state)
{
    char role[] = "cpus";
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int cpus = CPU_COUNT(&all);
    for (uint32_t n = 1; n <= 3; n++) {
        cpu_set_t together;
        int sum = 0;
        CPU_ZERO(&together);
        for (uint32_t rank = 0; rank < n; rank++) {
            cpu_set_t own;
            tn_spawn s = {.rank = rank, .n = n, .part_cpus = true};
            s.env = tn_spawn_env(&(tn_spawn){.rank = rank, .n = n}, 1, *state);
            assert_int_equal(hear(s, role, &own, sizeof own), sizeof own);
            assert_true(CPU_COUNT(&own) >= 1);
            CPU_OR(&together, &together, &own);
            sum += CPU_COUNT(&own);
        }
        assert_true(cpus < (int)n || CPU_EQUAL(&together, &all));
        assert_true(cpus < (int)n || sum == cpus); /* none twice */
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    int code = 0;
    if (tn_role_play(argc, argv, &code)) {
        return code;
    }
    const struct CMUnitTest tests[] = {
        TEST(a_child_knows_its_place_and_nothing_of_other_groups),
        TEST(a_child_is_one_of_its_own_parent),
        TEST(another_launcher_is_noticed),
        TEST(only_rank_0_reads_stdin),
        TEST(children_may_get_processors_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
