/* test_group_orders.c - asks, parts, claims and returns between rank 0 and another rank. */
#include "cluster/group/group.h"

#include "base/core/clock.h"
#include "cluster/keys.h"
#include "support/test.h"

#include <pthread.h>
#include <time.h>

static char dir[256];

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    assert_int_equal(setenv("TNET_SILENCE", "1", 1), 0); /* NOLINT(concurrency-mt-unsafe) */
    return setenv("TNET_FAST", "4", 1); /* NOLINT(concurrency-mt-unsafe): no thread yet */
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return 0;
}

GROUP(set_up, tear_down);

/* Two ranks, and what they have heard. */
typedef struct pair {
    uint32_t from[3];
    tn_owners owners;
    tn_security security;
    char at[2][TN_ENDPOINT_PATH];
    const char *address[2], *host[2];
    tn_membership membership[2];
    tn_group *group[2];

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    bool withholds;      /* rank 0 only notes what is asked, .. */
    tn_frame frame;      /* .. and this is where it answers later */
    tn_ask_note ask;     /* the last one; lists are not kept */
    uint64_t asks, done; /* and the first part that is done */
    tn_part_note part;   /* the last one */
    uint64_t parts, claims, returns, ticks;
    uint64_t claimed, returned; /* first parts */
} pair;

static void *changed(pair *p)
{
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void take_ask(void *arg, const tn_frame *frame, const tn_ask_note *note)
{
    pair *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    p->frame = *frame;
    p->ask = *note;
    p->asks++;
    p->done = note->done.part.n > 0 ? note->done.part.at[0] : 0;
    if (!p->withholds) {
        const tn_part_note part = {
            .answer = TN_PART_IS, .part = 7, .id = note->id, .number = note->number};
        tn_group_deal(p->group[0], frame, &part);
    }
    changed(p);
}

static void take_claim(void *arg, uint32_t rank, const tn_note_parts *held)
{
    pair *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    assert_int_equal(rank, 1);
    p->claims++;
    p->claimed = held->part.n > 0 ? held->part.at[0] : 0;
    changed(p);
}

static void take_returned(void *arg, uint32_t rank, const tn_done_note *note)
{
    pair *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    assert_int_equal(rank, 1);
    p->returns++;
    p->returned = note->parts.part.at[0];
    changed(p);
}

static void take_tick(void *arg, uint64_t now_ns)
{
    pair *p = arg;
    assert_true(now_ns > 0);
    (void)pthread_mutex_lock(&p->lock);
    p->ticks++;
    changed(p);
}

/* The newest of each, while others may come: what was not answered is sent again. */
static tn_part_note newest_part(pair *p)
{
    (void)pthread_mutex_lock(&p->lock);
    const tn_part_note part = p->part;
    (void)pthread_mutex_unlock(&p->lock);
    return part;
}

static tn_frame newest_frame(pair *p)
{
    (void)pthread_mutex_lock(&p->lock);
    const tn_frame frame = p->frame;
    (void)pthread_mutex_unlock(&p->lock);
    return frame;
}

static void take_part(void *arg, const tn_part_note *note)
{
    pair *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    p->part = *note;
    p->parts++;
    changed(p);
}

static void list_held(void *arg, tn_arena *arena, tn_note_parts *out)
{
    (void)arg;
    uint64_t *list = TN_NEW_ARRAY(arena, uint64_t, 3);
    list[0] = 41;
    *out = (tn_note_parts){{list, 1}, {list + 1, 1}, {list + 2, 1}};
}

static void bind(pair *p)
{
    const tn_group_parts zero = {.arg = p,
                                 .ask = take_ask,
                                 .claim = take_claim,
                                 .returned = take_returned,
                                 .tick = take_tick};
    const tn_group_parts other = {.arg = p, .answer = take_part, .held = list_held};
    tn_group_set_parts(p->group[0], &zero);
    tn_group_set_parts(p->group[1], &other);
}

static void form(pair *p)
{
    *p = (pair){.from = {0, TN_PARTITIONS / 2, TN_PARTITIONS}};
    p->owners = (tn_owners){2, TN_PARTITIONS, p->from};
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    assert_int_equal(tn_security_init(&p->security, keys_zmq(), NULL, NULL), TN_OK);
    for (uint32_t r = 0; r < 2; r++) {
        int size = snprintf(p->at[r], sizeof p->at[r], "ipc://%s/%u.sock", dir, r);
        assert_in_range(size, 1, sizeof p->at[r] - 1);
        p->address[r] = p->at[r];
    }
    for (uint32_t r = 0; r < 2; r++) {
        p->membership[r] = (tn_membership){.rank = r,
                                           .size = 2,
                                           .job = 7,
                                           .address = p->address,
                                           .host = p->host,
                                           .bind = p->at[r],
                                           .how = "test"};
        const tn_group_opts opts = {.zmq = keys_zmq(),
                                    .membership = &p->membership[r],
                                    .security = &p->security,
                                    .owners = &p->owners,
                                    .hello = {.version = "1",
                                              .config_hash = "c",
                                              .structure = "s",
                                              .cpu = "avx2",
                                              .threads = 1},
                                    .start_timeout_s = 60};
        assert_int_equal(tn_group_open(&p->group[r], &opts, NULL), TN_OK);
    }
    assert_int_equal(tn_group_form(p->group[0], NULL, NULL), TN_OK);
    assert_int_equal(tn_group_form(p->group[1], NULL, NULL), TN_OK);
}

static void end(pair *p)
{
    tn_group_close(p->group[1]);
    tn_group_close(p->group[0]);
    tn_security_done(&p->security);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->changed);
}

/* Until so many have come. */
static void await(pair *p, const uint64_t *count, uint64_t n)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 60;
    (void)pthread_mutex_lock(&p->lock);
    while (*count < n) {
        assert_int_equal(pthread_cond_timedwait(&p->changed, &p->lock, &until), 0);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

TEST(an_ask_is_answered)
{
    static const uint64_t list[] = {33};
    pair p CLEANUP(end);
    form(&p);
    bind(&p);
    for (uint64_t i = 1; i <= 1500; i++) { /* more than a window of requests */
        const tn_ask_note ask = {
            .epoch = 2, .id = i, .number = 2 * i, .done = {{list, 1}, {list, 1}, {list, 1}}};
        tn_group_ask(p.group[1], &ask);
        await(&p, &p.parts, i);
    }
    assert_true(p.part.part == 7 && p.part.id == 1500 && p.part.number == 3000);
    assert_true(p.asks >= 1500); /* a slow answer makes one come again */
    assert_true(p.ask.epoch == 2 && p.done == 33);
    assert_int_equal(p.frame.rank, 1);
}

TEST(c5_an_ask_without_an_answer_comes_again_and_a_part_by_itself)
{
    pair p CLEANUP(end);
    form(&p);
    p.withholds = true;
    bind(&p);
    tn_group_ask(p.group[1], &(tn_ask_note){.id = 1, .number = 1});
    await(&p, &p.asks, 3); /* resent under its sequence */
    tn_frame frame = newest_frame(&p);
    assert_int_not_equal(frame.sequence, 0);
    tn_group_deal(p.group[0], &frame, &(tn_part_note){.answer = TN_PART_WAIT, .id = 1});
    await(&p, &p.parts, 1);
    assert_int_equal(newest_part(&p).answer, TN_PART_WAIT);
    frame.sequence = 0;
    frame.payload = NULL;
    tn_group_deal(p.group[0], &frame, &(tn_part_note){.answer = TN_PART_IS, .part = 9, .id = 1});
    await(&p, &p.parts, 2);
    const tn_part_note part = newest_part(&p);
    assert_true(part.answer == TN_PART_IS && part.part == 9);
}

TEST(who_asks_before_there_are_parts_is_told_to_wait)
{
    pair p CLEANUP(end);
    form(&p);
    bind(&p);
    tn_group_set_parts(p.group[0], NULL);
    tn_group_ask(p.group[1], &(tn_ask_note){.epoch = 3, .id = 5, .number = 6});
    await(&p, &p.parts, 1);
    assert_true(p.part.answer == TN_PART_WAIT && p.part.epoch == 3);
    assert_true(p.part.id == 5 && p.part.number == 6);
    assert_int_equal(p.asks, 0);
}

TEST(heartbeats_claim_and_one_rank_gives_back)
{
    pair p CLEANUP(end);
    tn_order_note order;
    form(&p);
    bind(&p);
    await(&p, &p.claims, 2);
    assert_int_equal(p.claimed, 41);
    await(&p, &p.ticks, 2);
    const tn_order_note give_back = {.what = TN_ORDER_RETURN, .number = 4, .text = ""};
    tn_group_order_one(p.group[0], 1, &give_back);
    assert_int_equal(tn_group_next_order(p.group[1], tn_clock_ns() + 60000000000, &order, NULL),
                     TN_OK);
    assert_true(order.what == TN_ORDER_RETURN && order.number == 4);
    static const uint64_t list[] = {17};
    const tn_done_note done = {.what = TN_ORDER_RETURN,
                               .number = 4,
                               .text = "",
                               .parts = {{list, 1}, {list, 1}, {list, 1}}};
    assert_int_equal(tn_group_done(p.group[1], &done, NULL), TN_OK);
    await(&p, &p.returns, 1);
    assert_int_equal(p.returned, 17);
}

TEST(who_does_not_do_its_part_is_lost)
{
    pair p CLEANUP(end);
    tn_error err = {0};
    tn_order_note order;
    form(&p);
    bind(&p);
    await(&p, &p.claims, 1);
    tn_group_lose(p.group[0], 1, "does not give back what it has");
    assert_int_equal(tn_group_check(p.group[0], &err), TN_E_PEER);
    assert_memory_equal(err.text, "rank 1 (host '", 14);
    assert_non_null(strstr(err.text, "s ago at step 0, does not give back what it has, and is "
                                     "taken for lost\nhint: start the same command again"));
    assert_int_equal(tn_group_next_order(p.group[1], tn_clock_ns() + 60000000000, &order, &err),
                     TN_E_PEER);
    assert_non_null(strstr(err.text, "does not give back what it has"));
    tn_group_ask(p.group[1], &(tn_ask_note){.id = 1, .number = 1}); /* nobody hears it */
    tn_group_order_one(p.group[0], 1, &(tn_order_note){.what = TN_ORDER_RETURN, .text = ""});
}
