/* test_score_sender.c - scored rows wait for rank 0, in bounded memory, and go in order. */
#include "cluster/train/score_exchange.h"

#include "base/math/rng.h"
#include "cluster/scoredkit.h"
#include "support/test.h"

enum { HOLD = 1 << 25, ROWS = 300, ORDERS_MAX = 400 };

/* Rank 0 as this rank sees it: how it orders is said beforehand. */
typedef struct world {
    scoredkit kit;
    tn_scored_form form;
    const tn_scores *all;
    tn_score_sender h;
    uint64_t most;    /* bytes that are asked for */
    uint32_t patient; /* waits before each order */
    uint32_t waits, orders;
    bool hastens;            /* orders also where nobody waits */
    uint32_t other_at;       /* the how-manieth order is another one; 0: none */
    tn_status ends;          /* the group, with the order after; TN_OK: never */
    uint32_t answers, empty; /* answers so far; those without rows */
    tn_text got;
} world;

static tn_status order(void *arg, bool wait, tn_order_note *out, tn_error *err)
{
    world *w = arg;
    if (!wait && !w->hastens) {
        return TN_END;
    }
    if (w->waits++ < w->patient) {
        return TN_END;
    }
    if (w->ends != TN_OK) {
        return tn_fail(err, w->ends, "rank 0 is lost");
    }
    w->waits = 0;
    w->orders++;
    *out = (tn_order_note){
        .what = TN_ORDER_ROWS, .number = w->orders, .text = "", .more = {&w->most, 1}};
    if (w->orders == w->other_at) {
        *out = (tn_order_note){.what = TN_ORDER_MARK, .number = 77, .text = "ckpt"};
    }
    return TN_OK;
}

static tn_status done(void *arg, const tn_done_note *note, tn_error *err)
{
    world *w = arg;
    (void)err;
    assert_int_equal(note->what, TN_ORDER_ROWS);
    assert_int_equal(note->number, w->orders);
    assert_int_equal(note->status, TN_OK);
    tn_text_add(&w->got, note->metrics.at, note->metrics.n);
    w->answers++;
    w->empty += note->metrics.n == 0;
    return TN_OK;
}

static void open_world(world *w, size_t hold)
{
    scoredkit_open(&w->kit);
    w->form = tn_scored_form_of(w->kit.run, w->kit.schema, true, w->kit.arena);
    w->all = scoredkit_draw(&w->kit, 21, ROWS);
    w->most = w->most != 0 ? w->most : 500;
    w->h = (tn_score_sender){.form = &w->form, .line = {order, done, w}, .hold = hold};
}

static void close_world(world *w)
{
    tn_text_done(&w->h.rows);
    tn_text_done(&w->got);
    scoredkit_close(&w->kit);
}

/* All rows in batches of n. */
static tn_status score(world *w, uint32_t n, tn_error *err)
{
    for (uint32_t from = 0; from < ROWS; from += n) {
        const uint32_t rows = n < ROWS - from ? n : ROWS - from;
        const tn_scores *batch = scoredkit_part(&w->kit, w->all, from, rows);
        TN_TRY(tn_score_sender_sink(&w->h, batch, err));
    }
    return TN_OK;
}

static void assert_all_came(const world *w)
{
    tn_scored_rows rows = {.form = &w->form};
    assert_int_equal(tn_scored_read(&rows, w->got.data, w->got.size, NULL), TN_OK);
    const tn_scores *got = &rows.scores;
    assert_int_equal(got->batch->rows, ROWS);
    for (uint32_t row = 0; row < ROWS; row++) {
        scoredkit_same(&w->form, got, row, w->all, row);
    }
    tn_scored_rows_done(&rows);
}

TEST(rows_wait_until_rank_0_asks)
{
    world w CLEANUP(close_world) = {.patient = 3};
    open_world(&w, HOLD);
    assert_int_equal(score(&w, 32, NULL), TN_OK);
    assert_int_equal(w.orders, 0);
    assert_int_equal(tn_score_sender_end(&w.h, NULL), TN_OK);
    assert_all_came(&w);
    assert_int_equal(w.empty, 1); /* that there are no more */
    assert_true(w.answers > 10);
}

TEST(rank_0_may_be_the_faster_one)
{
    world w CLEANUP(close_world) = {.hastens = true, .most = 1};
    open_world(&w, HOLD);
    assert_int_equal(score(&w, 10, NULL), TN_OK);
    assert_int_equal(w.answers, ROWS / 10); /* one row behind each batch */
    assert_int_equal(tn_score_sender_end(&w.h, NULL), TN_OK);
    assert_int_equal(w.answers, ROWS + 1);
    assert_all_came(&w);
}

TEST(no_more_than_so_much_is_held)
{
    world w CLEANUP(close_world) = {.most = 1000};
    open_world(&w, 4000);
    assert_int_equal(score(&w, 5, NULL), TN_OK);
    assert_true(w.orders > 3);
    tn_text all = {0};
    assert_int_equal(tn_scored_add(&w.form, w.all, &all, NULL), TN_OK);
    assert_true(all.size - w.got.size <= 4000);
    tn_text_done(&all);
    assert_int_equal(tn_score_sender_end(&w.h, NULL), TN_OK);
    assert_all_came(&w);
}

TEST(a_rank_without_rows_says_so)
{
    world w CLEANUP(close_world) = {0};
    open_world(&w, HOLD);
    assert_int_equal(tn_score_sender_end(&w.h, NULL), TN_OK);
    assert_int_equal(w.answers, 1);
    assert_int_equal(w.empty, 1);
}

TEST(another_order_means_that_rank_0_has_given_up)
{
    for (uint32_t at = 1; at <= 3; at++) {
        world w CLEANUP(close_world) = {.other_at = at};
        open_world(&w, 100);
        assert_int_equal(score(&w, 50, NULL), TN_END);
        assert_int_equal(w.answers, at - 1);
        assert_int_equal(tn_score_sender_end(&w.h, NULL), TN_END);
        assert_int_equal(w.orders, at); /* no other one is taken */
        const tn_order_note *instead = &w.h.instead;
        assert_int_equal(instead->what, TN_ORDER_MARK);
        assert_int_equal(instead->number, 77);
    }
    world w CLEANUP(close_world) = {.other_at = 1}; /* behind the last row */
    open_world(&w, HOLD);
    assert_int_equal(score(&w, 50, NULL), TN_OK);
    assert_int_equal(tn_score_sender_end(&w.h, NULL), TN_END);
}

TEST(a_group_that_ends_ends_the_wait)
{
    tn_error err = {0};
    world w CLEANUP(close_world) = {.ends = TN_E_PEER};
    open_world(&w, 100);
    assert_int_equal(score(&w, 50, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 0 is lost");
}

static tn_status odd_order(void *arg, bool wait, tn_order_note *out, tn_error *err)
{
    (void)arg;
    (void)wait;
    (void)err;
    *out = (tn_order_note){.what = TN_ORDER_ROWS, .text = ""};
    return TN_OK;
}

TEST(rank_0_must_say_how_much_it_wants)
{
    tn_error err = {0};
    world w CLEANUP(close_world) = {0};
    open_world(&w, HOLD);
    w.h.line.order = odd_order;
    assert_int_equal(score(&w, 50, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 0 does not say how many rows it wants");
}
