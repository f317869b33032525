/* test_leader.c - what rank 0 has the others do, and what comes of their answers; evaluations are
 * in test_leader_eval.c. The others are threads that answer as they are told to. */
#include "cluster/train/leader.h"

#include "base/core/clock.h"
#include "cluster/rankkit.h"
#include "nn/graph/params.h"
#include "support/test.h"
#include "train/eval/evaluate.h"
#include "train/eval/task_results.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <pthread.h>

enum { SAID = 400, PARTS = 2 };

static const uint64_t guard_ns = 60000000000;

typedef struct other {
    tn_group *group;
    uint32_t rank;
    const char *fails;    /* an order with this text; NULL: none */
    uint32_t n_parts;     /* that it says it holds at a sum */
    const tn_text *score; /* packed */
    char said[SAID];      /* what was ordered: "what number text;" */
    uint64_t more;        /* of the last START */
    uint64_t bias;        /* bits of the one that a START says */
    tn_status status;     /* how it ended */
    tn_error err;
    pthread_t thread;
} other;

typedef struct fixture {
    rankkit k;
    tn_ranks ranks;
    tn_leader *lead; /* of these */
    other other[RANKKIT_MAX];
    tn_metrics_opts kinds;
    tn_metrics *metrics; /* of three rows */
    tn_text score;       /* the same, packed */
} fixture;

static tn_status answer(other *o, const tn_order_note *order)
{
    static const uint64_t number[PARTS] = {7, 9};
    const size_t used = strlen(o->said);
    (void)snprintf(o->said + used, SAID - used, "%u %u %s;", (uint32_t)order->what,
                   (uint32_t)order->number, order->text);
    if (order->what == TN_ORDER_START && order->more.n >= 3) {
        o->more = order->more.at[0];
        o->bias = order->more.n == 4 ? order->more.at[3] : o->bias;
    }
    const bool bad = o->fails != NULL && strcmp(order->text, o->fails) == 0;
    const tn_done_note done = {
        .what = order->what,
        .number = order->number,
        .status = bad ? TN_E_CKPT : TN_OK,
        .text = bad ? "no such file" : "",
        .parts = {{number, o->n_parts}, {number, o->n_parts}, {number, o->n_parts}},
        .records = 100 + o->rank,
        .bad = o->rank,
        .metrics = {tn_text_str(o->score), o->score->size}};
    return tn_group_done(o->group, &done, &o->err);
}

static void *follow(void *arg)
{
    other *o = arg;
    tn_order_note order = {0};
    do {
        o->status = tn_group_next_order(o->group, tn_clock_ns() + guard_ns, &order, &o->err);
        if (o->status == TN_OK && order.what != TN_ORDER_BYE) {
            o->status = answer(o, &order);
        }
    } while (o->status == TN_OK && order.what != TN_ORDER_BYE);
    return NULL;
}

static void make_metrics(fixture *f)
{
    static const float logit[] = {-1, 0, 2};
    static const float label[] = {0, 1, 1};
    const tn_scored rows = {.n = 3, .logit = logit, .label = label};
    f->kinds = tn_metrics_opts_of(f->k.plan[0]->run);
    assert_int_equal(tn_metrics_new(&f->metrics, &f->kinds, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(f->metrics, &rows, NULL), TN_OK);
    tn_task_results_pack(&(tn_evaluation){.metrics = f->metrics}, &f->score);
}

static void start(fixture *f, uint32_t n)
{
    tn_error err = {0};
    memset(f, 0, sizeof *f);
    rankkit_open(&f->k, n, NULL, NULL);
    make_metrics(f);
    const tn_ranks_opts opts = {.worker = f->k.w[0], .text = &rankkit_text};
    assert_ok(tn_ranks_open(&f->ranks, &opts, &err), err.text);
    f->lead = f->ranks.self;
    for (uint32_t r = 1; r < n; r++) {
        rankkit_listen(&f->k, r);
    }
    assert_int_equal(f->ranks.ops->form(f->lead, NULL, &err), TN_OK);
    for (uint32_t r = 1; r < n; r++) {
        assert_int_equal(tn_peers_form(f->k.peers[r], NULL, &err), TN_OK);
        f->other[r] = (other){
            .group = tn_peers_group(f->k.peers[r]), .rank = r, .n_parts = 1, .score = &f->score};
    }
}

static void seat(fixture *f)
{
    for (uint32_t r = 1; r < f->k.n; r++) {
        assert_int_equal(pthread_create(&f->other[r].thread, NULL, follow, &f->other[r]), 0);
    }
}

static void join(fixture *f)
{
    for (uint32_t r = 1; r < f->k.n; r++) {
        assert_int_equal(pthread_join(f->other[r].thread, NULL), 0);
    }
}

static void leave(fixture *f)
{
    tn_metrics_free(f->metrics);
    tn_text_done(&f->score);
    rankkit_close(&f->k);
}

/* The run went well: all others have been dismissed with a BYE. */
static void end_well(fixture *f)
{
    assert_false(f->ranks.ops->close(f->lead, TN_OK, ""));
    join(f);
    for (uint32_t r = 1; r < f->k.n; r++) {
        assert_int_equal(f->other[r].status, TN_OK);
    }
}

TEST(all_load_and_start_as_rank_0_says)
{
    fixture f;
    char want[SAID];
    start(&f, 3);
    seat(&f);
    const tn_worker *w = f.k.w[0];
    tn_worker_set_prior(f.k.w[0], .25);
    assert_int_equal(f.ranks.ops->load(f.lead, "runs/x/ckpt-3", NULL), TN_OK);
    const tn_leader_begin fresh = {.epoch = 4, .is_fresh = true, .lr_scale = .5};
    const tn_leader_begin later = {.epoch = 5, .lr_scale = .25};
    assert_int_equal(tn_leader_start(f.lead, &fresh, NULL), TN_OK);
    assert_non_null(w->client.self);
    assert_int_equal(tn_leader_start(f.lead, &later, NULL), TN_OK);
    end_well(&f);
    const tn_param_slice *bias = tn_params_find(w->params, w->output_bias);
    (void)snprintf(want, sizeof want, "%d 0 runs/x/ckpt-3;%d 4 ;%d 5 ;", TN_ORDER_LOAD,
                   TN_ORDER_START, TN_ORDER_START);
    for (uint32_t r = 1; r < f.k.n; r++) {
        double lr_scale;
        assert_string_equal(f.other[r].said, want);
        memcpy(&lr_scale, &f.other[r].more, sizeof lr_scale);
        double told;
        memcpy(&told, &f.other[r].bias, sizeof told);
        assert_true((float)told == tn_params_weights(w->params)[bias->at]);
        assert_true(lr_scale >= .25 && lr_scale <= .25);
    }
    leave(&f);
}

TEST(a_sum_is_of_all_ranks_and_says_where_each_stands)
{
    fixture f;
    tn_metrics *whole = NULL;
    tn_leader_totals totals = {0};
    const tn_progress own = {.part = 2, .position = 30, .records = 1000};
    start(&f, 3);
    seat(&f);
    assert_int_equal(tn_metrics_new(&whole, &f.kinds, NULL), TN_OK);
    for (uint32_t i = 0; i < 2; i++) { /* the second time it is not added to the first */
        assert_int_equal(tn_leader_sum(f.lead, &own, f.metrics, whole, &totals, NULL), TN_OK);
        assert_int_equal(totals.records, 1000 + 101 + 102);
        assert_int_equal(totals.bad, 1 + 2);
        assert_int_equal(tn_metrics_rows(whole), 9);
        assert_int_equal(totals.progress[0].position, 30);
        for (uint32_t r = 1; r < 3; r++) {
            assert_int_equal(totals.progress[r].part, 7);
            assert_int_equal(totals.progress[r].position, 7);
            assert_int_equal(totals.progress[r].records, 100 + r);
        }
    }
    end_well(&f);
    tn_metrics_free(whole);
    leave(&f);
}

TEST(a_rank_that_does_not_say_where_it_stands_is_told)
{
    fixture f;
    tn_error err = {0};
    tn_metrics *whole = NULL;
    tn_leader_totals totals = {0};
    const tn_progress own = {0};
    start(&f, 2);
    f.other[1].n_parts = PARTS;
    seat(&f);
    assert_int_equal(tn_metrics_new(&whole, &f.kinds, &err), TN_OK);
    assert_int_equal(tn_leader_sum(f.lead, &own, f.metrics, whole, &totals, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 1 does not say where it stands");
    assert_false(
        f.ranks.ops->close(f.lead, TN_E_PEER, err.text)); /* it is rank 0 that tells that */
    join(&f);
    assert_int_equal(f.other[1].status, TN_E_PEER);
    tn_metrics_free(whole);
    leave(&f);
}

TEST(an_order_that_fails_ends_the_run_where_it_failed)
{
    fixture f;
    tn_error err = {0};
    start(&f, 3);
    f.other[2].fails = "runs/x";
    seat(&f);
    assert_int_equal(f.ranks.ops->load(f.lead, "runs/x", &err), TN_E_CKPT);
    assert_string_equal(err.text, "rank 2: no such file");
    assert_true(f.ranks.ops->close(f.lead, TN_E_CKPT, err.text));
    join(&f);
    for (uint32_t r = 1; r < 3; r++) {
        assert_int_equal(f.other[r].status, TN_E_CKPT);
        assert_string_equal(f.other[r].err.text, "rank 2: no such file");
        assert_true(tn_group_is_reported_elsewhere(f.other[r].group, TN_E_CKPT) == (r != 2));
    }
    leave(&f);
}
