/* test_ranks.c - a process alone has nobody to ask, and a build without groups refuses one. */
#include "train/group/ranks.h"

#include "base/core/arena.h"
#include "config/diag.h"
#include "metrics/metrics.h"
#include "support/test.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"

#include <stdlib.h>
#include <string.h>

/* How tn_group_none finds the rank of a run with that option; `says` is in the sentence. */
static tn_status find(const char *option, const char *folder, const char *says)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    tn_run run = {0};
    tn_error err = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    const tn_config_in in = {.fields = tn_run_fields,
                             .path = "test/golden/deepfm.yaml",
                             .overrides = &option,
                             .n_overrides = option != NULL};
    const tn_tree *tree = tn_config_load(&in, arena, &diag);
    assert_non_null(tree);
    tn_run_bind(&b, tree, &run);
    assert_int_equal(diag.n_errors, 0);
    const tn_status status = tn_group_none.find_rank(&b, tree, &run, folder, &err);
    const char *text = diag.n_errors > 0 ? tn_text_str(&diag.text) : err.text;
    if (strstr(text, says) == NULL) {
        fail_msg("%s: %s", option, text);
    }
    assert_int_equal(run.cluster.size, 0);
    tn_diag_done(&diag);
    tn_arena_free(arena);
    return status;
}

static const char no_cluster[] = "this build has no cluster; configure it with -DTNET_CLUSTER=ON";

TEST(words_for_a_group_are_refused_where_there_is_none)
{
    static const char *const words[] = {"cluster.peers=2", "cluster.peers=[a:1,b:2]",
                                        "cluster.security={key: k, allow: d}",
                                        "cluster.staleness=2", "cluster.values=fp16"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(find(words[i], NULL, no_cluster), TN_E_CONFIG);
    }
    assert_int_equal(find(NULL, NULL, ""), TN_OK);
    assert_int_equal(find("cluster.peers=1", NULL, ""), TN_OK);
    assert_int_equal(find("cluster.peers=auto", NULL, ""), TN_OK);
    assert_int_equal(find("cluster.staleness=2", "eval", ""), TN_OK); /* of a model that is read */
    assert_int_equal(setenv("TNET_PEERS", "2", 1), 0); // NOLINT(concurrency-mt-unsafe)
    assert_int_equal(find(NULL, NULL, no_cluster), TN_E_CONFIG);
    assert_int_equal(unsetenv("TNET_PEERS"), 0); // NOLINT(concurrency-mt-unsafe)
}

TEST(children_and_parts_of_several_are_refused_where_there_is_no_group)
{
    tn_error err = {0};
    assert_int_equal(tn_group_none.prepare(NULL, 2, NULL, &err), TN_E_CONFIG);
    assert_string_equal(err.text, no_cluster);
    assert_int_equal(tn_group_none.deal(NULL, NULL, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "several processes within an epoch"));
    assert_int_equal(tn_group_none.peers_here(NULL, NULL), 0);
}

TEST(a_process_alone_hears_of_nobody)
{
    static const float logit[] = {-1, 1};
    static const float label[] = {0, 1};
    const tn_scored pair = {.n = 2, .logit = logit, .label = label};
    const tn_ranks r = tn_ranks_alone;
    tn_ranks_sums sums = {.rows = 7, .epoch = 3, .bytes_in = 5};
    tn_metrics *m = NULL;
    tn_error err = {0};
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){.coarse = true}, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(m, &pair, NULL), TN_OK);
    r.ops->sums(r.self, &sums);
    assert_int_equal(r.ops->scores(r.self, m, &err), TN_OK);
    assert_int_equal(sums.rows + sums.epoch + sums.bytes_in + tn_metrics_rows(m), 0);
    assert_int_equal(r.ops->check(r.self, &err), TN_OK);
    assert_false(r.ops->close(r.self, TN_E_DATA, "a fault"));
    tn_metrics_free(m);
}
