/* test_failure_detector.c - who is heard, suspect, lost, stalled: simulated time only. */
#include "support/test.h"

#include "cluster/group/failure_detector.h"

CLOSER(tn_failure_detector_free);

enum { RANKS = 4, FAR = 1024, EVENTS = 4 * FAR };

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define TICK (100 * MS)

typedef struct watch {
    tn_failure_detector *p;
    uint64_t now;
    tn_failure_event event[EVENTS];
    uint32_t n;
} watch;

static void open_watch(watch *w, uint32_t size, uint64_t start)
{
    *w = (watch){.now = start};
    assert_int_equal(tn_failure_detector_new(&w->p, size, TN_FAILURE_GAP_NS, NULL), TN_OK);
    for (uint32_t r = 1; r < size; r++) {
        tn_failure_detector_watch(w->p, r, start);
    }
}

static void poll(watch *w)
{
    tn_failure_event event;
    while (tn_failure_detector_poll(w->p, w->now, &event)) {
        assert_true(w->n < EVENTS);
        w->event[w->n++] = event;
    }
}

/* Polls every tick until `until`, and at it. */
static void go_to(watch *w, uint64_t until)
{
    assert_true(until > w->now);
    while (w->now < until) {
        w->now = until - w->now > TICK ? w->now + TICK : until;
        poll(w);
    }
}

static void send_beat(const watch *w, uint32_t rank, uint64_t state, uint64_t step)
{
    const tn_beat_note note = {.state = state};
    tn_failure_detector_received(w->p, rank, &note, step, w->now);
}

/* As go_to, with a beat of all others every second, at this step, plus `per_s` each second. */
static uint64_t train_to(watch *w, uint64_t until, uint64_t step, uint64_t per_s)
{
    while (w->now < until) {
        go_to(w, w->now + SECOND);
        step += per_s;
        for (uint32_t r = 1; r < RANKS; r++) {
            send_beat(w, r, TN_PEER_TRAINING, step);
        }
    }
    return step;
}

static void assert_event(const watch *w, uint32_t i, tn_failure_kind kind, uint32_t rank,
                         uint64_t ns)
{
    assert_true(i < w->n);
    assert_int_equal(w->event[i].kind, kind);
    assert_int_equal(w->event[i].rank, rank);
    assert_int_equal(w->event[i].ns, ns);
}

TEST(a_silent_rank_is_suspect_at_5_s_and_lost_at_15)
{
    watch w;
    open_watch(&w, 2, 7 * SECOND);
    go_to(&w, 12 * SECOND - 1);
    assert_int_equal(w.n, 0);
    go_to(&w, 12 * SECOND);
    assert_int_equal(w.n, 1);
    assert_event(&w, 0, TN_FAILURE_SUSPECT, 1, 5 * SECOND);
    go_to(&w, 22 * SECOND - 1);
    assert_int_equal(w.n, 1);
    go_to(&w, 22 * SECOND);
    assert_int_equal(w.n, 2);
    assert_event(&w, 1, TN_FAILURE_LOST, 1, 15 * SECOND);
    go_to(&w, 100 * SECOND);
    assert_int_equal(w.n, 2); /* once */
    tn_failure_detector_free(w.p);
}

TEST(any_frame_proves_life)
{
    watch w;
    open_watch(&w, 2, 0);
    for (uint32_t i = 0; i < 20; i++) {
        go_to(&w, w.now + 5 * SECOND - 1);
        tn_failure_detector_received(w.p, 1, NULL, 12345,
                                     w.now); /* its step is not that of a worker */
    }
    assert_int_equal(w.n, 0);
    go_to(&w, w.now + 5 * SECOND);
    assert_event(&w, 0, TN_FAILURE_SUSPECT, 1, 5 * SECOND);
    assert_int_equal(w.event[0].step, 0);
    tn_failure_detector_free(w.p);
}

TEST(a_rank_that_flaps_is_told_each_time_in_turn)
{
    watch w;
    open_watch(&w, 2, 0);
    for (uint32_t i = 0; i < 50; i++) {
        go_to(&w, w.now + 7 * SECOND);
        send_beat(&w, 1, TN_PEER_LOADING, i);
        send_beat(&w, 1, TN_PEER_LOADING, i); /* two at once: the silence was the first one's */
        go_to(&w, w.now + TICK);
        assert_int_equal(w.n, 2 * i + 2);
        assert_int_equal(w.event[w.n - 2].kind, TN_FAILURE_SUSPECT);
        assert_event(&w, w.n - 1, TN_FAILURE_BACK, 1, 7 * SECOND + (i > 0 ? TICK : 0));
        assert_int_equal(w.event[w.n - 1].step, i);
    }
    tn_failure_detector_free(w.p);
}

TEST(a_rank_heard_at_the_last_moment_is_not_lost)
{
    watch w;
    open_watch(&w, 2, 0);
    go_to(&w, 15 * SECOND - 1);
    send_beat(&w, 1, TN_PEER_LOADING, 0);
    go_to(&w, 15 * SECOND);
    assert_int_equal(w.n, 2);
    assert_event(&w, 1, TN_FAILURE_BACK, 1, 15 * SECOND - 1);
    tn_failure_detector_free(w.p);
}

TEST(a_lost_rank_stays_lost_until_it_is_watched_anew)
{
    watch w;
    open_watch(&w, 2, 0);
    go_to(&w, 15 * SECOND);
    assert_int_equal(w.n, 2);
    send_beat(&w, 1, TN_PEER_TRAINING, 9);
    go_to(&w, 60 * SECOND);
    assert_int_equal(w.n, 2);
    tn_failure_detector_watch(w.p, 1, w.now);
    go_to(&w, 65 * SECOND - 1);
    assert_int_equal(w.n, 2);
    go_to(&w, 65 * SECOND);
    assert_event(&w, 2, TN_FAILURE_SUSPECT, 1, 5 * SECOND);
    tn_failure_detector_free(w.p);
}

TEST(nobody_is_watched_before_it_is_welcome)
{
    watch w = {0};
    assert_int_equal(tn_failure_detector_new(&w.p, 3, TN_FAILURE_GAP_NS, NULL), TN_OK);
    go_to(&w, 100 * SECOND);
    tn_failure_detector_watch(w.p, 2, w.now);
    go_to(&w, 200 * SECOND);
    assert_int_equal(w.n, 2);
    assert_event(&w, 0, TN_FAILURE_SUSPECT, 2, 5 * SECOND);
    tn_failure_detector_free(w.p);
}

TEST(a_process_that_was_stopped_does_not_take_the_others_for_dead)
{
    watch w;
    open_watch(&w, 2, 0);
    go_to(&w, 3 * SECOND);
    w.now += 3600 * SECOND; /* stopped for an hour; what came is not read yet */
    poll(&w);
    assert_int_equal(w.n, 0);
    send_beat(&w, 1, TN_PEER_TRAINING, 1);
    go_to(&w, w.now + 4 * SECOND);
    assert_int_equal(w.n, 0);
    /* And if nothing came: 3 s before, 1 s at most of the hour, 1 s after it. */
    watch v;
    open_watch(&v, 2, 0);
    go_to(&v, 3 * SECOND);
    v.now += 3600 * SECOND;
    poll(&v);
    go_to(&v, v.now + SECOND - 1);
    assert_int_equal(v.n, 0);
    go_to(&v, v.now + 1);
    assert_event(&v, 0, TN_FAILURE_SUSPECT, 1, 3604 * SECOND);
    tn_failure_detector_free(w.p);
    tn_failure_detector_free(v.p);
}

TEST(clocks_may_begin_anywhere_and_threads_may_read_them_early)
{
    watch w;
    open_watch(&w, 2, UINT64_MAX - 40 * SECOND);
    go_to(&w, w.now + 4 * SECOND);
    tn_failure_detector_received(w.p, 1, NULL, 0, w.now - SECOND); /* read before the last poll */
    go_to(&w, w.now + 5 * SECOND - 1);
    assert_int_equal(w.n, 0);
    w.now -= SECOND;
    poll(&w);
    assert_int_equal(w.n, 0);
    go_to(&w, w.now + SECOND + 1);
    assert_int_equal(w.n, 1);
    assert_event(&w, 0, TN_FAILURE_SUSPECT, 1, 6 * SECOND);
    tn_failure_detector_received(w.p, 1, NULL, 0, 0);
    poll(&w);
    assert_event(&w, 1, TN_FAILURE_BACK, 1, 0);
    tn_failure_detector_free(w.p);
}

TEST(limits_may_be_divided)
{
    watch w = {0};
    assert_int_equal(setenv("TNET_FAST", "10", 1), 0); // NOLINT(concurrency-mt-unsafe)
    assert_int_equal(tn_failure_detector_new(&w.p, 2, 10 * SECOND, NULL), TN_OK);
    assert_int_equal(unsetenv("TNET_FAST"), 0); // NOLINT(concurrency-mt-unsafe)
    tn_failure_detector_watch(w.p, 1, 0);
    w.now = 500 * MS - 1;
    poll(&w);
    assert_int_equal(w.n, 0);
    w.now = 1500 * MS; /* both at once, in order */
    poll(&w);
    assert_int_equal(w.n, 2);
    assert_event(&w, 0, TN_FAILURE_SUSPECT, 1, 1500 * MS);
    assert_event(&w, 1, TN_FAILURE_LOST, 1, 1500 * MS);
    tn_failure_detector_free(w.p);
}

TEST(a_step_that_stands_for_30_s_is_told_once)
{
    watch w;
    open_watch(&w, RANKS, 0);
    const uint64_t step = train_to(&w, 10 * SECOND, 0, 100);
    assert_int_equal(w.n, 0);
    train_to(&w, 39 * SECOND, step, 0);
    go_to(&w, 40 * SECOND - 1);
    assert_int_equal(w.n, 0);
    go_to(&w, 40 * SECOND);
    assert_int_equal(w.n, RANKS - 1);
    for (uint32_t r = 1; r < RANKS; r++) {
        assert_event(&w, r - 1, TN_FAILURE_STALLED, r, 30 * SECOND);
        assert_int_equal(w.event[r - 1].step, 1000);
    }
    train_to(&w, 100 * SECOND, step, 0);
    assert_int_equal(w.n, RANKS - 1); /* once */
    train_to(&w, 101 * SECOND, step, 1);
    train_to(&w, 132 * SECOND, step + 1, 0);
    assert_int_equal(w.n, 2 * (RANKS - 1)); /* it had moved */
    tn_failure_detector_free(w.p);
}

TEST(only_who_trains_can_stall)
{
    watch w;
    open_watch(&w, 2, 0);
    for (uint64_t s = 0; s < TN_PEER_STATES; s++) {
        for (uint32_t i = 0; i < 60 && s != TN_PEER_TRAINING; i++) {
            go_to(&w, w.now + SECOND);
            send_beat(&w, 1, s, 7);
        }
    }
    for (uint32_t i = 0; i < 30; i++) { /* and it is measured from when it trains */
        send_beat(&w, 1, TN_PEER_TRAINING, 7);
        go_to(&w, w.now + SECOND - 1);
        assert_int_equal(w.n, 0);
        w.now++;
    }
    poll(&w);
    assert_event(&w, 0, TN_FAILURE_STALLED, 1, 30 * SECOND);
    tn_failure_detector_free(w.p);
}

TEST(a_silent_rank_is_not_stalled_but_suspect)
{
    watch w;
    open_watch(&w, 2, 0);
    for (uint32_t i = 0; i < 24; i++) {
        send_beat(&w, 1, TN_PEER_TRAINING, 7);
        go_to(&w, w.now + SECOND);
    }
    go_to(&w, 60 * SECOND);
    assert_int_equal(w.n, 2);
    assert_event(&w, 0, TN_FAILURE_SUSPECT, 1, 5 * SECOND);
    assert_event(&w, 1, TN_FAILURE_LOST, 1, 15 * SECOND);
    assert_int_equal(w.event[1].step, 7);
    tn_failure_detector_free(w.p);
}

TEST(where_steps_are_slow_20_of_them_may_pass)
{
    watch w;
    open_watch(&w, RANKS, 0);
    uint64_t step = 0;
    while (step < 20) { /* 4 s each */
        for (uint32_t i = 0; i < 4; i++) {
            step = train_to(&w, w.now + SECOND, step, i == 3);
        }
    }
    assert_int_equal(w.n, 0);
    const uint64_t moved = w.now;
    train_to(&w, moved + 79 * SECOND, step, 0);
    go_to(&w, moved + 80 * SECOND - 1);
    assert_int_equal(w.n, 0);
    go_to(&w, moved + 80 * SECOND);
    assert_int_equal(w.n, RANKS - 1);
    assert_event(&w, 0, TN_FAILURE_STALLED, 1, 80 * SECOND);
    tn_failure_detector_free(w.p);
}

TEST(a_step_that_goes_back_is_a_move_but_no_measure)
{
    watch w;
    open_watch(&w, 2, 0);
    send_beat(&w, 1, TN_PEER_TRAINING, UINT64_MAX);
    for (uint64_t i = 0; i < 60; i++) {
        go_to(&w, w.now + SECOND);
        send_beat(&w, 1, TN_PEER_TRAINING, UINT64_MAX - 1 - i);
    }
    assert_int_equal(w.n, 0);
    const uint64_t moved = w.now;
    while (w.now < moved + 30 * SECOND) {
        go_to(&w, w.now + SECOND);
        send_beat(&w, 1, TN_PEER_TRAINING, UINT64_MAX - 60);
    }
    assert_event(&w, 0, TN_FAILURE_STALLED, 1, 30 * SECOND);
    tn_failure_detector_free(w.p);
}

TEST(c9_a_thousand_ranks_are_told_by_rank_each_once)
{
    static watch w;
    open_watch(&w, FAR, SECOND);
    for (uint32_t r = 1; r < FAR; r++) {
        w.now = SECOND + r * MS / 2;
        if (r % 3 != 0) {
            send_beat(&w, r, TN_PEER_LOADING, r);
        }
    }
    go_to(&w, 6 * SECOND);
    assert_int_equal(w.n, FAR / 3); /* ranks 3, 6, .. 1023 */
    go_to(&w, 15 * SECOND);
    assert_int_equal(w.n, FAR - 1);
    for (uint32_t r = 1; r < FAR; r++) {
        send_beat(&w, r, TN_PEER_LOADING, r);
    }
    w.n = 0;
    poll(&w);
    assert_int_equal(w.n, FAR - 1);
    for (uint32_t r = 1; r < FAR; r++) {
        assert_int_equal(w.event[r - 1].kind, TN_FAILURE_BACK);
        assert_int_equal(w.event[r - 1].rank, r);
    }
    go_to(&w, w.now + 20 * SECOND);
    assert_int_equal(w.n, 3 * (FAR - 1)); /* and suspect, and lost */
    tn_failure_detector_free(w.p);
}

TEST(every_allocation_that_fails_is_reported)
{
    for (uint64_t nth = 1; nth <= 2; nth++) {
        tn_failure_detector *p FREED(tn_failure_detector_free) = NULL;
        tn_error err = {0};
        tn_alloc_fail_at(nth);
        tn_status status = tn_failure_detector_new(&p, 2, TN_FAILURE_GAP_NS, &err);
        tn_alloc_fail_at(0);
        assert_int_equal(status, nth < 2 ? TN_E_MEMORY : TN_OK);
        assert_int_equal(err.code, status);
        assert_int_equal(p != NULL, status == TN_OK);
    }
    tn_failure_detector_free(NULL);
}

static tn_failure_detector *open_pulse(uint32_t size)
{
    tn_failure_detector *p = NULL;
    assert_int_equal(tn_failure_detector_new(&p, size, 100 * SECOND, NULL), TN_OK);
    for (uint32_t r = 0; r < size; r++) {
        char host[16];
        (void)snprintf(host, sizeof host, "%c", 'a' + (char)r);
        tn_failure_detector_name(p, r, host, 4710 + r);
        if (r > 0) {
            tn_failure_detector_watch(p, r, 0);
        }
    }
    return p;
}

static void assert_event_text(tn_failure_detector *p, uint64_t now, const char *expected)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_failure_event event;
    assert_true(tn_failure_detector_poll(p, now, &event));
    tn_failure_event_text(p, &event, &text);
    assert_string_equal(tn_text_str(&text), expected);
}

static void assert_lost_text(const tn_failure_detector *p, uint32_t rank, uint64_t now,
                             const char *expected)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_failure_lost_text(p, rank, now, &text);
    assert_string_equal(tn_text_str(&text), expected);
}

TEST(sentences_name_rank_host_process_and_step)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(2);
    tn_failure_event event;
    const tn_beat_note beat = {.state = TN_PEER_TRAINING, .waits_for = 1};
    tn_failure_detector_received(p, 1, &beat, 310, SECOND);
    assert_event_text(p, 6 * SECOND,
                      "rank 1 (host 'b', pid 4711) has been silent for 5.0 s, at step 310");
    tn_failure_detector_received(p, 1, &beat, 310, 8 * SECOND + 300 * MS);
    assert_event_text(p, 8 * SECOND + 400 * MS,
                      "rank 1 (host 'b', pid 4711) is heard again after 7.3 s, at step 310");
    assert_false(tn_failure_detector_poll(p, 8 * SECOND + 400 * MS, &event));
    tn_failure_detector_received(p, 1, &beat, 310, 31 * SECOND);
    assert_event_text(p, 31 * SECOND,
                      "rank 1 (host 'b', pid 4711) has stood at step 310 for 30.0 s and waits for "
                      "rank 0");
    assert_event_text(p, 46 * SECOND + 200 * MS,
                      "rank 1 (host 'b', pid 4711) has been silent for 15.2 s, at step 310");
    assert_event_text(p, 46 * SECOND + 200 * MS,
                      "rank 1 (host 'b', pid 4711) was last heard of 15.2 s ago at step 310");
    assert_lost_text(p, 1, 47 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 16.0 s ago at step 310");
}

/* Beats come once a second, pushes with every step; what a rank calls its steps is its own affair.
 */
TEST(a_lost_rank_is_told_with_the_step_of_its_last_push)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(2);
    const tn_beat_note beat = {.state = TN_PEER_TRAINING};
    tn_failure_detector_received(p, 1, &beat, 0, SECOND);
    tn_failure_detector_pushed(p, 1, 70);
    assert_lost_text(p, 1, 2 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 1.0 s ago at step 0");
    tn_failure_detector_pushed(p, 1, 71);
    tn_failure_detector_pushed(p, 1, 72);
    tn_failure_detector_pushed(p, 1, 71); /* once more */
    assert_lost_text(p, 1, 2 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 1.0 s ago at step 2");
    tn_failure_detector_received(p, 1, &beat, 3, 2 * SECOND);
    assert_lost_text(p, 1, 3 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 1.0 s ago at step 3");
    tn_failure_detector_pushed(p, 1, 80);
    assert_event_text(p, 8 * SECOND,
                      "rank 1 (host 'b', pid 4711) has been silent for 6.0 s, at step 11");
}

TEST(what_is_not_known_is_left_out)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(3);
    const tn_beat_note beat = {.state = TN_PEER_TRAINING};
    tn_failure_detector_name(p, 1, "", 0);
    tn_failure_detector_name(p, 2, "c", 0);
    assert_lost_text(p, 1, 15 * SECOND, "rank 1 was not heard of in 15.0 s");
    tn_failure_detector_received(p, 1, NULL, 310, SECOND);
    assert_lost_text(p, 1, 2 * SECOND, "rank 1 was last heard of 1.0 s ago");
    assert_lost_text(p, 1, 0, "rank 1 was last heard of 0.0 s ago");
    assert_lost_text(p, 2, 0, "rank 2 (host 'c') was not heard of in 0.0 s");
    tn_failure_detector_received(p, 1, &beat, 0, SECOND);
    tn_failure_detector_received(p, 1, &beat, 0, 31 * SECOND);
    assert_event_text(p, 31 * SECOND, "rank 1 has stood at step 0 for 30.0 s");
}

TEST(c8_hosts_are_cut_and_made_printable)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(2);
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    tn_failure_detector_name(p, 1, "b\nrank 0\x7f \xc3\xa4", 1);
    assert_lost_text(p, 1, 0,
                     "rank 1 (host 'b?rank 0? ?"
                     "?', pid 1) was not heard of in 0.0 s");
    tn_failure_detector_name(p, 1, longest, 0);
    char expected[200];
    (void)snprintf(expected, sizeof expected, "rank 1 (host '%.63s') was not heard of in 0.0 s",
                   longest);
    assert_lost_text(p, 1, 0, expected);
}

TEST(the_table_has_a_line_for_each_rank_and_one_of_sums)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(6);
    tn_beat_note beat = {.state = TN_PEER_TRAINING,
                         .records = 1000,
                         .rss_bytes = UINT64_C(1200) * 1000 * 1000,
                         .rows_per_s = 12345,
                         .waiting = .25};
    tn_failure_detector_received(p, 0, &beat, 310, SECOND);
    beat.waits_for = 6;
    beat.rows_per_s = 655;
    beat.waiting = .5;
    tn_failure_detector_received(p, 1, &beat, 311, SECOND);
    beat.bytes_out = 3500000;
    beat.bytes_in = 250000;
    tn_failure_detector_received(p, 1, &beat, 312, 2 * SECOND);
    beat.state = TN_PEER_WAITING;
    beat.waits_for = 1;
    tn_failure_detector_received(p, 2, &beat, 0, SECOND);
    tn_failure_detector_received(p, 5, &beat, 9, SECOND);
    tn_failure_event event;
    tn_failure_detector_received(p, 1, NULL, 0, 9 * SECOND);
    tn_failure_detector_received(p, 2, NULL, 0, 9 * SECOND);
    tn_failure_detector_received(p, 3, NULL, 0, 9 * SECOND);
    while (tn_failure_detector_poll(p, 9 * SECOND, &event)) {
        assert_int_equal(event.kind, TN_FAILURE_SUSPECT);
        assert_true(event.rank == 4 || event.rank == 5);
    }
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_failure_detector_table(p, 9 * SECOND, &text);
    assert_string_equal(
        tn_text_str(&text),
        "rank  host                  step    rows/s  waiting  MB/s out      in    RSS MB  state\n"
        "   0  a                      310     12345      25%       0.0     0.0      1200  "
        "training\n"
        "   1  b                      312       655      50%       3.5     0.2      1200  "
        "training, "
        "waits for rank 5\n"
        "   2  c                        0       655      50%       0.0     0.0      1200  waiting "
        "for rank 0\n"
        "   3  d                        0         0       0%       0.0     0.0         0  no "
        "heartbeat yet\n"
        "   4  e                        0         0       0%       0.0     0.0         0  silent "
        "for 9.0 s\n"
        "   5  f                        9       655      50%       0.0     0.0      1200  silent "
        "for 8.0 s\n"
        " all                                 13655      42%       3.5              3600  3 of 6 "
        "at "
        "work\n");
}

TEST(the_table_tells_who_is_lost_and_who_has_not_beaten_yet)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(3);
    tn_failure_event event;
    tn_failure_detector_received(p, 2, NULL, 0, 15 * SECOND);
    while (tn_failure_detector_poll(p, 15 * SECOND, &event)) {
        assert_int_equal(event.rank, 1);
    }
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_failure_detector_table(p, 15 * SECOND, &text);
    assert_null(strstr(text.data, "\n   0")); /* nothing is known of itself */
    assert_non_null(strstr(text.data, "  lost\n"));
    assert_non_null(strstr(text.data, "  no heartbeat yet\n"));
    assert_non_null(strstr(text.data, "  0 of 3 at work\n"));
}

TEST(every_state_has_a_name)
{
    const char *names[TN_PEER_STATES] = {"loading", "training",   "waiting", "drained",
                                         "saving",  "evaluating", "ending"};
    for (uint64_t s = 0; s < TN_PEER_STATES; s++) {
        tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(1);
        const tn_beat_note beat = {.state = s};
        tn_failure_detector_received(p, 0, &beat, 1, 0);
        tn_text text CLEANUP(tn_text_done) = {0};
        char end[40];
        tn_failure_detector_table(p, 0, &text);
        (void)snprintf(end, sizeof end, "0  %s\n all", names[s]);
        assert_non_null(strstr(text.data, end));
    }
}

/* The table's last line: rows per second, share of waiting, MB/s sent, who is at work. */
static void assert_totals(const tn_failure_detector *p, uint64_t now, double rows, double waiting,
                          double mb_per_s, const char *at_work)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    char line[200];
    tn_failure_detector_table(p, now, &text);
    (void)snprintf(line, sizeof line, " all  %-26s%10.0f%8.0f%%%10.1f%18.0f  %s at work\n", "",
                   rows, waiting * 100, mb_per_s, 0., at_work);
    assert_string_equal(strstr(text.data, " all "), line);
    assert_null(strstr(text.data, "waits"));
}

TEST(m4_sums_leave_out_who_is_silent_and_believe_no_absurd_figure)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(4);
    assert_totals(p, 0, 0, 0, 0, "0 of 4");
    tn_beat_note note = {.rows_per_s = 100, .waiting = .5};
    tn_failure_detector_received(p, 0, &note, 1, SECOND);
    note.rows_per_s = -1e300;
    note.waiting = 1e300;
    note.waits_for = UINT64_MAX;
    tn_failure_detector_received(p, 1, &note, 1, SECOND);
    note.rows_per_s = 1e300;
    note.waiting = -1;
    tn_failure_detector_received(p, 2, &note, 1, SECOND);
    assert_totals(p, SECOND, 1e12 + 100, .5, 0, "3 of 4");
    tn_failure_event event;
    tn_failure_detector_received(p, 1, NULL, 0, 6 * SECOND);
    while (tn_failure_detector_poll(p, 6 * SECOND, &event)) {
    }
    assert_totals(p, 6 * SECOND, 100, .75, 0, "2 of 4"); /* rank 2 is silent */
}

TEST(rates_of_bytes_are_of_half_a_second_at_least)
{
    tn_failure_detector *p FREED(tn_failure_detector_free) = open_pulse(1);
    tn_beat_note note = {.bytes_out = 1000000};
    tn_failure_detector_received(p, 0, &note, 0, 5 * SECOND);
    assert_totals(p, 0, 0, 0, 0, "1 of 1"); /* since when is not known */
    note.bytes_out = 3000000;
    tn_failure_detector_received(p, 0, &note, 0, 6 * SECOND);
    assert_totals(p, 0, 0, 0, 2, "1 of 1");
    note.bytes_out = 900000000;
    tn_failure_detector_received(p, 0, &note, 0, 6 * SECOND); /* two at the same moment */
    tn_failure_detector_received(p, 0, &note, 0, 6 * SECOND + 499 * MS);
    assert_totals(p, 0, 0, 0, 2, "1 of 1");
    note.bytes_out = 4500000;
    tn_failure_detector_received(p, 0, &note, 0, 6 * SECOND + 500 * MS);
    assert_totals(p, 0, 0, 0, 3, "1 of 1"); /* 1.5 MB in half a second */
    note.bytes_out = 0;                     /* its counts went back */
    tn_failure_detector_received(p, 0, &note, 0, 8 * SECOND);
    assert_totals(p, 0, 0, 0, 0, "1 of 1");
}
