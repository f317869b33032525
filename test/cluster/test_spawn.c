/* test_spawn.c - what a child of --peers is given: environment, stdin, processors. */
#include "cluster/launch/children.h"

#include "cli/roles.h"
#include "cli/signals.h"
#include "support/test.h"

#include <fcntl.h>
#include <sched.h>
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

SET_UP
{
    forget_launchers();
}

TEAR_DOWN
{
    forget_launchers();
}

/* All that `n` children of this role say. */
static size_t hear(uint32_t n, bool part_cpus, char *role, void *out, size_t size)
{
    int ends[2];
    int code = -1;
    char fd[FD_BYTES];
    tn_error err = {0};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, 0), 0);
    (void)snprintf(fd, sizeof fd, "%d", ends[1]);
    char *words[] = {program_name, role, fd, NULL};
    const tn_children_opts opts = {.path = "/proc/self/exe",
                                   .words = words,
                                   .n = n,
                                   .job = 0xabc,
                                   .grace_s = 100,
                                   .part_cpus = part_cpus,
                                   .stops = tn_signals_stops};
    assert_ok(tn_children_run(&opts, &code, &err), err.text);
    assert_int_equal(code, 0);
    (void)close(ends[1]);
    size_t got = 0;
    for (ssize_t more = 1; more > 0; got += (size_t)more) {
        more = read(ends[0], (char *)out + got, size - got);
        assert_true(more >= 0);
    }
    (void)close(ends[0]);
    return got;
}

/* What the child of this rank says of a variable, behind `=`. */
static void assert_holds(const char *said, const char *rank, const char *name, const char *want)
{
    char has[64];
    char pair[3000];
    (void)snprintf(has, sizeof has, " TNET_RANK=%s;", rank);
    const char *line = strstr(said, has);
    assert_non_null(line);
    while (line > said && line[-1] != '\n') {
        line--;
    }
    (void)snprintf(pair, sizeof pair, " %s=%s;", name, want);
    const char *found = strstr(line, pair);
    assert_true(found != NULL && found < strchr(line, '\n'));
}

TEST(a_child_knows_its_place_and_nothing_of_other_groups)
{
    char role[] = "tell";
    char said[8000];
    char own[24];
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        set(launchers[i], "7");
    }
    set("TNET_RANK", "5");
    set("TNET_PEERS", "6");
    set("TNET_JOB", "mine");
    set("TNET_PARENT", "1");
    set("TNET_ROOTS", "kept");
    said[hear(4, false, role, said, sizeof said - 1)] = '\0';
    assert_holds(said, "2", "TNET_PEERS", "4");
    assert_holds(said, "2", "TNET_JOB", "0000000000000abc");
    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    assert_holds(said, "2", "TNET_PARENT", own);
    assert_holds(said, "2", "TNET_ROOTS", "kept");
    assert_holds(said, "2", "PATH", getenv("PATH")); // NOLINT(concurrency-mt-unsafe): one thread
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        assert_holds(said, "2", launchers[i], "-");
    }
    set("TNET_ROOTS", NULL);
}

TEST(a_child_is_one_of_its_own_parent)
{
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

TEST(another_launcher_is_noticed)
{
    assert_null(tn_spawn_other_launcher());
    set("TNET_SERVICE", "peers"); /* where pods would find each other, no place in a group */
    set("TNET_RANK", "");
    assert_null(tn_spawn_other_launcher());
    set("TNET_PEERS", "2");
    assert_string_equal(tn_spawn_other_launcher(), "TNET_PEERS");
    set("TNET_RANK", "0");
    assert_string_equal(tn_spawn_other_launcher(), "TNET_RANK");
}

TEST(only_rank_0_reads_stdin)
{
    char role[] = "tell";
    char said[8000];
    char path[] = "/proc/self/exe"; /* any file with a byte in it */
    int old = dup(STDIN_FILENO);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO);
    said[hear(3, false, role, said, sizeof said - 1)] = '\0';
    assert_holds(said, "0", "stdin", "some");
    assert_holds(said, "1", "stdin", "nothing");
    assert_holds(said, "2", "stdin", "nothing");
    (void)close(file);
    if (old >= 0) {
        (void)dup2(old, STDIN_FILENO);
        (void)close(old);
    }
}

TEST(children_may_get_processors_of_their_own)
{
    char role[] = "cpus";
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int cpus = CPU_COUNT(&all);
    for (uint32_t n = 1; n <= 3; n++) {
        cpu_set_t together;
        cpu_set_t own[3];
        int sum = 0;
        CPU_ZERO(&together);
        assert_int_equal(hear(n, true, role, own, sizeof own), n * sizeof own[0]);
        for (uint32_t rank = 0; rank < n; rank++) {
            assert_true(CPU_COUNT(&own[rank]) >= 1);
            CPU_OR(&together, &together, &own[rank]);
            sum += CPU_COUNT(&own[rank]);
        }
        assert_true(cpus < (int)n || CPU_EQUAL(&together, &all));
        assert_true(cpus < (int)n || sum == cpus); /* none twice */
    }
}

ROLES(tn_role_play);
