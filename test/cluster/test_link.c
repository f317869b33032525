/* test_link.c - links of several peers in one process: every request is answered once, whatever
 * becomes of its messages. */
#include "cluster/net/link.h"
#include "cluster/testdir.h"

#include "base/core/clock.h"
#include "keys.h"
#include "support/flipper.h"
#include "support/rounds.h"
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { PEERS = 3, DEADLINE_S = 60 };

typedef struct peer {
    tn_link *link;
    tn_out_messages *pool;
    tn_security security;
    tn_endpoint at;
    uint32_t rank;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock: */
    uint32_t requests, answers, ticks;
    bool is_late;      /* answers only when its link is being closed */
    uint32_t ignore;   /* requests still to be left without an answer */
    double greatest;   /* of the first numbers of the requests; one sent again may come last */
    uint64_t sequence; /* of the last answer */
    bool in_order;
    atomic_bool is_closing;
    char bound[TN_ENDPOINT_SIZE]; /* where it listens */
} peer;

static void got_request(void *arg, tn_in_message *incoming)
{
    peer *p = arg;
    double first = 0;
    memcpy(&first, incoming->frame.payload, sizeof first);
    (void)pthread_mutex_lock(&p->lock);
    p->requests++;
    p->greatest = first > p->greatest ? first : p->greatest;
    bool answers = p->ignore == 0;
    p->ignore -= !answers;
    const bool is_late = p->is_late;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    while (is_late && !atomic_load(&p->is_closing)) {
        (void)sched_yield();
    }
    if (is_late) { /* until tn_link_close has told the thread to end */
        (void)usleep(50000);
    }
    tn_out_message *outgoing = NULL;
    if (answers && tn_out_message_take(&outgoing, p->pool, 0, NULL) == TN_OK) {
        outgoing->frame.type = TN_FRAME_NOTED;
        tn_link_answer(p->link, &incoming->frame, outgoing);
    }
    tn_in_message_close(incoming);
}

static void got_answer(void *arg, tn_in_message *incoming)
{
    peer *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    p->answers++;
    p->in_order = p->in_order && incoming->frame.sequence > p->sequence;
    p->sequence = incoming->frame.sequence;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    tn_in_message_close(incoming);
}

static void ticked(void *arg, uint64_t now_ns)
{
    peer *p = arg;
    (void)now_ns;
    (void)pthread_mutex_lock(&p->lock);
    p->ticks++;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

static void open_again(peer *p, uint64_t job, uint64_t incarnation)
{
    tn_error err = {0};
    const tn_link_opts opts = {.rank = p->rank,
                               .size = PEERS,
                               .job = job,
                               .incarnation = incarnation,
                               .retransmit_ns = 30000000,
                               .security = &p->security,
                               .events = {p, got_request, got_answer, ticked}};
    assert_ok(tn_link_open(&p->link, keys_zmq(), &opts, &p->at, p->bound, &err), err.text);
    tn_link_set_session(p->link, 77);
}

static void open_peer_with(peer *p, uint32_t rank, tn_endpoint at, const tn_security_opts *security)
{
    *p = (peer){.rank = rank, .in_order = true, .at = at};
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    assert_int_equal(tn_out_messages_new(&p->pool, NULL), TN_OK);
    assert_int_equal(tn_security_init(&p->security, keys_zmq(), security, NULL), TN_OK);
    open_again(p, 1, 100 + rank);
}

static void open_peer(peer *p, uint32_t rank)
{
    tn_endpoint at = {.is_ipc = true};
    int n = snprintf(at.path, sizeof at.path, "%s/%u.sock", testdir, rank);
    assert_in_range(n, 1, sizeof at.path - 1);
    open_peer_with(p, rank, at, NULL);
}

/* Over TCP, with a key. */
static void open_with_key(peer *p, uint32_t rank)
{
    char name[16];
    char file[24];
    (void)snprintf(name, sizeof name, "rank-%u", rank);
    (void)snprintf(file, sizeof file, "%s.key", name);
    const tn_security_opts keys = {.key = keys_path(testdir, file), .allow = testdir};
    open_peer_with(p, rank, (tn_endpoint){.host = "127.0.0.1"}, &keys);
}

static void close_peer(peer *p)
{
    tn_link_close(p->link);
    tn_out_messages_free(p->pool);
    tn_security_done(&p->security);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->changed);
}

static void dial(peer *p, const peer *to)
{
    assert_int_equal(tn_link_dial(p->link, to->rank, &to->at, NULL), TN_OK);
}

/* A request of n doubles, the first of which is `first`. */
static void post(peer *p, const peer *to, double first, uint32_t n)
{
    tn_out_message *outgoing = NULL;
    assert_int_equal(tn_out_message_take(&outgoing, p->pool, n * sizeof(double), NULL), TN_OK);
    outgoing->frame.type = TN_FRAME_SHARE;
    outgoing->frame.count[TN_DENSE_FLOATS] = n;
    memset(tn_out_message_payload(outgoing), 0, n * sizeof(double));
    memcpy(tn_out_message_payload(outgoing), &first, sizeof first);
    tn_link_post(p->link, to->rank, outgoing);
}

static uint32_t count_of(peer *p, const uint32_t *count)
{
    (void)pthread_mutex_lock(&p->lock);
    uint32_t n = *count;
    (void)pthread_mutex_unlock(&p->lock);
    return n;
}

/* Until *count is at least n, or `seconds` are over. */
static uint32_t await_for(peer *p, const uint32_t *count, uint32_t n, int seconds)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    int late = 0;
    (void)pthread_mutex_lock(&p->lock);
    while (*count < n && late == 0) {
        late = pthread_cond_timedwait(&p->changed, &p->lock, &until);
    }
    uint32_t got = *count;
    (void)pthread_mutex_unlock(&p->lock);
    return got;
}

static void await(peer *p, const uint32_t *count, uint32_t n)
{
    const uint32_t got = await_for(p, count, n, DEADLINE_S);
    fail_if(got < n, "%u of %u came", got, n);
}

GROUP(testdir_set_up, testdir_tear_down);

TEST(requests_are_answered_in_order_however_many)
{
    enum { REQUESTS = 500 };
    peer a;
    peer b;
    open_peer(&a, 0);
    open_peer(&b, 1);
    for (uint32_t i = 0; i < REQUESTS; i++) { /* the first ones before anybody knows where b is */
        if (i == 100) {
            dial(&a, &b);
        }
        post(&a, &b, i, 1 + i % 3);
    }
    await(&a, &a.answers, REQUESTS);
    assert_int_equal(tn_link_open_requests(a.link, 1), 0);
    assert_int_equal(count_of(&a, &a.answers), REQUESTS);
    await(&a, &a.ticks, 1);
    close_peer(&a);
    close_peer(&b);
    assert_int_equal(a.sequence, REQUESTS);
    assert_true(a.in_order);
}

TEST(long_messages_go_both_ways_at_once)
{
    enum { DOUBLES = 300000 };
    const uint32_t times = 20 / tn_round_step();
    peer p[PEERS];
    for (uint32_t i = 0; i < PEERS; i++) {
        open_peer(&p[i], i);
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        for (uint32_t k = 0; k < PEERS; k++) {
            if (i != k) {
                dial(&p[i], &p[k]);
            }
        }
    }
    for (uint32_t t = 0; t < times; t++) {
        for (uint32_t i = 0; i < PEERS; i++) {
            post(&p[i], &p[(i + 1) % PEERS], t, DOUBLES);
            post(&p[i], &p[(i + 2) % PEERS], t, DOUBLES);
        }
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        await(&p[i], &p[i].answers, 2 * times);
        assert_int_equal(count_of(&p[i], &p[i].answers), 2 * times);
    }
    for (uint32_t i = 0; i < PEERS; i++) { /* now each has the requests of the others, too */
        tn_link_counts counts;
        await(&p[i], &p[i].ticks,
              count_of(&p[i], &p[i].ticks) + 2); /* counts are told now and then */
        tn_link_counts_of(p[i].link, &counts);
        assert_true(counts.bytes_in >= UINT64_C(2) * times * DOUBLES * sizeof(double));
        assert_true(counts.bytes_out >= UINT64_C(2) * times * DOUBLES * sizeof(double));
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        close_peer(&p[i]);
    }
}

/* C5: what is not answered is sent again, and its answer told once. */
TEST(c5_a_request_without_answer_is_repeated)
{
    peer a CLEANUP(close_peer);
    peer b CLEANUP(close_peer);
    open_peer(&a, 0);
    open_peer(&b, 1);
    dial(&a, &b);
    (void)pthread_mutex_lock(&b.lock);
    b.ignore = 3;
    (void)pthread_mutex_unlock(&b.lock);
    for (uint32_t i = 0; i < 5; i++) {
        post(&a, &b, i, 1);
    }
    await(&a, &a.answers, 5);
    assert_int_equal(count_of(&a, &a.answers), 5);
    assert_true(count_of(&b, &b.requests) >= 5 + 3);
    assert_int_equal(tn_link_open_requests(a.link, 1), 0);
}

static uint64_t dropped(peer *p, tn_drop fault);

TEST(requests_reach_a_peer_that_was_started_again)
{
    peer a;
    peer b;
    open_peer(&a, 0);
    open_peer(&b, 1);
    dial(&a, &b);
    post(&a, &b, 1, 1);
    await(&a, &a.answers, 1);
    tn_link_close(b.link);
    post(&a, &b, 2, 1);
    post(&a, &b, 3, 100000);
    tn_link_expect(a.link, 1, 101);
    open_again(&b, 1, 900);
    await(&b, &b.requests, 4); /* its answers are not those of the one before */
    while (dropped(&a, TN_DROP_RANK) == 0) {
    }
    assert_int_equal(count_of(&a, &a.answers), 1);
    assert_int_equal(tn_link_open_requests(a.link, 1), 2);
    tn_link_expect(a.link, 1, 900);
    await(&a, &a.answers, 3);
    close_peer(&a);
    close_peer(&b);
    assert_true(b.greatest == 3);
}

static uint64_t dropped(peer *p, tn_drop fault)
{
    tn_link_counts counts;
    await(p, &p->ticks, count_of(p, &p->ticks) + 2);
    tn_link_counts_of(p->link, &counts);
    return counts.dropped[fault];
}

TEST(what_is_of_another_session_or_job_is_dropped)
{
    peer a CLEANUP(close_peer);
    peer b CLEANUP(close_peer);
    peer c CLEANUP(close_peer);
    open_peer(&a, 0);
    open_peer(&b, 1);
    open_peer(&c, 2);
    tn_link_close(c.link);
    open_again(&c, 2, 5);
    tn_link_set_session(a.link, 76);
    dial(&a, &b);
    dial(&c, &b);
    post(&a, &b, 1, 1);
    post(&c, &b, 2, 1);
    while (dropped(&b, TN_DROP_SESSION) == 0 || dropped(&b, TN_DROP_JOB) == 0) {
    }
    assert_int_equal(count_of(&b, &b.requests), 0);
    assert_int_equal(count_of(&a, &a.answers) + count_of(&c, &c.answers), 0);
    assert_int_equal(tn_link_open_requests(a.link, 1), 1);
}

/* Whoever waits for it would take this peer for lost. ZeroMQ may lose it while its sender hangs up,
 * when the machine has too much to do: then it is tried again. */
TEST(an_answer_to_the_last_request_is_sent_before_the_link_ends)
{
    uint32_t answers = 0;
    for (int i = 0; answers == 0 && i < 20; i++) {
        peer a CLEANUP(close_peer);
        peer b;
        open_peer(&a, 0);
        open_peer(&b, 1);
        b.is_late = true; /* nobody has asked yet */
        dial(&a, &b);
        post(&a, &b, 1, 1);
        await(&b, &b.requests, 1);
        atomic_store(&b.is_closing, true);
        close_peer(&b);
        answers = await_for(&a, &a.answers, 1, 1);
    }
    assert_int_equal(answers, 1);
}

TEST(an_address_that_is_taken_is_told)
{
    peer a CLEANUP(close_peer);
    open_peer(&a, 0);
    tn_link *second = NULL;
    tn_error err = {0};
    char bound[TN_ENDPOINT_SIZE];
    const tn_endpoint nowhere = {.host = "192.0.2.1", .port = 1};
    const tn_link_opts opts = {.rank = 1,
                               .size = 2,
                               .incarnation = 1,
                               .security = &a.security,
                               .events = {&a, got_request, got_answer, ticked}};
    assert_int_equal(tn_link_open(&second, keys_zmq(), &opts, &nowhere, bound, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "is open to other machines"));
    assert_null(second);
    tn_link_close(NULL);
    tn_in_message_close(NULL);
}

/* Connections by a proxy, each of which ends by its flip: of the one who dials in what it receives
 * (back), in greeting, WELCOME, READY and answers; of the other in greeting, HELLO, INITIATE and
 * requests. */
static const flip flips[] = {
    {0, true, 0},  {1, true, 150},  {2, true, 280},  {3, true, 400},   {4, true, 1470},
    {5, false, 0}, {6, false, 200}, {7, false, 400}, {8, false, 5000}, {9, false, 90000},
};

TEST(a_byte_that_the_network_changes_costs_a_connection_and_no_message)
{
    enum { FLIPS = sizeof flips / sizeof flips[0] };
    peer a CLEANUP(close_peer);
    peer b CLEANUP(close_peer);
    tn_endpoint at;
    uint32_t posted = 0;
    uint32_t slow = 0; /* two, if a damaged message were left to the heartbeats */
    (void)keys_make(testdir, "rank-0");
    (void)keys_make(testdir, "rank-1");
    open_with_key(&a, 0);
    open_with_key(&b, 1);
    assert_int_equal(tn_endpoint_read(b.bound, 0, &at, NULL), TN_OK);
    flipper *f = flipper_open(at.port, flips, FLIPS, 0, 0);
    at.port = flipper_port(f);
    assert_int_equal(tn_link_dial(a.link, 1, &at, NULL), TN_OK);
    while (flipper_flips(f) < FLIPS || flipper_connections(f) <= FLIPS) {
        const double from = tn_clock_s();
        post(&a, &b, posted++, 1000);
        await(&a, &a.answers, posted);
        slow += tn_clock_s() - from > 5;
    }
    assert_int_equal(count_of(&a, &a.answers), posted);
    assert_int_equal(flipper_connections(f), FLIPS + 1);
    assert_true(a.in_order && slow < 2);
    flipper_close(f);
}
