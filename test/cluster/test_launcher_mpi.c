/* test_launcher_mpi.c - processes of mpirun, hydra and PMIx. */
#include "cluster/fakeenv.h"
#include "support/test.h"

static int tear_down(void **state)
{
    (void)state;
    fakeenv_done();
    return 0;
}

static void one_machine_of_open_mpi_needs_no_network(void **state)
{
    (void)state;
    const char *const words[] = {"OMPI_COMM_WORLD_RANK",
                                 "3",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "4",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "4",
                                 "PMIX_NAMESPACE",
                                 "prterun-9",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 3);
    assert_string_equal(r.address[0], "ipc://runs/x/sockets/0.sock");
    assert_string_equal(r.how, "rank 3 of 4 by MPI, job prterun-9");
}

static void several_machines_meet_in_the_folder_of_the_run(void **state)
{
    (void)state;
    const char *const words[] = {"OMPI_COMM_WORLD_RANK",
                                 "3",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "4",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "2",
                                 "PMIX_NAMESPACE",
                                 "prterun-9",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.meet, "runs/x/peers.root");
    assert_null(r.address[0]);
    assert_string_equal(r.bind, "tcp://here:0");
    fakeenv_refused(&(fakeenv){.words = words, .run_dir = ""}, "nothing says where rank 0 is");
}

static void nothing_is_met_without_the_name_of_the_run(void **state)
{
    (void)state;
    const char *const words[] = {"PMI_RANK", "1",        "PMI_SIZE", "2", "MPI_LOCALNRANKS",
                                 "1",        "TNET_JOB", "today",    NULL};
    assert_non_null(fakeenv_membership(&(fakeenv){.words = words}).meet);
    const char *const nameless[] = {"PMI_RANK", "1", "PMI_SIZE", "2", "MPI_LOCALNRANKS", "1", NULL};
    fakeenv_refused(&(fakeenv){.words = nameless},
                    "MPI says rank 1 of 2, but nothing says where rank 0 is\nhint: set TNET_ROOT");
}

static void the_root_may_be_said(void **state)
{
    (void)state;
    const char *const words[] = {
        "OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "2", "TNET_ROOT",
        "10.1.0.7:5000",        NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_string_equal(r.address[0], "tcp://10.1.0.7:5000");
    assert_string_equal(r.bind, "tcp://10.1.0.7:5000");
    assert_null(r.address[1]);
}

static void mpirun_in_an_allocation_does_not_take_the_daemons_rank(void **state)
{
    (void)state;
    const char *const words[] = {"OMPI_COMM_WORLD_RANK",
                                 "5",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "8",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "4",
                                 "PMIX_NAMESPACE",
                                 "p",
                                 "SLURM_PROCID",
                                 "1",
                                 "SLURM_STEP_NUM_TASKS",
                                 "2",
                                 "SLURM_STEP_NODELIST",
                                 "a,b",
                                 "SLURM_STEP_TASKS_PER_NODE",
                                 "1(x2)",
                                 NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words});
    assert_int_equal(r.rank, 5);
    assert_int_equal(r.size, 8);
    assert_null(r.address[0]);
    assert_non_null(r.meet);
}

static void srun_completes_what_pmi_does_not_say(void **state)
{
    (void)state;
    const char *const words[] = {"PMIX_RANK",
                                 "1",
                                 "PMIX_NAMESPACE",
                                 "slurm.pmix.17.0",
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
    assert_non_null(r.address[0]);
    assert_string_equal(r.host[1], "b");
    /* by itself it leaves the size to others */
    const char *const alone[] = {"PMIX_RANK", "1", "PMIX_NAMESPACE", "x", NULL};
    fakeenv_refused(&(fakeenv){.words = alone}, "MPI says rank 1, but nothing says how many peers");
    const char *const helped[] = {"PMIX_RANK", "1", "PMIX_NAMESPACE", "x", "TNET_PEERS", "3", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = helped}).size, 3);
}

static void words_that_are_no_numbers_are_told(void **state)
{
    (void)state;
    const char *const words[] = {"OMPI_COMM_WORLD_RANK", "-1", NULL};
    fakeenv_refused(&(fakeenv){.words = words}, "OMPI_COMM_WORLD_RANK is '-1', not a number");
    const char *const large[] = {"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1025", NULL};
    fakeenv_refused(&(fakeenv){.words = large}, "not a number of 0 to 1024");
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_machine_of_open_mpi_needs_no_network),
        TEST(several_machines_meet_in_the_folder_of_the_run),
        TEST(nothing_is_met_without_the_name_of_the_run),
        TEST(the_root_may_be_said),
        TEST(mpirun_in_an_allocation_does_not_take_the_daemons_rank),
        TEST(srun_completes_what_pmi_does_not_say),
        TEST(words_that_are_no_numbers_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
