/* test_launcher.c - how launchers read the environment: helpers, processes that were told who they
 * are by hand, those of mpirun, hydra and PMIx. */
#include "cluster/fakeenv.h"
#include "support/test.h"

static const char *get(void *ctx, const char *name)
{
    const char *const *value = ctx;
    return strcmp(name, "WORD") == 0 ? *value : NULL;
}

static tn_status read(const char *value, uint32_t *out, tn_error *err)
{
    const tn_launch_env env = {.get = get, .ctx = &value};
    return tn_env_u32(&env, "WORD", 100, out, err);
}

TEST(numbers_below_their_limit_are_read)
{
    uint32_t n = 7;
    tn_error err = {0};
    assert_int_equal(read(NULL, &n, &err), TN_OK);
    assert_int_equal(n, 7);
    assert_int_equal(read("", &n, &err), TN_OK);
    assert_int_equal(n, 7);
    assert_int_equal(read("99", &n, &err), TN_OK);
    assert_int_equal(n, 99);
    static const char *const bad[] = {"100", "-1",         "1x",
                                      " 1",  "4294967296", "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read(bad[i], &n, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, "not a number of 0 to 99"));
        assert_int_equal(n, 99);
    }
}

TEST(empty_variables_count_as_not_set)
{
    const char *value = "";
    const tn_launch_env env = {.get = get, .ctx = &value};
    assert_null(tn_env(&env, "WORD"));
    assert_null(tn_env(&env, "OTHER"));
    value = "x";
    assert_string_equal(tn_env(&env, "WORD"), "x");
}

TEST(texts_in_the_arena_have_any_length)
{
    char word[3000];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(64);
    const char *text = tn_arena_text(arena, "%u:%s", 7U, word);
    assert_int_equal(strlen(text), 2 + 2999);
}

static int tear_down(void **state)
{
    (void)state;
    fakeenv_done();
    return 0;
}

/* ---- by hand ---- */

TEST_WITH(NULL, tear_down, a_rank_and_a_size_are_enough_on_one_host)
{
    const char *const words[] = {"TNET_RANK=1", "TNET_PEERS=4", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 1);
    assert_int_equal(r.size, 4);
    assert_string_equal(r.address[3], "ipc://runs/x/sockets/3.sock");
    assert_string_equal(r.bind, "ipc://runs/x/sockets/1.sock");
    assert_string_equal(r.how, "rank 1 of 4 by TNET_RANK");
    /* the same run for all, another one for another folder */
    const char *const zero[] = {"TNET_RANK=0", "TNET_PEERS=4", NULL};
    assert_true(fakeenv_membership(&(fakeenv){.words = zero}).job == r.job);
    assert_true(fakeenv_membership(&(fakeenv){.words = zero, .run_dir = "runs/y"}).job != r.job);
}

TEST_WITH(NULL, tear_down, a_list_in_the_environment_is_nearer_than_the_file)
{
    static const char *const old[] = {"x:1", "y:1"};
    const char *const words[] = {"TNET_RANK=1", "TNET_PEER_LIST=a:1,b:2", NULL};
    tn_membership r = fakeenv_membership(
        &(fakeenv){.words = words, .peers = {.n = 2, .address = {.n = 2, .item = old}}});
    assert_string_equal(r.address[0], "tcp://a:1");
    assert_string_equal(r.bind, "tcp://b:2");
}

TEST_WITH(NULL, tear_down, a_root_lets_the_others_choose_their_ports)
{
    const char *const words[] = {"TNET_RANK=1", "TNET_PEERS=2", "TNET_ROOT=a:1", "TNET_BIND=eth1",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.address[0], "tcp://a:1");
    assert_null(r.address[1]);
    assert_string_equal(r.bind, "tcp://eth1:0");
}

TEST_WITH(NULL, tear_down, a_rank_by_hand_completes_a_launcher_it_agrees_with)
{
    const char *const words[] = {"TNET_RANK=1",
                                 "SLURM_PROCID=1",
                                 "SLURM_STEP_NUM_TASKS=2",
                                 "SLURM_STEP_NODELIST=a,b",
                                 "SLURM_STEP_TASKS_PER_NODE=1(x2)",
                                 "SLURM_JOB_ID=17",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.size, 2);
    assert_string_equal(r.host[0], "a");
    assert_string_equal(r.how, "rank 1 of 2 by TNET_RANK, job 17.?");
}

TEST_WITH(NULL, tear_down, children_of_a_launched_process_are_a_group_of_their_own)
{
    /* mpirun -np 1 tnet-train --peers 2: the launcher's words are about the parent */
    const char *const mpi[] = {"TNET_RANK=1",
                               "TNET_PEERS=2",
                               "OMPI_COMM_WORLD_RANK=0",
                               "OMPI_COMM_WORLD_SIZE=1",
                               "PMIX_NAMESPACE=p",
                               NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = mpi});
    assert_int_equal(r.size, 2);
    assert_string_equal(r.bind, "ipc://runs/x/sockets/1.sock");
    /* the same in a pod that happens to have the rank of a child */
    const char *const pod[] = {"TNET_RANK=1", "TNET_PEERS=2", "JOB_COMPLETION_INDEX=1", NULL};
    assert_string_equal(fakeenv_membership(&(fakeenv){.words = pod}).bind,
                        "ipc://runs/x/sockets/1.sock");
}

TEST_WITH(NULL, tear_down, half_words_are_told)
{
    const char *const rank[] = {"TNET_RANK=2", NULL};
    fakeenv_refused(&(fakeenv){.words = rank},
                    "TNET_RANK says rank 2, but nothing says how many peers there are");
    const char *const size[] = {"TNET_PEERS=2", NULL};
    fakeenv_refused(&(fakeenv){.words = size},
                    "TNET_PEERS says 2 peers, but nothing says which of them this process is");
    const char *const high[] = {"TNET_RANK=2", "TNET_PEERS=2", NULL};
    fakeenv_refused(&(fakeenv){.words = high}, "rank 2 is none of 2 peers: ranks count from 0");
    const char *const none[] = {"TNET_RANK=0", "TNET_PEERS=0", NULL};
    fakeenv_refused(&(fakeenv){.words = none}, "TNET_PEERS is 0, not at least 1");
    const char *const word[] = {"TNET_RANK=one", "TNET_PEERS=2", NULL};
    fakeenv_refused(&(fakeenv){.words = word}, "TNET_RANK is 'one', not a number of 0 to 1023");
}

/* ---- MPI ---- */

TEST_WITH(NULL, tear_down, one_machine_of_open_mpi_needs_no_network)
{
    const char *const words[] = {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_NAMESPACE=prterun-9", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 3);
    assert_string_equal(r.address[0], "ipc://runs/x/sockets/0.sock");
    assert_string_equal(r.how, "rank 3 of 4 by MPI, job prterun-9");
}

TEST_WITH(NULL, tear_down, several_machines_meet_in_the_folder_of_the_run)
{
    const char *const words[] = {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=prterun-9", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.meet, "runs/x/peers.root");
    assert_null(r.address[0]);
    assert_string_equal(r.bind, "tcp://here:0");
    fakeenv_refused(&(fakeenv){.words = words, .run_dir = ""}, "nothing says where rank 0 is");
}

TEST_WITH(NULL, tear_down, nothing_is_met_without_the_name_of_the_run)
{
    const char *const words[] = {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALNRANKS=1", "TNET_JOB=today",
                                 NULL};
    assert_non_null(fakeenv_membership(&(fakeenv){.words = words}).meet);
    const char *const nameless[] = {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALNRANKS=1", NULL};
    fakeenv_refused(&(fakeenv){.words = nameless},
                    "MPI says rank 1 of 2, but nothing says where rank 0 is\nhint: set TNET_ROOT");
}

TEST_WITH(NULL, tear_down, the_root_may_be_said)
{
    const char *const words[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2",
                                 "TNET_ROOT=10.1.0.7:5000", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.address[0], "tcp://10.1.0.7:5000");
    assert_string_equal(r.bind, "tcp://10.1.0.7:5000");
    assert_null(r.address[1]);
}

TEST_WITH(NULL, tear_down, mpirun_in_an_allocation_does_not_take_the_daemons_rank)
{
    const char *const words[] = {"OMPI_COMM_WORLD_RANK=5",
                                 "OMPI_COMM_WORLD_SIZE=8",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE=4",
                                 "PMIX_NAMESPACE=p",
                                 "SLURM_PROCID=1",
                                 "SLURM_STEP_NUM_TASKS=2",
                                 "SLURM_STEP_NODELIST=a,b",
                                 "SLURM_STEP_TASKS_PER_NODE=1(x2)",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 5);
    assert_int_equal(r.size, 8);
    assert_null(r.address[0]);
    assert_non_null(r.meet);
}

TEST_WITH(NULL, tear_down, srun_completes_what_pmi_does_not_say)
{
    const char *const words[] = {"PMIX_RANK=1",
                                 "PMIX_NAMESPACE=slurm.pmix.17.0",
                                 "SLURM_PROCID=1",
                                 "SLURM_STEP_NUM_TASKS=2",
                                 "SLURM_STEP_NODELIST=a,b",
                                 "SLURM_STEP_TASKS_PER_NODE=1(x2)",
                                 "SLURM_JOB_ID=17",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.size, 2);
    assert_non_null(r.address[0]);
    assert_string_equal(r.host[1], "b");
    /* by itself it leaves the size to others */
    const char *const alone[] = {"PMIX_RANK=1", "PMIX_NAMESPACE=x", NULL};
    fakeenv_refused(&(fakeenv){.words = alone}, "MPI says rank 1, but nothing says how many peers");
    const char *const helped[] = {"PMIX_RANK=1", "PMIX_NAMESPACE=x", "TNET_PEERS=3", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = helped}).size, 3);
}

TEST_WITH(NULL, tear_down, ranks_and_sizes_that_are_no_numbers_are_told)
{
    const char *const words[] = {"OMPI_COMM_WORLD_RANK=-1", NULL};
    fakeenv_refused(&(fakeenv){.words = words}, "OMPI_COMM_WORLD_RANK is '-1', not a number");
    const char *const large[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1025", NULL};
    fakeenv_refused(&(fakeenv){.words = large}, "not a number of 0 to 1024");
}

/* What test/e2e/launchers.sh starts under real launchers: one line of who this process is. */
static int show(const char *run_dir)
{
    char host[TN_ENDPOINT_HOST];
    const tn_peers_opts any = {0};
    tn_membership_in in = tn_membership_here(&any, run_dir, host);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_membership r;
    tn_error err = {0};
    tn_status status = tn_membership_find(&r, &in, arena, &err);
    if (status == TN_OK) {
        const char *root = r.size > 1 && r.address[0] != NULL ? r.address[0] : "-";
        const char *own = r.size > 1 && r.host[r.rank] != NULL ? r.host[r.rank] : "-";
        (void)printf("%u of %u root %s bind %s host %s meet %s: %s\n", r.rank, r.size, root,
                     r.bind != NULL ? r.bind : "-", own, r.meet != NULL ? r.meet : "-", r.how);
    } else {
        (void)printf("%s\n", err.text);
    }
    return status == TN_OK ? 0 : 1;
}

static bool play(int argc, char **argv, int *code)
{
    const bool shows = argc == 3 && strcmp(argv[1], "show") == 0;
    if (shows) {
        *code = show(argv[2]);
    }
    return shows;
}

ROLES(play);
