/* test_peers.c - the other processes of a run: found, begun, and told of a rank that cannot begin.
 */
#include "cluster/train/peers.h"

#include "base/thread/threads.h"
#include "cluster/async/async_client.h"
#include "cluster/rankkit.h"
#include "cluster/sync/sync_client.h"
#include "nn/graph/params.h"
#include "support/test.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <dirent.h>
#include <sched.h>

TEST(values_flow_from_the_beginning_to_the_end)
{
    for (uint32_t n = 2; n <= 3; n++) {
        OPEN(rankkit, k, n, NULL, NULL);
        rankkit_form(&k);
        for (uint32_t r = 0; r < n; r++) {
            assert_null(k.w[r]->client.ops);
            assert_ptr_equal(k.w[r]->peek.self, &k.w[r]->shard);
            assert_int_equal(tn_peers_begin(k.peers[r], NULL), TN_OK);
            const void *client = k.w[r]->client.self;
            assert_ptr_equal(k.w[r]->client.ops, &tn_client_sync);
            assert_non_null(client);
            assert_ptr_not_equal(k.w[r]->peek.self, &k.w[r]->shard);
            assert_int_equal(tn_peers_begin(k.peers[r], NULL), TN_OK); /* once is enough */
            assert_ptr_equal(k.w[r]->client.self, client);
            assert_int_equal(tn_group_check(tn_peers_group(k.peers[r]), NULL), TN_OK);
        }
        tn_peers_close(k.peers[n - 1]); /* the worker has nobody to ask any more */
        k.peers[n - 1] = NULL;
        assert_null(k.w[n - 1]->peek.self);
        assert_null(k.w[n - 1]->client.ops);
    }
}

TEST(above_staleness_0_weights_are_those_of_all_owners)
{
    const char *const more[] = {"cluster.staleness=1", NULL};
    OPEN(rankkit, k, 2, more, NULL);
    rankkit_form(&k);
    for (uint32_t r = 0; r < k.n; r++) {
        assert_int_equal(tn_peers_refresh(k.peers[r], NULL), TN_OK); /* before it has begun */
        assert_int_equal(tn_peers_begin(k.peers[r], NULL), TN_OK);
        assert_ptr_equal(k.w[r]->client.ops, &tn_client_async);
    }
    const size_t bytes = tn_params_size(k.w[0]->params) * sizeof(float);
    float *own = TN_NEW_ARRAY(k.arena, float, tn_params_size(k.w[0]->params));
    memcpy(own, tn_params_weights(k.w[0]->params), bytes);
    memset(tn_params_weights(k.w[0]->params), 0, bytes);
    assert_int_equal(tn_peers_refresh(k.peers[0], NULL), TN_OK);
    assert_memory_equal(tn_params_weights(k.w[0]->params), own, bytes);
    assert_int_equal(k.w[0]->steps, 0);
}

TEST(another_model_ends_all)
{
    OPEN(rankkit, k, 3, NULL, "model.hidden=[8]");
    for (uint32_t r = 0; r < k.n; r++) {
        rankkit_listen(&k, r);
    }
    for (uint32_t r = 0; r < k.n; r++) {
        tn_error err = {0};
        assert_int_equal(tn_peers_form(k.peers[r], NULL, &err), TN_E_CONFIG);
        assert_memory_equal(err.text, "the structure of the model of rank 2 on host '", 46);
    }
}

TEST(a_rank_that_cannot_begin_tells_the_others)
{
    for (uint32_t who = 0; who < 2; who++) {
        tn_error err = {0};
        OPEN(rankkit, k, 2, NULL, NULL);
        rankkit_listen(&k, 1 - who);
        tn_peers_decline(k.plan[who]->run, TN_E_DATA, "no dictionary 'x'");
        assert_int_equal(tn_peers_form(k.peers[1 - who], NULL, &err), TN_E_DATA);
        assert_string_equal(err.text,
                            who == 0 ? "rank 0: no dictionary 'x'" : "rank 1: no dictionary 'x'");
        assert_true(tn_group_is_reported_elsewhere(tn_peers_group(k.peers[1 - who]), TN_E_DATA));
    }
}

/* Its address is taken by the rank that is in: so it does not end the group of that one. */
TEST(a_second_start_that_cannot_begin_does_no_harm)
{
    OPEN(rankkit, k, 2, NULL, NULL);
    rankkit_form(&k);
    for (uint32_t r = 0; r < k.n; r++) {
        tn_peers_decline(k.plan[r]->run, TN_E_DATA, "no dictionary 'x'");
    }
    const tn_order_note order = {.what = TN_ORDER_ABANDON, .text = ""};
    assert_int_equal(tn_group_order(tn_peers_group(k.peers[0]), &order, NULL), TN_OK);
    for (uint32_t r = 0; r < k.n; r++) {
        assert_int_equal(tn_group_check(tn_peers_group(k.peers[r]), NULL), TN_OK);
    }
}

/* Threads of this process that are kept to one processor. */
static uint32_t count_pinned(void)
{
    uint32_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *e;
         (e = readdir(tasks)) != NULL;) { // NOLINT(concurrency-mt-unsafe): own
        cpu_set_t set;
        const pid_t id = (pid_t)strtol(e->d_name, NULL, 10); /* 0: "." and ".." */
        n += id > 0 && sched_getaffinity(id, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
    }
    (void)closedir(tasks);
    return n;
}

TEST(a_pinned_rank_leaves_the_threads_of_messages_free)
{
    if (tn_cpu_count() < 2) {
        skip();
    }
    const char *const more[] = {"compute.pin=true", "train.threads=1", NULL};
    rankkit k;
    rankkit_open(&k, 2, more, NULL);
    assert_int_equal(count_pinned(), 0);
    rankkit_listen(&k, 0); /* starts them */
    assert_int_equal(count_pinned(), 1);
    rankkit_close(&k);
    assert_int_equal(count_pinned(), 0);
}

TEST(who_is_alone_has_nobody_to_tell)
{
    const tn_run run = {.cluster = {.size = 0}};
    tn_peers_decline(&run, TN_E_DATA, "no dictionary 'x'");
    tn_peers_close(NULL);
}
