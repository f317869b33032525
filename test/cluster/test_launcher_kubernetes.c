/* test_launcher_kubernetes.c - pods of indexed Jobs and of StatefulSets. */
#include "cluster/fakeenv.h"
#include "support/test.h"

TEAR_DOWN
{
    fakeenv_done();
}

#define POD "KUBERNETES_SERVICE_HOST", "10.96.0.1"

TEST(an_indexed_job_names_its_pods)
{
    const char *const words[] = {POD, "JOB_COMPLETION_INDEX=2", "TNET_PEERS=3",
                                 "TNET_SERVICE=peers", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words, .host = "big-train-2"});
    assert_int_equal(r.rank, 2);
    assert_string_equal(r.address[0], "tcp://big-train-0.peers:4770");
    assert_string_equal(r.address[2], "tcp://big-train-2.peers:4770");
    assert_string_equal(r.host[1], "big-train-1");
    assert_string_equal(r.bind, "tcp://big-train-2.peers:4770");
    assert_string_equal(r.how, "rank 2 of 3 by Kubernetes, job big-train.peers");
}

TEST(a_stateful_set_counts_in_its_host_names)
{
    const char *const words[] = {POD, "TNET_SERVICE=tnet.ml.svc", "TNET_PORT=9000", NULL};
    tn_membership r =
        fakeenv_membership(&(fakeenv){.words = words, .host = "tnet-1", .peers = {.n = 2}});
    assert_int_equal(r.rank, 1);
    assert_string_equal(r.address[0], "tcp://tnet-0.tnet.ml.svc:9000");
}

TEST(pods_that_have_nothing_to_do_with_each_other_are_alone)
{
    const char *const index[] = {POD, "JOB_COMPLETION_INDEX=2", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = index, .host = "sweep-2"}).size, 1);
    const char *const pod[] = {POD, NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = pod, .host = "web-7"}).size, 1);
    const char *const one[] = {POD, "JOB_COMPLETION_INDEX=0", "TNET_PEERS=1", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = one, .host = "a-0"}).size, 1);
    const char *const host[] = {"TNET_SERVICE=peers", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = host, .host = "laptop-1"}).size, 1);
}

TEST(what_kubernetes_leaves_out_is_asked_for)
{
    const char *const sizeless[] = {POD, "JOB_COMPLETION_INDEX=2", "TNET_SERVICE=peers", NULL};
    fakeenv_refused(&(fakeenv){.words = sizeless, .host = "a-2"},
                    "Kubernetes says rank 2, but nothing says how many peers there are");
    const char *const serviceless[] = {POD, "JOB_COMPLETION_INDEX=2", "TNET_PEERS=4", NULL};
    fakeenv_refused(&(fakeenv){.words = serviceless, .host = "a-2"},
                    "nothing says where rank 0 is");
    const char *const outside[] = {POD, "JOB_COMPLETION_INDEX=4", "TNET_PEERS=4",
                                   "TNET_SERVICE=peers", NULL};
    fakeenv_refused(&(fakeenv){.words = outside, .host = "a-4"}, "rank 4 is none of 4 peers");
}

TEST(host_names_that_do_not_fit_are_told)
{
    static const char *const hosts[] = {"train-3", "train", "train-x", "-2", "train-2-abcde"};
    const char *const words[] = {POD, "JOB_COMPLETION_INDEX=2", "TNET_PEERS=3",
                                 "TNET_SERVICE=peers", NULL};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        fakeenv_refused(&(fakeenv){.words = words, .host = hosts[i]},
                        "which does not end in -2\nhint: set the pods' subdomain");
    }
}
