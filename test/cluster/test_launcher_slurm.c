/* test_launcher_slurm.c - tasks of Slurm steps, as srun describes them to each. */
#include "cluster/fakeenv.h"
#include "support/test.h"

#define STEP(rank, size, nodes, tasks)                                                             \
    "SLURM_PROCID", rank, "SLURM_STEP_NUM_TASKS", size, "SLURM_NTASKS", size, "SLURM_JOB_ID",      \
        "17", "SLURM_STEP_ID", "0", "SLURM_STEP_NODELIST", nodes, "SLURM_STEP_TASKS_PER_NODE",     \
        tasks

TEAR_DOWN
{
    fakeenv_done();
}

static void hosts_are(const tn_membership *r, const char *want)
{
    char joined[200] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < r->size; i++) {
        at +=
            (size_t)snprintf(joined + at, sizeof joined - at, "%s%s", i > 0 ? " " : "", r->host[i]);
    }
    assert_string_equal(joined, want);
}

TEST(tasks_of_several_nodes_find_rank_0_on_the_first)
{
    const char *const words[] = {STEP("2", "4", "n[03-04],n07", "2,1(x2)"), NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words, .host = "n04"});
    assert_int_equal(r.rank, 2);
    assert_int_equal(r.size, 4);
    hosts_are(&r, "n03 n03 n04 n07");
    tn_endpoint first;
    assert_int_equal(tn_endpoint_read(r.address[0], 0, &first, NULL), TN_OK);
    assert_string_equal(first.host, "n03");
    assert_in_range(first.port, 20000, 31999);
    assert_null(r.address[1]);
    assert_null(r.address[2]);
    assert_string_equal(r.bind, "tcp://n04:0");
    assert_null(r.meet);
    assert_string_equal(r.how, "rank 2 of 4 by Slurm, job 17.0");
    /* all tasks of the step agree, those of another step do not */
    const char *const root[] = {STEP("0", "4", "n[03-04],n07", "2,1(x2)"), NULL};
    tn_membership r0 = fakeenv_membership(&(fakeenv){.words = root, .host = "n03"});
    assert_string_equal(r0.address[0], r.address[0]);
    assert_string_equal(r0.bind, r.address[0]);
    assert_true(r0.job == r.job);
    const char *const next[] = {"SLURM_STEP_ID", "1", STEP("0", "4", "n[03-04],n07", "2,1(x2)"),
                                NULL};
    tn_membership other = fakeenv_membership(&(fakeenv){.words = next, .host = "n03"});
    assert_string_not_equal(other.address[0], r.address[0]);
    assert_true(other.job != r.job);
}

/* Two tasks on each host of a list, dealt in turn. */
static void assert_hosts(const char *text, const char *want)
{
    char size[16];
    char tasks[16];
    char twice[200];
    uint32_t n = 1;
    for (const char *at = want; (at = strchr(at, ' ')) != NULL; at++) {
        n++;
    }
    (void)snprintf(size, sizeof size, "%u", 2 * n);
    (void)snprintf(tasks, sizeof tasks, "2(x%u)", n);
    (void)snprintf(twice, sizeof twice, "%s %s", want, want);
    const char *const words[] = {STEP("0", size, text, tasks), "SLURM_DISTRIBUTION", "cyclic",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    hosts_are(&r, twice);
}

TEST(lists_are_expanded_in_their_order)
{
    assert_hosts("n1", "n1");
    assert_hosts("login", "login");
    assert_hosts("n[01-03,7],gpu5", "n01 n02 n03 n7 gpu5");
    assert_hosts("n[8-11]", "n8 n9 n10 n11");
    assert_hosts("n[098-101]", "n098 n099 n100 n101");
    assert_hosts("r[1-2]n[0-1]-ib", "r1n0-ib r1n1-ib r2n0-ib r2n1-ib");
    assert_hosts("b,a,b", "b a b");
    assert_hosts("n[3,1]", "n3 n1");
    assert_hosts("a[1-2],b[7],c", "a1 a2 b7 c");
    assert_hosts("[1-2]", "1 2");
    assert_hosts("node[5-5].cluster.example", "node5.cluster.example");
}

TEST(lists_that_cannot_be_read_are_told)
{
    static const char *const texts[] = {"a,",
                                        ",a",
                                        "n[",
                                        "n[1",
                                        "n]",
                                        "n[]",
                                        "n[1,]",
                                        "n[-3]",
                                        "n[3-]",
                                        "n[3-1]",
                                        "n[a-b]",
                                        "n[1-2",
                                        "n[[1]]",
                                        "n[1]]",
                                        "n[1-2-3]",
                                        "n[1234567890]",
                                        "a[1][1][1][1][1][1][1][1][1]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *const words[] = {STEP("0", "2", texts[i], "2"), NULL};
        fakeenv_refused(&(fakeenv){.words = words}, "cannot read the list of hosts");
    }
}

TEST(lists_are_bounded_in_number_and_length)
{
    char name[3][300];
    for (size_t i = 0; i < 3; i++) {
        static const char *const end[] = {"", "[1]", "h"};
        memset(name[i], 'h', sizeof name[i]);
        (void)snprintf(name[i] + 255, sizeof name[i] - 255, "%s", end[i]);
    }
    const struct {
        const char *text, *want;
    } cases[] = {
        {"n[1-65536]", "65536 nodes with 2 tasks"}, /* it was read */
        {"n[1-65537]", "more than 65536 hosts"},
        {"n[1-999999999]m[1-999999999]", "more than 65536 hosts"},
        {name[0], "1 nodes with 2 tasks"},
        {name[1], "cannot read the list of hosts"},
        {name[2], "cannot read the list of hosts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const words[] = {STEP("0", "2", cases[i].text, "1"), NULL};
        fakeenv_refused(&(fakeenv){.words = words}, cases[i].want);
    }
}

TEST(counts_are_repeated_as_they_say)
{
    const char *const words[] = {STEP("0", "9", "a,b,c,d,e", "2(x3),1,2"), NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    hosts_are(&r, "a a b b c c d e e");
}

TEST(counts_that_cannot_be_read_are_told)
{
    static const char *const texts[] = {"2,",
                                        ",2",
                                        "0",
                                        "2(x0)",
                                        "2(x",
                                        "2(3)",
                                        "(x3)",
                                        "2(x3",
                                        "2(x3)4",
                                        "x",
                                        "65537",
                                        "1(x65537)",
                                        "1(x40000),1(x40000)",
                                        "2(x18446744073709551615)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *const words[] = {STEP("0", "2", "a", texts[i]), NULL};
        fakeenv_refused(&(fakeenv){.words = words}, "cannot read the counts");
    }
}

TEST(distributions_deal_the_tasks)
{
    static const struct {
        const char *how, *want;
    } cases[] = {
        {"block", "a a a b b c"},        {"cyclic", "a b c a b a"},       {"plane", "a a b b c a"},
        {"cyclic:block", "a b c a b a"}, {"block:cyclic", "a a a b b c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const words[] = {STEP("0", "6", "a,b,c", "3,2,1"),
                                     "SLURM_DISTRIBUTION",
                                     cases[i].how,
                                     "SLURM_DIST_PLANESIZE",
                                     "2",
                                     NULL};
        tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
        hosts_are(&r, cases[i].want);
    }
}

TEST(an_arbitrary_distribution_needs_the_root)
{
    const char *const words[] = {STEP("0", "3", "a,b,c", "1(x3)"),
                                 "SLURM_DISTRIBUTION",
                                 "arbitrary",
                                 "SLURM_NODEID",
                                 "2",
                                 "TNET_ROOT",
                                 "c:5000",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words, .host = "c"});
    assert_string_equal(r.address[0], "tcp://c:5000");
    assert_null(r.host[0]);
    const char *const none[] = {STEP("1", "3", "a,b,c", "1(x3)"), "SLURM_DISTRIBUTION", "arbitrary",
                                NULL};
    r = fakeenv_membership(&(fakeenv){.words = none});
    assert_string_equal(r.meet, "runs/x/peers.root");
    assert_null(r.address[0]);
}

TEST(hosts_are_left_out_where_tasks_are_elsewhere_than_thought)
{
    static const char *const ways[] = {"block", "plane", "somehow"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *const words[] = {STEP("1", "4", "a,b", "2,2"), "SLURM_NODEID", "1",
                                     "SLURM_DISTRIBUTION",         ways[i],        NULL};
        tn_membership r = fakeenv_membership(&(fakeenv){.words = words, .host = "b"});
        assert_null(r.host[1]);
        assert_memory_equal(r.address[0], "tcp://a:", 8);
    }
}

TEST(tasks_of_one_node_need_no_network)
{
    const char *const words[] = {STEP("1", "2", "n1", "2"), NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.address[0], "ipc://runs/x/sockets/0.sock");
    assert_string_equal(r.bind, "ipc://runs/x/sockets/1.sock");
}

TEST(a_batch_script_is_one_process)
{
    const char *const words[] = {"SLURM_PROCID",
                                 "0",
                                 "SLURM_NTASKS",
                                 "8",
                                 "SLURM_JOB_NODELIST",
                                 "n[1-8]",
                                 "SLURM_JOB_ID",
                                 "17",
                                 "SLURM_TASKS_PER_NODE",
                                 "1(x8)",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.size, 1);
    assert_string_equal(r.how, "alone: in a Slurm job of several tasks, but not started by srun");
    const char *const one[] = {"SLURM_PROCID", "0", "SLURM_NTASKS", "1", NULL};
    assert_string_equal(fakeenv_membership(&(fakeenv){.words = one}).how, "alone");
}

TEST(the_port_may_be_said)
{
    const char *const words[] = {
        STEP("1", "2", "a,b", "1(x2)"), "TNET_PORT", "5555", "TNET_BIND", "ib0", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.address[0], "tcp://a:5555");
    assert_string_equal(r.bind, "tcp://ib0:0");
}

TEST(contradictions_of_slurm_are_told)
{
    static const struct {
        const char *words[24];
        const char *want;
    } cases[] = {
        {{STEP("0", "4", "a,b", "1(x2)"), NULL}, "2 nodes with 4 tasks, but '1(x2)' are 2 on 2"},
        {{STEP("0", "2", "a,b", "2"), NULL}, "2 nodes with 2 tasks, but '2' are 2 on 1"},
        {{STEP("0", "2", "a[", "2"), NULL}, "cannot read the list of hosts 'a['"},
        {{STEP("0", "2", "a,b", "two"), NULL}, "cannot read the counts 'two'"},
        {{STEP("0", "2", "a,b", ""), NULL}, "Slurm sets no SLURM_STEP_TASKS_PER_NODE"},
        {{STEP("", "2", "a,b", "1(x2)"), NULL}, "Slurm sets no SLURM_PROCID"},
        {{STEP("0", "", "a,b", "1(x2)"), NULL}, "Slurm sets no SLURM_STEP_NUM_TASKS"},
        {{STEP("x", "2", "a,b", "1(x2)"), NULL}, "SLURM_PROCID is 'x', not a number"},
        {{STEP("2", "2", "a,b", "1(x2)"), NULL}, "rank 2 is none of 2 peers"},
        {{"SLURM_NODEID", "1", STEP("0", "2", "a,b", "1(x2)"), NULL},
         "Slurm runs rank 0 on node 1 of 'a,b', not on the first\nhint: set TNET_ROOT"},
        {{"SLURM_NODEID", "x", STEP("1", "2", "a,b", "1(x2)"), NULL}, "SLURM_NODEID is 'x'"},
        {{"TNET_PORT", "65536", STEP("1", "2", "a,b", "1(x2)"), NULL}, "TNET_PORT is '65536'"},
        {{"TNET_PORT", "0", STEP("1", "2", "a,b", "1(x2)"), NULL}, "cannot find rank 0 by 'a:0'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fakeenv_refused(&(fakeenv){.words = cases[i].words}, cases[i].want);
    }
    const char *const words[] = {"SLURM_NODEID", "1", STEP("1", "2", "a,b", "1(x2)"), NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = words}).rank, 1);
}
