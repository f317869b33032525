/* test_part_server.c - rank 0 deals parts to two others: asks, waits, claims, stragglers. */
#include "cluster/train/part_dealer.h"

#include "base/core/clock.h"
#include "io/read/blocks.h"
#include "support/test.h"

enum { PARTS = 6, EPOCH = 3, SAID_MAX = 16 };

#define SECOND UINT64_C(1000000000)

/* What was said to other ranks. */
typedef struct said {
    tn_frame to[SAID_MAX];
    tn_part_note note[SAID_MAX];
    uint32_t n;      /* of these */
    uint32_t backs;  /* times that .. */
    uint32_t back;   /* .. this rank was asked to give back .. */
    uint32_t epoch;  /* .. parts of this */
    uint32_t losses; /* times that .. */
    uint32_t lost;   /* .. this rank was lost .. */
    const char *why;
} said;

static void say_part(void *arg, const tn_frame *ask, const tn_part_note *note)
{
    said *s = arg;
    assert_in_range(s->n, 0, SAID_MAX - 1);
    s->to[s->n] = *ask;
    s->note[s->n++] = *note;
}

static void say_back(void *arg, uint32_t rank, uint32_t epoch)
{
    said *s = arg;
    s->backs++;
    s->back = rank;
    s->epoch = epoch;
}

static void say_lost(void *arg, uint32_t rank, const char *what)
{
    said *s = arg;
    s->losses++;
    s->lost = rank;
    s->why = what;
}

typedef struct rig {
    said said;
    tn_part_dealer *dealer;
    tn_part_server *serve;
    tn_group_parts on;
    uint64_t number[3];
} rig;

static void open_rig(rig *r)
{
    static tn_part_info part[PARTS];
    for (uint64_t i = 0; i < PARTS; i++) {
        part[i] = (tn_part_info){.source = 1, .first = 100 * i, .end = 100 * i + 100};
    }
    static const tn_epoch_parts map = {.n_parts = PARTS, .part = part};
    *r = (rig){0};
    const tn_part_dealer_opts opts = {
        .epoch = EPOCH, .ranks = 3, .mode = TN_LEDGER_ON_REQUEST, .map = &map};
    const tn_part_server_callbacks voice = {&r->said, say_part, say_back, say_lost};
    assert_int_equal(tn_part_dealer_open(&r->dealer, &opts, NULL), TN_OK);
    r->serve = tn_part_server_new(3, &voice);
    tn_part_server_bind(r->serve, &r->on);
    tn_part_server_deal(r->serve, r->dealer, tn_clock_ns());
}

static void close_rig(rig *r)
{
    tn_part_server_deal(r->serve, NULL, tn_clock_ns());
    tn_part_server_free(r->serve);
    tn_part_server_free(NULL);
    tn_part_dealer_close(r->dealer);
}

/* A note of `rank`: its ask `id` (0: none), and a part that is done (NULL: none). Returns the
 * answer. */
static tn_part_note ask(rig *r, uint32_t rank, uint64_t id, const tn_part_note *done)
{
    const uint64_t list[] = {done != NULL ? done->part : 0, done != NULL ? done->attempt : 0};
    const size_t n = done != NULL;
    const tn_frame frame = {.type = TN_FRAME_ASK, .rank = rank, .sequence = 77};
    const tn_ask_note note = {.epoch = EPOCH,
                              .done = {{list, n}, {list + 1, n}, {list, n}},
                              .id = id,
                              .number = ++r->number[rank]};
    r->on.ask(r->on.arg, &frame, &note);
    const said *s = &r->said;
    assert_int_equal(s->to[s->n - 1].sequence, 77);
    assert_int_equal(s->note[s->n - 1].number, note.number);
    assert_int_equal(s->note[s->n - 1].id, id);
    assert_int_equal(s->note[s->n - 1].epoch, EPOCH);
    return s->note[--r->said.n];
}

static void assert_part(const tn_part_note *note, uint32_t part, uint32_t attempt,
                        uint64_t position)
{
    assert_int_equal(note->answer, TN_PART_IS);
    assert_int_equal(note->part, part);
    assert_int_equal(note->attempt, attempt);
    assert_int_equal(note->position, position);
    const uint64_t begin = UINT64_C(100) * part;
    assert_true(note->source == 1 && note->begin == begin && note->end == begin + 100);
}

TEST(c9_the_same_ask_gets_the_same_part)
{
    rig r CLEANUP(close_rig);
    open_rig(&r);
    for (uint32_t i = 0; i < 3; i++) {
        const tn_part_note note = ask(&r, 1, 1, NULL);
        assert_part(&note, 0, 0, 0);
    }
    const tn_part_note second = ask(&r, 2, 1, NULL);
    assert_part(&second, 1, 0, 0);
    const tn_part_note third = ask(&r, 1, 2, NULL);
    assert_part(&third, 2, 0, 0);
    const tn_part_note told = ask(&r, 1, 0, &third); /* asks for nothing */
    assert_int_equal(told.answer, TN_PART_WAIT);
}

/* All parts to rank 1, and the last of them back. */
static tn_part_note deal_all(rig *r)
{
    tn_part_note last = {0};
    for (uint32_t i = 0; i < PARTS; i++) {
        last = ask(r, 1, i + 1, i > 0 ? &last : NULL);
        assert_part(&last, i, 0, 0);
    }
    return last;
}

TEST(who_waits_hears_of_the_end_by_itself)
{
    rig r CLEANUP(close_rig);
    open_rig(&r);
    const tn_part_note last = deal_all(&r);
    tn_part_note wait = ask(&r, 2, 1, NULL);
    assert_int_equal(wait.answer, TN_PART_WAIT);
    wait = ask(&r, 1, PARTS + 1, NULL);
    assert_int_equal(wait.answer, TN_PART_WAIT);
    const tn_part_note over = ask(&r, 1, PARTS + 1, &last);
    assert_int_equal(over.answer, TN_PART_NO_MORE);
    assert_int_equal(r.said.n, 1); /* to rank 2 */
    assert_int_equal(r.said.to[0].rank, 2);
    assert_int_equal(r.said.to[0].sequence, 0);
    assert_int_equal(r.said.note[0].answer, TN_PART_NO_MORE);
    assert_int_equal(r.said.note[0].id, 1);
    assert_int_equal(r.said.note[0].number, 0);
}

TEST(asks_of_another_epoch_wait)
{
    rig r CLEANUP(close_rig);
    open_rig(&r);
    const tn_frame frame = {.rank = 1, .sequence = 1};
    for (uint32_t i = 0; i < 2; i++) {
        r.on.ask(r.on.arg, &frame, &(tn_ask_note){.epoch = EPOCH + 1, .id = 1, .number = 1});
        assert_int_equal(r.said.note[i].answer, TN_PART_WAIT);
        tn_part_server_deal(r.serve, i == 0 ? NULL : r.dealer, 1);
    }
    r.on.claim(r.on.arg, 1, &(tn_note_parts){{NULL, 0}, {NULL, 0}, {NULL, 0}});
}

static void give_back(rig *r, uint32_t rank, uint64_t epoch, const tn_part_note *part,
                      uint64_t position)
{
    const uint64_t list[] = {part->part, part->attempt, position};
    const tn_done_note done = {.what = TN_ORDER_RETURN,
                               .number = epoch,
                               .parts = {{list, 1}, {list + 1, 1}, {list + 2, 1}}};
    r->on.returned(r->on.arg, rank, &done);
}

TEST(c3_a_straggler_gives_the_rest_to_an_idle_rank)
{
    rig r CLEANUP(close_rig);
    open_rig(&r);
    const tn_part_note last = deal_all(&r);
    assert_int_equal(ask(&r, 1, PARTS + 1, NULL).answer, TN_PART_WAIT); /* it asks ahead .. */
    assert_int_equal(ask(&r, 2, 1, NULL).answer, TN_PART_WAIT);
    const uint64_t late = tn_clock_ns() + 6 * SECOND;
    r.on.tick(r.on.arg, late);
    assert_int_equal(r.said.backs, 0); /* all stand still */
    tn_part_server_pause(r.serve, false, tn_clock_ns());
    r.on.tick(r.on.arg, late);
    r.on.tick(r.on.arg, late);
    assert_true(r.said.backs == 1 && r.said.back == 1 && r.said.epoch == EPOCH);
    give_back(&r, 1, EPOCH - 1, &last, 40); /* of another epoch */
    assert_int_equal(r.said.n, 0);
    give_back(&r, 1, EPOCH, &last, 40);
    assert_int_equal(r.said.n, 1);
    assert_int_equal(r.said.to[0].rank, 2); /* .. but others come first */
    assert_part(&r.said.note[0], PARTS - 1, 1, 40);
    assert_int_equal(tn_part_dealer_reassigned(r.dealer), 1);
    give_back(&r, 1, EPOCH, &last, 50); /* again: not its own any more */
    assert_int_equal(r.said.n, 1);
    const tn_part_note over = ask(&r, 2, 2, &r.said.note[0]);
    assert_int_equal(over.answer, TN_PART_NO_MORE);
    r.on.tick(r.on.arg, late + 60 * SECOND);
    assert_int_equal(r.said.losses, 0);
}

TEST(who_does_not_give_back_within_15_s_is_lost)
{
    rig r CLEANUP(close_rig);
    open_rig(&r);
    (void)deal_all(&r);
    assert_int_equal(ask(&r, 2, 1, NULL).answer, TN_PART_WAIT);
    tn_part_server_pause(r.serve, false, tn_clock_ns());
    const uint64_t late = tn_clock_ns() + 6 * SECOND;
    r.on.tick(r.on.arg, late);
    r.on.tick(r.on.arg, late + 15 * SECOND - 1);
    assert_int_equal(r.said.losses, 0);
    tn_part_server_pause(r.serve, true, late + 15 * SECOND - 1); /* an evaluation is no silence */
    r.on.tick(r.on.arg, late + 100 * SECOND);
    assert_int_equal(r.said.losses, 0);
    tn_part_server_pause(r.serve, false, late + 100 * SECOND);
    r.on.tick(r.on.arg, late + 100 * SECOND);
    assert_int_equal(r.said.losses, 0);
    r.on.tick(r.on.arg, late + 101 * SECOND);
    r.on.tick(r.on.arg, late + 102 * SECOND);
    assert_true(r.said.losses == 1 && r.said.lost == 1);
    assert_non_null(strstr(r.said.why, "does not give back"));
}

TEST(rank_0_may_be_the_straggler_itself)
{
    rig r CLEANUP(close_rig);
    open_rig(&r);
    const tn_dealer *own = tn_part_dealer_dealer(r.dealer);
    const atomic_bool go = false;
    tn_dealt dealt;
    bool now = false;
    assert_int_equal(own->next(own->arg, false, &go, &dealt, &now, NULL), TN_OK);
    assert_true(now && dealt.place == 0);
    tn_part_note last = {0};
    for (uint32_t i = 1; i < PARTS; i++) {
        last = ask(&r, 1, i, i > 1 ? &last : NULL);
    }
    assert_int_equal(ask(&r, 1, PARTS, &last).answer, TN_PART_WAIT);
    tn_part_server_pause(r.serve, false, tn_clock_ns());
    const uint64_t late = tn_clock_ns() + 6 * SECOND;
    assert_false(tn_part_server_would_be_asked(r.serve));
    r.on.tick(r.on.arg, late);
    assert_int_equal(r.said.backs, 0);
    assert_true(tn_part_server_would_be_asked(r.serve));
    assert_true(tn_part_server_is_asked(r.serve));
    assert_false(tn_part_server_is_asked(r.serve));
    tn_part_dealer_note(r.dealer, &(tn_progress){.epoch = EPOCH, .position = 30}, tn_clock_ns());
    tn_part_dealer_give_back(r.dealer, tn_clock_ns());
    assert_int_equal(r.said.n, 1);
    assert_part(&r.said.note[0], 0, 1, 30);
    r.on.tick(r.on.arg, late + 60 * SECOND);
    assert_int_equal(r.said.losses, 0);
}

TEST(who_does_not_claim_what_it_holds_is_lost)
{
    rig r CLEANUP(close_rig);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    assert_int_equal(setenv("TNET_FAST", "15000000000", 1), 0); /* at once */
    open_rig(&r);
    assert_int_equal(unsetenv("TNET_FAST"), 0); // NOLINT(concurrency-mt-unsafe)
    tn_part_server_pause(r.serve, false, tn_clock_ns());
    const tn_part_note first = ask(&r, 1, 1, NULL);
    const uint64_t part[] = {first.part};
    const uint64_t zero[] = {0};
    const tn_note_parts held = {{part, 1}, {zero, 1}, {zero, 1}};
    const tn_note_parts none = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    r.on.claim(r.on.arg, 1, &none); /* the answer has perhaps not arrived */
    assert_int_equal(r.said.losses, 0);
    tn_part_server_claim(r.serve, 1, &held, tn_clock_ns());
    r.on.claim(r.on.arg, 1, &held);
    assert_int_equal(r.said.losses, 0);
    const uint64_t high[] = {UINT64_MAX};
    const tn_note_parts wild = {{high, 1}, {high, 1}, {high, 1}};
    r.on.claim(r.on.arg, 1, &wild);
    assert_true(r.said.losses == 1 && r.said.lost == 1);
    assert_non_null(strstr(r.said.why, "does not claim"));
}
