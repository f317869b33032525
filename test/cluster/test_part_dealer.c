/* test_part_dealer.c - readers that share an epoch and go on where others left it: every record
 * once. */
#include "cluster/train/part_dealer.h"

#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "cluster/crowd.h"
#include "cluster/train/part_progress.h"
#include "io/read/reader.h"
#include "support/test.h"
#include "train/config/run.h"
#include "train/golden.h"
#include "train/step/model_plan.h"

#include <time.h>

CLOSER(tn_reader_close);

enum { BYTES_MAX = 1 << 15, ALL = 1 << 20, READERS_MAX = 3 };

/* An epoch, and how often each record of it was learned: by its first byte. */
typedef struct epoch {
    tn_arena *arena;
    const tn_model_plan *plan;
    const tn_epoch_parts *map;
    uint8_t all[BYTES_MAX]; /* what one reader alone learns */
    uint8_t learned[BYTES_MAX];
} epoch;

static tn_reader_opts opts_of(const epoch *e, const tn_dealer *dealer)
{
    return (tn_reader_opts){.paths = e->plan->run->data.train,
                            .batch_rows = 7,
                            .training = true,
                            .want_ids = true,
                            .seed = 42,
                            .from = {.epoch = 1},
                            .dealer = dealer,
                            .prefetch = 2};
}

static tn_reader *open_reader(const epoch *e, const tn_dealer *dealer)
{
    tn_reader *reader = NULL;
    tn_reader_opts opts = opts_of(e, dealer);
    tn_error err = {0};
    assert_ok(tn_reader_open(&reader, e->plan->schema, &opts, &err), err.text);
    return reader;
}

static void count(uint8_t learned[BYTES_MAX], const tn_batch *batch)
{
    for (uint32_t i = 0; i < batch->rows; i++) {
        assert_true(batch->source_at[i] < BYTES_MAX);
        learned[batch->source_at[i]]++;
    }
}

static void open_epoch(epoch *e, const char *part_bytes)
{
    *e = (epoch){.arena = tn_arena_new(1 << 16)};
    e->plan = golden_plan(e->arena, "deepfm_bn",
                          (const char *const[]){part_bytes, "data.shuffle=20", NULL});
    tn_reader *reader FREED(tn_reader_close) = open_reader(e, NULL);
    e->map = tn_epoch_parts_of(reader, NULL, e->arena);
    tn_batch *batch = NULL;
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        count(e->all, batch);
        tn_reader_recycle(reader, batch);
    }
}

/* ---- another rank ---- */

/* What a rank beside 0 does, but for the network. */
typedef struct other {
    tn_part_dealer *d;
    uint32_t rank;
    uint64_t ask;
    tn_part_progress book; /* under the lock of the ledger */
} other;

static tn_status ask_once(other *o, tn_dealt *out, bool *now, tn_error *err)
{
    tn_ledger_deal deal;
    tn_ledger *ledger = tn_part_dealer_lock(o->d);
    tn_ledger_answer answer = tn_ledger_ask(ledger, o->rank, 1, o->ask, tn_clock_ns(), &deal);
    tn_status status = answer == TN_LEDGER_NO_MORE ? TN_END : TN_OK;
    o->ask += answer != TN_LEDGER_WAIT;
    *now = answer == TN_LEDGER_PART;
    if (*now) {
        status = tn_part_progress_add(&o->book, &deal, err);
        *out = (tn_dealt){deal.part, deal.position};
    }
    tn_part_dealer_unlock(o->d);
    return status;
}

static tn_status ask(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                     tn_error *err)
{
    const struct timespec tick = {.tv_nsec = 1000000};
    *now = false;
    for (;;) {
        TN_TRY(ask_once(arg, out, now, err));
        if (*now || !wait) {
            return TN_OK;
        }
        if (atomic_load(stop)) {
            return TN_E_STOPPED;
        }
        (void)nanosleep(&tick, NULL); /* as a network would */
    }
}

/* Locked. */
static void finish(other *o, tn_ledger *ledger)
{
    const tn_ledger_held *held = NULL;
    while (tn_part_progress_over(&o->book, &held) > 0) {
        assert_true(tn_ledger_done(ledger, o->rank, held->part, held->attempt, tn_clock_ns()));
        tn_part_progress_settle(&o->book, 1);
    }
    uint32_t n = tn_part_progress_held(&o->book, &held);
    (void)tn_ledger_claim(ledger, o->rank, held, n > 0, tn_clock_ns());
}

static void flushed(void *arg, uint32_t parts, uint64_t batches, uint64_t records)
{
    other *o = arg;
    tn_ledger *ledger = tn_part_dealer_lock(o->d);
    tn_part_progress_flushed(&o->book, parts, batches, records);
    finish(o, ledger);
    tn_part_dealer_unlock(o->d);
}

static void note(other *o, const tn_progress *at)
{
    tn_ledger *ledger = tn_part_dealer_lock(o->d);
    tn_part_progress_note(&o->book, at);
    finish(o, ledger);
    tn_part_dealer_unlock(o->d);
}

/* ---- readers at work ---- */

typedef struct work {
    epoch *e;
    crowd *others;
    tn_part_dealer *d;
    other other; /* rank 0: not used */
    uint32_t rank, batches;
    uint8_t learned[BYTES_MAX];
    bool ended;
} work;

/* Learns so many batches, or all there are, or until another one stands still. */
static tn_status learn(void *arg, tn_error *err)
{
    work *k = arg;
    const tn_dealer dealer = {.next = ask, .arg = &k->other, .flushed = flushed};
    tn_reader *reader FREED(tn_reader_close) =
        open_reader(k->e, k->rank == 0 ? tn_part_dealer_dealer(k->d) : &dealer);
    crowd_enter(k->others, k->rank, reader);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < k->batches && status == TN_OK; i++) {
        tn_batch *batch = NULL;
        status = tn_reader_next(reader, &batch, err);
        if (status == TN_OK) {
            count(k->learned, batch);
            if (k->rank == 0) {
                tn_part_dealer_note(k->d, &batch->progress, tn_clock_ns());
            } else {
                note(&k->other, &batch->progress);
            }
            tn_reader_recycle(reader, batch);
        }
    }
    k->ended = status == TN_END;
    crowd_leave(k->others, k->rank, status == TN_OK);
    return status == TN_END || status == TN_E_STOPPED ? TN_OK : status;
}

/* `ranks` readers at once from where `stand` is, of batches[] each; how the epoch stands then is
 * left in *stand. Returns whether it is over. */
static bool run(epoch *e, uint32_t ranks, tn_ledger_mode mode, const uint32_t *batches,
                tn_epoch_position *stand)
{
    static work k[READERS_MAX];
    crowd all = CROWD_OF(ranks);
    tn_part_dealer *d = NULL;
    tn_thread *thread[READERS_MAX];
    tn_error err = {0};
    const tn_part_dealer_opts opts = {
        .epoch = 1, .ranks = ranks, .mode = mode, .map = e->map, .stand = stand};
    assert_ok(tn_part_dealer_open(&d, &opts, &err), err.text);
    for (uint32_t r = 0; r < ranks; r++) {
        k[r] = (work){.e = e, .others = &all, .d = d, .rank = r, .batches = batches[r]};
        k[r].other = (other){.d = d, .rank = r, .ask = 1};
        tn_part_progress_init(&k[r].other.book);
        assert_int_equal(tn_thread_start(&thread[r], "learn", learn, &k[r], NULL), TN_OK);
    }
    bool over = true;
    crowd_watch(&all);
    for (uint32_t r = 0; r < ranks; r++) {
        assert_ok(tn_thread_join(thread[r], &err), err.text);
        for (uint32_t i = 0; i < BYTES_MAX; i++) {
            e->learned[i] = (uint8_t)(e->learned[i] + k[r].learned[i]);
        }
        over = over && k[r].ended;
        tn_part_progress_done(&k[r].other.book);
    }
    tn_epoch_position m = {.shared = true};
    m.part = tn_part_dealer_parts(d, e->arena, &m.n_parts, tn_clock_ns());
    tn_epoch_position_done(stand);
    assert_int_equal(tn_epoch_position_init(stand, &m, NULL), TN_OK);
    tn_part_dealer_close(d);
    return over;
}

static void assert_each_once(const epoch *e)
{
    for (uint32_t i = 0; i < BYTES_MAX; i++) {
        fail_if(e->learned[i] != e->all[i], "the record at byte %u was learned %u times", i,
                e->learned[i]);
    }
}

static const char small[] = "data.part_bytes=1KiB";

TEST(readers_that_share_an_epoch_learn_each_record_once)
{
    for (uint32_t ranks = 1; ranks <= READERS_MAX; ranks++) {
        for (uint32_t mode = 0; mode < 2; mode++) {
            epoch e;
            tn_epoch_position stand = {0};
            const uint32_t all[] = {ALL, ALL, ALL};
            open_epoch(&e, small);
            assert_in_range(e.map->n_parts, 10, 100);
            assert_true(run(&e, ranks, (tn_ledger_mode)mode, all, &stand));
            assert_each_once(&e);
            assert_int_equal(stand.n_parts, 1); /* all done, merged */
            assert_int_equal(stand.part[0].state, TN_PART_DONE);
            tn_epoch_position_done(&stand);
            tn_arena_free(e.arena);
        }
    }
}

/* Parts of every state, then another number of readers, and so on. */
TEST(any_number_of_readers_goes_on_where_others_left_an_epoch)
{
    for (uint32_t mode = 0; mode < 2; mode++) {
        epoch e;
        tn_epoch_position stand = {0};
        open_epoch(&e, small);
        const uint32_t some[] = {5, 3, 1};
        const uint32_t all[] = {ALL, ALL, ALL};
        assert_false(run(&e, 2, (tn_ledger_mode)mode, some, &stand));
        assert_true(stand.n_parts > 0 && stand.shared);
        uint32_t states[3] = {0};
        for (uint32_t i = 0; i < stand.n_parts; i++) {
            states[stand.part[i].state]++;
        }
        if (mode == TN_LEDGER_BY_RULE) { /* else it is a matter of who was faster */
            assert_true(states[TN_PART_DONE] > 0);
            assert_true(states[TN_PART_FREE] + states[TN_PART_DEALT] > 0); /* readers look ahead */
        }
        assert_false(run(&e, 1, TN_LEDGER_BY_RULE, some, &stand));
        assert_false(run(&e, 3, (tn_ledger_mode)mode, some, &stand));
        assert_true(run(&e, 1, TN_LEDGER_BY_RULE, all, &stand));
        assert_each_once(&e);
        tn_epoch_position_done(&stand);
        tn_arena_free(e.arena);
    }
}

/* Where one reader without a dealer stands after so many batches. */
static void read_alone(epoch *e, uint32_t batches, tn_epoch_position *stand)
{
    tn_reader *reader = open_reader(e, NULL);
    tn_progress at = {0};
    for (uint32_t i = 0; i < batches; i++) {
        tn_batch *batch = NULL;
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        count(e->learned, batch);
        at = batch->progress;
        tn_reader_recycle(reader, batch);
    }
    tn_reader_close(reader);
    tn_epoch_position m = {0};
    m.part = tn_epoch_parts_manifest(e->map, &at, 1, e->arena, &m.n_parts);
    assert_int_equal(tn_epoch_position_init(stand, &m, NULL), TN_OK);
}

/* The same, but each rank deals itself and is only followed. *stand is rank 0's. */
static void run_apart(epoch *e, uint32_t ranks, const uint32_t *batches, tn_epoch_position *stand)
{
    tn_part_dealer *d[READERS_MAX] = {NULL};
    tn_progress at[READERS_MAX] = {0};
    tn_error err = {0};
    for (uint32_t r = 0; r < ranks; r++) {
        const tn_part_dealer_opts opts = {
            .epoch = 1, .ranks = ranks, .rank = r, .map = e->map, .stand = stand};
        assert_int_equal(tn_part_dealer_open(&d[r], &opts, NULL), TN_OK);
        tn_reader *reader FREED(tn_reader_close) = open_reader(e, tn_part_dealer_dealer(d[r]));
        tn_batch *batch = NULL;
        for (uint32_t i = 0; i < batches[r]; i++) {
            if (tn_reader_next(reader, &batch, NULL) != TN_OK) {
                break;
            }
            count(e->learned, batch);
            tn_part_dealer_note(d[r], &batch->progress, 1);
            at[r] = batch->progress;
            tn_reader_recycle(reader, batch);
        }
    }
    for (uint32_t r = 1; r < ranks; r++) {
        assert_int_equal(tn_part_dealer_follow(d[0], r, &(tn_progress){0}, 1, &err), TN_OK);
        assert_int_equal(tn_part_dealer_follow(d[0], r, &at[r], 1, &err), TN_OK);
        assert_int_equal(tn_part_dealer_follow(d[0], r, &at[r], 2, &err), TN_OK);
        const tn_progress beyond = {.part = 1000, .position = 1};
        assert_int_equal(tn_part_dealer_follow(d[0], r, &beyond, 2, &err), TN_E_PEER);
        assert_non_null(strstr(err.text, "reads part 1000 of its own"));
        if (at[r].part > 0) {
            const tn_progress back = {.position = 1};
            assert_int_equal(tn_part_dealer_follow(d[0], r, &back, 2, &err), TN_E_PEER);
            assert_non_null(strstr(err.text, "went back from part"));
        }
    }
    tn_epoch_position m = {.shared = true};
    m.part = tn_part_dealer_parts(d[0], e->arena, &m.n_parts, 3);
    tn_epoch_position_done(stand);
    assert_int_equal(tn_epoch_position_init(stand, &m, NULL), TN_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        tn_part_dealer_close(d[r]);
    }
}

TEST(ranks_that_deal_themselves_learn_each_record_once)
{
    epoch e;
    tn_epoch_position stand = {0};
    const uint32_t some[] = {3, 5, 1};
    const uint32_t all[] = {ALL, ALL, ALL};
    open_epoch(&e, small);
    read_alone(&e, 4, &stand);
    run_apart(&e, 3, some, &stand);
    run_apart(&e, 2, some, &stand);
    run_apart(&e, 1, some, &stand);
    run_apart(&e, 3, all, &stand);
    assert_each_once(&e);
    run_apart(&e, 2, all, &stand); /* nothing is left */
    assert_each_once(&e);
    tn_epoch_position_done(&stand);
    tn_arena_free(e.arena);
}

TEST(several_go_on_where_one_stood)
{
    epoch e;
    tn_epoch_position stand;
    const uint32_t all[] = {ALL, ALL};
    open_epoch(&e, small);
    read_alone(&e, 11, &stand);
    assert_false(stand.shared);
    assert_true(run(&e, 2, TN_LEDGER_BY_RULE, all, &stand));
    assert_each_once(&e);
    tn_epoch_position_done(&stand);
    tn_arena_free(e.arena);
}

static void refuse(const epoch *e, const tn_epoch_position *stand, const char *words)
{
    tn_part_dealer *d = NULL;
    tn_error err = {0};
    const tn_part_dealer_opts opts = {.epoch = 1, .ranks = 1, .map = e->map, .stand = stand};
    assert_int_equal(tn_part_dealer_open(&d, &opts, &err), TN_E_DATA);
    assert_null(d);
    assert_non_null(strstr(err.text, words));
}

TEST(a_stand_of_other_data_is_refused)
{
    epoch e[2];
    tn_epoch_position alone;
    tn_epoch_position stand = {0};
    const uint32_t some[] = {5, 3};
    open_epoch(&e[0], small);
    open_epoch(&e[1], "data.part_bytes=2KiB");
    read_alone(&e[0], 11, &alone);
    assert_false(run(&e[0], 2, TN_LEDGER_BY_RULE, some, &stand));
    refuse(&e[1], &stand, "was cut into other parts");
    refuse(&e[1], &alone, "was cut into other parts");
    tn_epoch_position_done(&stand);
    tn_epoch_position_done(&alone);
    tn_arena_free(e[0].arena);
    tn_arena_free(e[1].arena);
}

TEST(who_waits_for_a_part_stops_when_asked)
{
    epoch e;
    tn_part_dealer *d = NULL;
    tn_ledger_deal deal;
    tn_dealt dealt;
    bool now = true;
    const atomic_bool stop = true;
    const atomic_bool go = false;
    open_epoch(&e, "data.part_bytes=1MiB");
    const tn_part_dealer_opts opts = {
        .epoch = 1, .ranks = 2, .mode = TN_LEDGER_ON_REQUEST, .map = e.map};
    assert_int_equal(tn_part_dealer_open(&d, &opts, NULL), TN_OK);
    const tn_dealer *dealer = tn_part_dealer_dealer(d);
    tn_ledger *ledger = tn_part_dealer_lock(d);
    assert_int_equal(tn_ledger_ask(ledger, 1, 1, 1, tn_clock_ns(), &deal), TN_LEDGER_PART);
    tn_part_dealer_unlock(d);
    assert_int_equal(dealer->next(dealer->arg, false, &go, &dealt, &now, NULL), TN_OK);
    assert_false(now);
    assert_int_equal(dealer->next(dealer->arg, true, &stop, &dealt, &now, NULL), TN_E_STOPPED);
    ledger = tn_part_dealer_lock(d);
    assert_true(tn_ledger_done(ledger, 1, deal.part, deal.attempt, tn_clock_ns()));
    tn_part_dealer_unlock(d);
    assert_int_equal(dealer->next(dealer->arg, true, &go, &dealt, &now, NULL), TN_END);
    tn_part_dealer_close(d);
    tn_part_dealer_close(NULL);
    tn_arena_free(e.arena);
}
