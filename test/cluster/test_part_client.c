/* test_part_client.c - a reader's parts asked for by notes: answered late, twice, wrongly, or not.
 */
#include "cluster/train/part_client.h"

#include "base/core/clock.h"
#include "io/read/blocks.h"
#include "io/read/reader.h"
#include "support/test.h"
#include "train/config/run.h"
#include "train/golden.h"
#include "train/step/model_plan.h"

#include <pthread.h>
#include <time.h>

enum { EPOCH = 1 };

/* Rank 0, as far as notes go, and a reader whose parts they are. */
typedef struct rig {
    tn_arena *arena;
    const tn_model_plan *plan;
    tn_part_client *d;
    tn_group_parts on;
    tn_reader *reader;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t asked;
    tn_ask_note note; /* the last one, without lists */
    uint32_t n_done;  /* parts in it .. */
    uint64_t done[4]; /* .. and the first of them */
} rig;

static void take_ask(void *arg, const tn_ask_note *note)
{
    rig *r = arg;
    (void)pthread_mutex_lock(&r->lock);
    r->note = *note;
    r->n_done = (uint32_t)note->done.part.n;
    for (uint32_t i = 0; i < r->n_done && i < 4; i++) {
        r->done[i] = note->done.part.at[i];
    }
    (void)pthread_cond_broadcast(&r->asked);
    (void)pthread_mutex_unlock(&r->lock);
}

static void open_reader(rig *r, tn_status wanted, tn_error *err)
{
    const tn_reader_opts opts = {.paths = r->plan->run->data.train,
                                 .batch_rows = 7,
                                 .training = true,
                                 .seed = 42,
                                 .from = {.epoch = EPOCH},
                                 .dealer = tn_part_client_dealer(r->d),
                                 .prefetch = 2};
    assert_int_equal(tn_reader_open(&r->reader, r->plan->schema, &opts, err), wanted);
}

static void open_rig(rig *r, uint64_t again_ns)
{
    *r = (rig){.arena = tn_arena_new(1 << 16)};
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->asked, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    r->plan =
        golden_plan(r->arena, "deepfm_bn", (const char *const[]){"data.part_bytes=2KiB", NULL});
    const tn_part_client_opts opts = {
        .epoch = EPOCH, .again_ns = again_ns, .ask = take_ask, .arg = r};
    r->d = tn_part_client_open(&opts);
    tn_part_client_bind(r->d, &r->on);
    open_reader(r, TN_OK, NULL);
}

static void close_rig(rig *r)
{
    tn_reader_close(r->reader);
    tn_part_client_close(r->d);
    tn_part_client_close(NULL);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->asked);
    tn_arena_free(r->arena);
}

/* The note of that number. */
static tn_ask_note await_note(rig *r, uint64_t number)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 60;
    (void)pthread_mutex_lock(&r->lock);
    while (r->note.number < number) {
        assert_int_equal(pthread_cond_timedwait(&r->asked, &r->lock, &until), 0);
    }
    const tn_ask_note note = r->note;
    (void)pthread_mutex_unlock(&r->lock);
    assert_int_equal(note.number, number);
    assert_int_equal(note.epoch, EPOCH);
    return note;
}

static void answer(rig *r, const tn_part_note *note)
{
    r->on.answer(r->on.arg, note);
}

static tn_part_note part_of(const rig *r, uint32_t part, const tn_ask_note *ask)
{
    const tn_part_info info = tn_reader_part(r->reader, part);
    return (tn_part_note){.answer = TN_PART_IS,
                          .epoch = EPOCH,
                          .part = part,
                          .source = info.source,
                          .begin = info.first,
                          .end = info.end,
                          .id = ask->id,
                          .number = ask->number};
}

static tn_part_note word_of(uint64_t what, const tn_ask_note *ask)
{
    return (tn_part_note){.answer = what, .epoch = EPOCH, .id = ask->id, .number = ask->number};
}

/* Learns until the reader waits for its next part; returns how many records. */
static uint64_t learn_all(rig *r)
{
    uint64_t records = 0;
    uint32_t rows = 7;
    while (rows == 7) { /* the last batch is short */
        tn_batch *batch = NULL;
        assert_int_equal(tn_reader_next(r->reader, &batch, NULL), TN_OK);
        rows = batch->rows;
        records = batch->progress.records;
        tn_part_client_note(r->d, &batch->progress);
        tn_reader_recycle(r->reader, batch);
    }
    return records;
}

TEST(what_is_over_is_told_and_the_end_comes_by_itself)
{
    rig r CLEANUP(close_rig);
    tn_batch *batch = NULL;
    open_rig(&r, UINT64_MAX / 4);
    tn_ask_note ask = await_note(&r, 1);
    assert_int_equal(ask.id, 1);
    tn_part_note note = part_of(&r, 2, &ask);
    answer(&r, &note);
    ask = await_note(&r, 2);
    assert_int_equal(ask.id, 2);
    assert_int_equal(r.n_done, 0);
    note = word_of(TN_PART_WAIT, &ask);
    answer(&r, &note);
    const uint64_t records = learn_all(&r);
    assert_true(records > 0);
    ask = await_note(&r, 3); /* the part is over; the wait goes on */
    assert_int_equal(ask.id, 2);
    assert_int_equal(r.n_done, 1);
    assert_int_equal(r.done[0], 2);
    assert_false(tn_part_client_settle(r.d, 1));
    note = word_of(TN_PART_WAIT, &ask);
    answer(&r, &note);
    assert_true(tn_part_client_settle(r.d, tn_clock_ns() + 1));
    assert_true(tn_part_client_records(r.d) >= records);
    ask.number = 0; /* by itself */
    note = word_of(TN_PART_NO_MORE, &ask);
    answer(&r, &note);
    assert_int_equal(tn_reader_next(r.reader, &batch, NULL), TN_END);
}

TEST(who_waits_asks_again_under_the_same_id)
{
    rig r;
    open_rig(&r, 1000000);
    for (uint64_t i = 1; i < 5; i++) {
        const tn_ask_note ask = await_note(&r, i);
        assert_int_equal(ask.id, 1);
        const tn_part_note wait = word_of(TN_PART_WAIT, &ask);
        answer(&r, &wait);
    }
    close_rig(&r); /* in the middle of it */
}

TEST(answers_to_something_else_mean_nothing)
{
    rig r CLEANUP(close_rig);
    open_rig(&r, UINT64_MAX / 4);
    const tn_ask_note ask = await_note(&r, 1);
    tn_part_note wrong = part_of(&r, 3, &ask);
    wrong.epoch++;
    answer(&r, &wrong);
    wrong.epoch--;
    wrong.id++;
    wrong.number = 0;
    answer(&r, &wrong);
    tn_part_note good = part_of(&r, 0, &ask);
    answer(&r, &good);
    good.part = 1; /* it is answered */
    answer(&r, &good);
    const tn_ask_note second = await_note(&r, 2);
    const tn_part_note over = word_of(TN_PART_NO_MORE, &second);
    answer(&r, &over);
    tn_batch *batch = NULL;
    while (tn_reader_next(r.reader, &batch, NULL) == TN_OK) {
        assert_int_equal(batch->progress.part, 0);
        tn_part_client_note(r.d, &batch->progress);
        tn_reader_recycle(r.reader, batch);
    }
    assert_int_equal(tn_reader_dealt(r.reader, 0).place, 0);
}

TEST(a_part_that_this_rank_does_not_have_is_an_error)
{
    for (uint32_t i = 0; i < 3; i++) {
        rig r CLEANUP(close_rig);
        tn_error err = {0};
        tn_batch *batch = NULL;
        open_rig(&r, UINT64_MAX / 4);
        const tn_ask_note ask = await_note(&r, 1);
        tn_part_note note = part_of(&r, 0, &ask);
        note.part = i == 0 ? tn_reader_n_parts(r.reader) : 0;
        note.end += i == 1;
        note.part += i == 2 ? UINT64_C(1) << 32 : 0;
        answer(&r, &note);
        assert_int_equal(tn_reader_next(r.reader, &batch, &err), TN_E_DATA);
        assert_memory_equal(err.text, "rank 0 deals part ", 18);
        assert_non_null(strstr(err.text, "all ranks must see the same files"));
    }
}

/* What a reader was dealt and has not learned goes back; what comes while there is none is the next
 * one's. */
TEST(another_reader_goes_on_where_one_gave_back)
{
    rig r CLEANUP(close_rig);
    tn_batch *batch = NULL;
    tn_note_parts parts;
    open_rig(&r, UINT64_MAX / 4);
    tn_ask_note ask = await_note(&r, 1);
    tn_part_note note = part_of(&r, 2, &ask);
    note.attempt = 4;
    answer(&r, &note);
    assert_int_equal(tn_reader_next(r.reader, &batch, NULL), TN_OK);
    tn_part_client_note(r.d, &batch->progress);
    tn_reader_recycle(r.reader, batch);
    ask = await_note(&r, 2);
    const tn_part_note later = part_of(&r, 1, &ask);
    tn_reader_close(r.reader);
    answer(&r, &later);
    tn_part_client_held(r.d, r.arena, &parts);
    assert_int_equal(parts.part.n, 1);
    tn_part_client_give_back(r.d, r.arena, &parts);
    assert_true(parts.part.n == 1 && parts.part.at[0] == 2 && parts.attempt.at[0] == 4);
    assert_true(parts.position.at[0] >= 7);
    tn_part_client_held(r.d, r.arena, &parts);
    assert_int_equal(parts.part.n, 0);
    open_reader(&r, TN_OK, NULL);
    ask = await_note(&r, 3);
    assert_int_equal(ask.id, 3);
    note = word_of(TN_PART_NO_MORE, &ask);
    answer(&r, &note);
    while (tn_reader_next(r.reader, &batch, NULL) == TN_OK) {
        assert_int_equal(batch->progress.part, 0);
        tn_part_client_note(r.d, &batch->progress);
        tn_reader_recycle(r.reader, batch);
    }
    assert_int_equal(tn_reader_dealt(r.reader, 0).place, 1);
    ask = await_note(&r, 4);
    assert_int_equal(ask.id, 0);
    assert_int_equal(r.n_done, 1);
    assert_int_equal(r.done[0], 1);
}
