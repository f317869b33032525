/* test_launcher_plain.c - processes that were told who they are by hand. */
#include "cluster/fakeenv.h"
#include "support/test.h"

static int tear_down(void **state)
{
    (void)state;
    fakeenv_done();
    return 0;
}

static void a_rank_and_a_size_are_enough_on_one_host(void **state)
{
    (void)state;
    const char *const words[] = {"TNET_RANK", "1", "TNET_PEERS", "4", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 1);
    assert_int_equal(r.size, 4);
    assert_string_equal(r.address[3], "ipc://runs/x/sockets/3.sock");
    assert_string_equal(r.bind, "ipc://runs/x/sockets/1.sock");
    assert_string_equal(r.how, "rank 1 of 4 by TNET_RANK");
    /* the same run for all, another one for another folder */
    const char *const zero[] = {"TNET_RANK", "0", "TNET_PEERS", "4", NULL};
    assert_true(fakeenv_membership(&(fakeenv){.words = zero}).job == r.job);
    assert_true(fakeenv_membership(&(fakeenv){.words = zero, .run_dir = "runs/y"}).job != r.job);
}

static void a_list_in_the_environment_is_nearer_than_the_file(void **state)
{
    (void)state;
    static const char *const old[] = {"x:1", "y:1"};
    const char *const words[] = {"TNET_RANK", "1", "TNET_PEER_LIST", "a:1,b:2", NULL};
    tn_membership r = fakeenv_membership(
        &(fakeenv){.words = words, .peers = {.n = 2, .address = {.n = 2, .item = old}}});
    assert_string_equal(r.address[0], "tcp://a:1");
    assert_string_equal(r.bind, "tcp://b:2");
}

static void a_root_lets_the_others_choose_their_ports(void **state)
{
    (void)state;
    const char *const words[] = {"TNET_RANK", "1",         "TNET_PEERS", "2", "TNET_ROOT",
                                 "a:1",       "TNET_BIND", "eth1",       NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.address[0], "tcp://a:1");
    assert_null(r.address[1]);
    assert_string_equal(r.bind, "tcp://eth1:0");
}

static void a_rank_by_hand_completes_a_launcher_it_agrees_with(void **state)
{
    (void)state;
    const char *const words[] = {"TNET_RANK",
                                 "1",
                                 "SLURM_PROCID",
                                 "1",
                                 "SLURM_STEP_NUM_TASKS",
                                 "2",
                                 "SLURM_STEP_NODELIST",
                                 "a,b",
                                 "SLURM_STEP_TASKS_PER_NODE",
                                 "1(x2)",
                                 "SLURM_JOB_ID",
                                 "17",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.size, 2);
    assert_string_equal(r.host[0], "a");
    assert_string_equal(r.how, "rank 1 of 2 by TNET_RANK, job 17.?");
}

static void children_of_a_launched_process_are_a_group_of_their_own(void **state)
{
    (void)state;
    /* mpirun -np 1 tnet-train --peers 2: the launcher's words are about the parent */
    const char *const mpi[] = {"TNET_RANK",
                               "1",
                               "TNET_PEERS",
                               "2",
                               "OMPI_COMM_WORLD_RANK",
                               "0",
                               "OMPI_COMM_WORLD_SIZE",
                               "1",
                               "PMIX_NAMESPACE",
                               "p",
                               NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = mpi});
    assert_int_equal(r.size, 2);
    assert_string_equal(r.bind, "ipc://runs/x/sockets/1.sock");
    /* the same in a pod that happens to have the rank of a child */
    const char *const pod[] = {"TNET_RANK", "1", "TNET_PEERS", "2", "JOB_COMPLETION_INDEX",
                               "1",         NULL};
    assert_string_equal(fakeenv_membership(&(fakeenv){.words = pod}).bind,
                        "ipc://runs/x/sockets/1.sock");
}

static void half_words_are_told(void **state)
{
    (void)state;
    const char *const rank[] = {"TNET_RANK", "2", NULL};
    fakeenv_refused(&(fakeenv){.words = rank},
                    "TNET_RANK says rank 2, but nothing says how many peers there are");
    const char *const size[] = {"TNET_PEERS", "2", NULL};
    fakeenv_refused(&(fakeenv){.words = size},
                    "TNET_PEERS says 2 peers, but nothing says which of them this process is");
    const char *const high[] = {"TNET_RANK", "2", "TNET_PEERS", "2", NULL};
    fakeenv_refused(&(fakeenv){.words = high}, "rank 2 is none of 2 peers: ranks count from 0");
    const char *const none[] = {"TNET_RANK", "0", "TNET_PEERS", "0", NULL};
    fakeenv_refused(&(fakeenv){.words = none}, "TNET_PEERS is 0, not at least 1");
    const char *const word[] = {"TNET_RANK", "one", "TNET_PEERS", "2", NULL};
    fakeenv_refused(&(fakeenv){.words = word}, "TNET_RANK is 'one', not a number of 0 to 1023");
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rank_and_a_size_are_enough_on_one_host),
        TEST(a_list_in_the_environment_is_nearer_than_the_file),
        TEST(a_root_lets_the_others_choose_their_ports),
        TEST(a_rank_by_hand_completes_a_launcher_it_agrees_with),
        TEST(children_of_a_launched_process_are_a_group_of_their_own),
        TEST(half_words_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
