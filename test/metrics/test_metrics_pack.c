/* test_metrics_pack.c - totals of peers whatever the network does to their reports. */
#include "metrics/metrics_pack.h"

#include "metrics/v21.h"
#include "support/test.h"

enum { PEERS = 3, REPORTS = 5, ROWS = 200 };

/* Every peer reports after each of its REPORTS batches, cumulatively. */
typedef struct world {
    tn_metrics *all; /* every row once */
    tn_metrics *peer[PEERS];
    tn_text text[PEERS][REPORTS];
    tn_peer_metrics *reports;
    tn_metrics *total;
} world;

static const tn_metrics_opts opts = {.coarse = true};

static void add_rows(world *w, uint32_t peer, uint32_t report)
{
    float z[ROWS];
    float y[ROWS];
    float weight[ROWS];
    uint64_t s = tn_stream3(81, TN_RNG_GENERATE, peer, report);
    for (uint32_t i = 0; i < ROWS; i++) {
        z[i] = (float)(3 * tn_normal(tn_draw(s, 3 * (uint64_t)i)));
        double u = tn_unit(tn_draw(s, 3 * (uint64_t)i + 1));
        y[i] = u < .5 ? 0 : u < .9 ? 1 : .5F;
        weight[i] = (float)tn_below(tn_draw(s, 3 * (uint64_t)i + 2), 3);
    }
    tn_scored rows = {.n = ROWS, .logit = z, .label = y, .weight = weight};
    assert_int_equal(tn_metrics_add(w->all, &rows, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(w->peer[peer], &rows, NULL), TN_OK);
    tn_metrics_pack(w->peer[peer], &w->text[peer][report]);
}

SET_UP
{
    world *w = tn_alloc(1, sizeof *w, "a test");
    assert_int_equal(tn_metrics_new(&w->all, &opts, NULL), TN_OK);
    assert_int_equal(tn_metrics_new(&w->total, &opts, NULL), TN_OK);
    assert_int_equal(tn_peer_metrics_new(&w->reports, PEERS, &opts, NULL), TN_OK);
    for (uint32_t p = 0; p < PEERS; p++) {
        assert_int_equal(tn_metrics_new(&w->peer[p], &opts, NULL), TN_OK);
        for (uint32_t r = 0; r < REPORTS; r++) {
            add_rows(w, p, r);
        }
    }
    *state = w;
}

TEAR_DOWN
{
    world *w FREED(tn_free) = *state;
    for (uint32_t p = 0; p < PEERS; p++) {
        tn_metrics_free(w->peer[p]);
        for (uint32_t r = 0; r < REPORTS; r++) {
            tn_text_done(&w->text[p][r]);
        }
    }
    tn_metrics_free(w->all);
    tn_metrics_free(w->total);
    tn_peer_metrics_free(w->reports);
}

static void put(world *w, uint32_t peer, uint32_t report)
{
    const tn_text *t = &w->text[peer][report];
    assert_int_equal(tn_peer_metrics_put(w->reports, peer, report + 1, t->data, t->size, NULL),
                     TN_OK);
}

static void assert_total(world *w, const tn_metrics *want)
{
    assert_int_equal(tn_peer_metrics_total(w->reports, w->total, NULL), TN_OK);
    assert_int_equal(tn_metrics_rows(w->total), tn_metrics_rows(want));
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        double x = tn_metrics_get(w->total, (*metric)->name);
        double y = tn_metrics_get(want, (*metric)->name);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

TEST_ON(world *w, m4_lost_repeated_and_late_reports_change_no_total)
{
    put(w, 0, 4); /* all others of peer 0 are lost or come late */
    put(w, 1, 1);
    put(w, 1, 4);
    put(w, 1, 4); /* twice */
    put(w, 2, 0);
    put(w, 2, 4);
    put(w, 2, 2); /* late */
    put(w, 0, 0);
    assert_total(w, w->all);
    for (uint32_t again = 0; again < 3; again++) { /* nobody reports any more */
        assert_total(w, w->all);
    }
}

TEST_ON(world *w, m4_a_silent_peer_is_not_added_again)
{
    for (uint32_t r = 0; r < REPORTS; r++) {
        put(w, 0, r);
        assert_int_equal(tn_peer_metrics_total(w->reports, w->total, NULL), TN_OK);
    }
    assert_total(w, w->peer[0]);
}

TEST_ON(world *w, m3_peers_together_equal_one_process)
{
    for (uint32_t p = PEERS; p-- > 0;) {
        put(w, p, REPORTS - 1);
    }
    assert_total(w, w->all);
    assert_true(tn_metrics_get(w->total, "copc") > 0);
}

TEST_ON(world *w, what_is_packed_comes_back)
{
    tn_metrics *m = NULL;
    assert_int_equal(tn_metrics_new(&m, &opts, NULL), TN_OK);
    const tn_text *t = &w->text[1][REPORTS - 1];
    assert_int_equal(tn_metrics_unpack(m, t->data, t->size, NULL), TN_OK);
    tn_text again CLEANUP(tn_text_done) = {0};
    tn_metrics_pack(m, &again);
    assert_int_equal(again.size, t->size);
    assert_memory_equal(again.data, t->data, t->size);
    tn_metrics_free(m);
}

TEST_ON(world *w, damaged_reports_are_refused_and_the_last_good_one_stays)
{
    put(w, 0, 4);
    const tn_text *t = &w->text[0][4];
    char *copy = tn_alloc(1, t->size + 1, "a test");
    for (size_t size = 0; size <= t->size + 1; size += size < 900 ? 1 : 7) {
        if (size == t->size) {
            continue;
        }
        memcpy(copy, t->data, size < t->size ? size : t->size);
        tn_error err = {0};
        assert_int_equal(tn_peer_metrics_put(w->reports, 0, 99, copy, size, &err), TN_E_PEER);
        assert_non_null(strstr(err.text, "peer 0: report of metrics"));
    }
    tn_free(copy);
    assert_total(w, w->peer[0]);
}

TEST_ON(world *w, any_bytes_are_safe)
{
    print_message("seed 82\n");
    uint64_t s = tn_stream2(82, TN_RNG_GENERATE, 0);
    const tn_text *t = &w->text[2][0];
    char *copy FREED(tn_free) = tn_alloc(1, t->size, "a test");
    for (uint64_t i = 0; i < 2000; i++) {
        memcpy(copy, t->data, t->size);
        for (uint64_t k = 0; k < 4; k++) {
            copy[tn_below(tn_draw(s, 8 * i + k), t->size)] = (char)tn_draw(s, 8 * i + 4 + k);
        }
        tn_status status = tn_metrics_unpack(w->total, copy, t->size, NULL);
        assert_true(status == TN_OK || status == TN_E_PEER);
    }
}
