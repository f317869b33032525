/* test_score_merge.c - whoever scored them, rows come in the order of the data. */
#include "cluster/train/score_exchange.h"

#include "base/math/rng.h"
#include "cluster/scoredkit.h"
#include "support/test.h"

enum { ROWS = 600, RANKS_MAX = 5 };

/* Runs of rows are dealt to ranks, as parts are. */
typedef struct world {
    scoredkit kit;
    tn_scored_form form;
    const tn_scores *all;
    uint8_t rank_of[ROWS];
    tn_text of[RANKS_MAX]; /* what is left of every other rank */
    uint64_t stream, drawn;
    uint32_t seen;  /* rows that were taken */
    uint32_t calls; /* of take and more, until .. */
    uint32_t fails_at;
} world;

static uint64_t draw(world *w, uint64_t below)
{
    return tn_below(tn_draw(w->stream, w->drawn++), below);
}

static tn_status take(void *arg, const tn_scores *scores, tn_error *err)
{
    world *w = arg;
    if (++w->calls == w->fails_at) {
        return tn_fail(err, TN_E_IO, "disk full");
    }
    assert_true(scores->batch->rows > 0);
    for (uint32_t row = 0; row < scores->batch->rows; row++) {
        assert_true(w->seen < ROWS);
        scoredkit_same(&w->form, scores, row, w->all, w->seen++);
    }
    return TN_OK;
}

static tn_status more(void *arg, uint32_t other, tn_text *out, tn_error *err)
{
    world *w = arg;
    tn_text *left = &w->of[other + 1];
    if (++w->calls == w->fails_at) {
        return tn_fail(err, TN_E_PEER, "rank %u is lost", other + 1);
    }
    const size_t size = tn_scored_fitting(tn_text_str(left), left->size, (size_t)draw(w, 3000) + 1);
    if (size > 0) {
        tn_text_add(out, left->data, size);
        memmove(left->data, left->data + size, left->size - size);
        left->size -= size;
    }
    return TN_OK;
}

/* Rows from..to - 1 of one rank, if it is another one; rank 0 gets its batches when they are due.
 */
static void deal(world *w, uint32_t ranks)
{
    for (uint32_t from = 0; from < ROWS;) {
        const uint32_t size = 1 + (uint32_t)draw(w, 60);
        const uint32_t n = size < ROWS - from ? size : ROWS - from;
        const uint8_t rank = (uint8_t)draw(w, ranks);
        memset(w->rank_of + from, rank, n);
        if (rank > 0) {
            const tn_scores *part = scoredkit_part(&w->kit, w->all, from, n);
            assert_int_equal(tn_scored_add(&w->form, part, &w->of[rank], NULL), TN_OK);
        }
        from += n;
    }
}

static void open_world(world *w, uint64_t seed, uint32_t ranks)
{
    scoredkit_open(&w->kit);
    w->form = tn_scored_form_of(w->kit.run, w->kit.schema, true, w->kit.arena);
    w->stream = tn_stream2(seed, TN_RNG_GENERATE, 3);
    w->all = scoredkit_draw(&w->kit, seed, ROWS);
    deal(w, ranks);
}

static void close_world(world *w)
{
    for (uint32_t r = 0; r < RANKS_MAX; r++) {
        tn_text_done(&w->of[r]);
    }
    scoredkit_close(&w->kit);
}

static tn_score_merge *merge_of(world *w, uint32_t ranks)
{
    const tn_score_merge_opts opts = {
        .form = w->form, .others = ranks - 1, .more = more, .take = take, .arg = w};
    return tn_score_merge_new(&opts, w->kit.arena);
}

/* Batches of rank 0 hold rows of several runs, as readers fill them. */
static tn_status run(world *w, tn_score_merge *m, tn_error *err)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_scored_rows rows = {.form = &w->form};
    tn_status status = TN_OK;
    for (uint32_t from = 0; from < ROWS && status == TN_OK;) {
        const uint32_t most = 1 + (uint32_t)draw(w, 100);
        tn_text_clear(&bytes);
        for (uint32_t n = 0; from < ROWS && n < most; from++) {
            if (w->rank_of[from] == 0) {
                const tn_scores *row = scoredkit_part(&w->kit, w->all, from, 1);
                assert_int_equal(tn_scored_add(&w->form, row, &bytes, NULL), TN_OK);
                n++;
            }
        }
        assert_int_equal(tn_scored_read(&rows, tn_text_str(&bytes), bytes.size, NULL), TN_OK);
        status = tn_score_merge_own(m, &rows.scores, err);
    }
    tn_scored_rows_done(&rows);
    return status == TN_OK ? tn_score_merge_end(m, err) : status;
}

TEST(rows_of_all_ranks_come_in_the_order_of_the_data)
{
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            world w CLEANUP(close_world) = {0};
            open_world(&w, 100 + 10 * ranks + seed, ranks);
            tn_score_merge *m = merge_of(&w, ranks);
            assert_int_equal(run(&w, m, NULL), TN_OK);
            assert_int_equal(w.seen, ROWS);
            tn_score_merge_done(m);
        }
    }
}

TEST(a_rank_may_have_no_rows)
{
    world w CLEANUP(close_world) = {0};
    open_world(&w, 7, 1); /* rank 0 has them all, 1 and 2 none */
    tn_score_merge *m = merge_of(&w, 3);
    assert_int_equal(run(&w, m, NULL), TN_OK);
    assert_int_equal(w.seen, ROWS);
    tn_score_merge_done(m);
    w.seen = 0; /* and the other way round */
    memset(w.rank_of, 2, sizeof w.rank_of);
    assert_int_equal(tn_scored_add(&w.form, w.all, &w.of[2], NULL), TN_OK);
    m = merge_of(&w, 3);
    assert_int_equal(tn_score_merge_end(m, NULL), TN_OK);
    assert_int_equal(w.seen, ROWS);
    tn_score_merge_done(m);
}

TEST(every_failure_is_handed_on)
{
    uint32_t failures = 0;
    for (uint32_t at = 1; at < 2000; at++) {
        world w = {.fails_at = at};
        tn_error err = {0};
        open_world(&w, 9, 3);
        tn_score_merge *m = merge_of(&w, 3);
        const tn_status status = run(&w, m, &err);
        const bool failed = w.calls >= at;
        assert_int_equal(status != TN_OK, failed);
        assert_true(!failed || strcmp(err.text, "disk full") == 0 ||
                    strstr(err.text, "is lost") != NULL);
        tn_score_merge_done(m);
        close_world(&w);
        failures += failed;
        if (!failed) {
            break;
        }
    }
    assert_true(failures > 20);
}

TEST(rows_of_a_peer_must_be_in_order)
{
    world w CLEANUP(close_world) = {0};
    tn_error err = {0};
    open_world(&w, 11, 1);
    const tn_scores *late = scoredkit_part(&w.kit, w.all, 30, 20);
    const tn_scores *early = scoredkit_part(&w.kit, w.all, 10, 20);
    assert_int_equal(tn_scored_add(&w.form, late, &w.of[1], NULL), TN_OK);
    assert_int_equal(tn_scored_add(&w.form, early, &w.of[1], NULL), TN_OK);
    w.seen = 30;
    tn_score_merge *m = merge_of(&w, 2);
    assert_int_equal(tn_score_merge_end(m, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 1 sends scored rows out of order");
    tn_score_merge_done(m);
    tn_text_clear(&w.of[1]);
}

static tn_status more_noise(void *arg, uint32_t other, tn_text *out, tn_error *err)
{
    (void)arg;
    (void)other;
    (void)err;
    tn_text_adds(out, "noise");
    return TN_OK;
}

TEST(bytes_that_are_no_rows_end_it)
{
    world w CLEANUP(close_world) = {0};
    open_world(&w, 13, 1);
    const tn_score_merge_opts opts = {
        .form = w.form, .others = 1, .more = more_noise, .take = take, .arg = &w};
    tn_score_merge *m = tn_score_merge_new(&opts, w.kit.arena);
    assert_int_equal(tn_score_merge_end(m, NULL), TN_E_PEER);
    tn_score_merge_done(m);
}
