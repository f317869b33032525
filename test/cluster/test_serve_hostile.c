/* test_serve_hostile.c - a live owner at staleness 0 and 50,000 random sequences of hostile
 * messages: nothing of them is applied, each is refused for its reason, and the steps of those who
 * keep the rules have the same bits as without.
 *
 * One thread brings messages, as the net thread does, another does the steps, as a worker does. */
#include "harm.h"
#include "serving.h"

#include "base/core/bytes.h"
#include "base/core/clock.h"
#include "base/math/crc32c.h"
#include "cluster/wire/key_codec.h"
#include "support/test.h"

enum {
    STEPS = 10000, /* of five moments each, at which a sequence of messages comes */
    SEQUENCES = 50000,
    SEQUENCE_MOST = 4,
    REQUESTS = 2 * STEPS + 16,
    REFUSALS = 16,
    JOB = 11,
    SESSION = 12
};

/* Where a rank's requests stand, as its owner sees it. */
typedef struct sender {
    uint64_t sequence;   /* of its last good request */
    uint32_t open;       /* pulls whose step is not done */
    bool pushed;         /* its push waits for those of others */
    harm_message old[4]; /* its last good requests, to be replayed */
    uint32_t n_old;
    uint32_t told[REQUESTS]; /* checksum of the answer by sequence; 0: none yet */
} sender;

/* A request, to be made again and again. */
typedef struct mould {
    tn_frame frame;
    char payload[SERVING_BYTES];
} mould;

typedef struct storm {
    serving *s;
    mould pull, foreign; /* the latter of keys that live elsewhere */
    pthread_t worker;
    atomic_bool stop, failed;
    bool hostile;
    uint64_t stream, draws;
    tn_frame_limits limits;
    sender of[SERVING_RANKS];
    uint64_t n_strikes, sent_harmed, dropped[TN_DROPS + 1], expected_drops[TN_DROPS + 1];
    uint64_t refused[REFUSALS], expected[REFUSALS];
    uint32_t table[SERVING_KEYS], weights; /* checksums at the end */
} storm;

static uint64_t draw(storm *x, uint64_t below)
{
    return tn_draw(x->stream, x->draws++) % below;
}

/* ---- the worker ---- */

static void *work(void *arg)
{
    storm *x = arg;
    for (;;) {
        const uint64_t heard = tn_wakeup_count(&x->s->replies.wakeup);
        if (tn_sync_server_run(x->s->serve, NULL, NULL) != TN_OK) {
            atomic_store(&x->failed, true);
            tn_wakeup_signal(&x->s->heard);
            return NULL;
        }
        if (atomic_load(&x->stop)) {
            return NULL;
        }
        (void)tn_wakeup_wait(&x->s->replies.wakeup, heard, tn_clock_ns() + UINT64_C(60000000000));
    }
}

/* ---- messages ---- */

static mould mould_of(const serving *s, tn_frame frame)
{
    mould m = {.frame = frame};
    memcpy(m.payload, s->payload, frame.bytes);
    return m;
}

static tn_frame cast(storm *x, const mould *m, uint32_t rank, uint64_t sequence)
{
    tn_frame f = m->frame;
    f.rank = rank;
    f.sequence = sequence;
    f.incarnation = SERVING_START + rank;
    memcpy(x->s->payload, m->payload, f.bytes);
    return f;
}

static harm_message message_of(const storm *x, tn_frame frame)
{
    frame.job = JOB;
    frame.session = SESSION;
    return harm_seal(&frame, x->s->payload);
}

static void bring(storm *x, const harm_message *m)
{
    tn_frame f;
    const tn_drop why = tn_frame_read(&f, m->bytes, m->size, &x->limits);
    x->dropped[why]++;
    if (why == TN_DROP_NONE) {
        f.payload = m->bytes + TN_FRAME_HEAD;
        serving_take(x->s, f);
    }
}

static void note_answer(storm *x, const served *a)
{
    if (a->frame.type == TN_FRAME_REFUSED) {
        assert_true(a->frame.code < REFUSALS);
        x->refused[a->frame.code]++;
        return;
    }
    uint32_t *told = &x->of[a->rank].told[a->sequence];
    const uint32_t crc = tn_crc32c(1, a->payload, a->frame.bytes) | 1;
    if (*told == 0) {
        *told = crc;
    }
    assert_int_equal(*told, crc); /* the same again, who ever asked */
}

static void receive_answers(storm *x)
{
    served *answer = x->s->answer;
    (void)pthread_mutex_lock(&x->s->lock);
    for (uint32_t i = 0; i < x->s->n_answers; i++) {
        note_answer(x, &answer[i]);
    }
    x->s->n_answers = 0;
    (void)pthread_mutex_unlock(&x->s->lock);
}

/* Until both ranks have the answer to their request of that number. */
static void await(storm *x, const uint64_t sequence[SERVING_RANKS])
{
    const uint64_t until = tn_clock_ns() + UINT64_C(120000000000);
    for (;;) {
        const uint64_t heard = tn_wakeup_count(&x->s->heard);
        receive_answers(x);
        assert_false(atomic_load(&x->failed));
        if (x->of[0].told[sequence[0]] != 0 && x->of[1].told[sequence[1]] != 0) {
            return;
        }
        assert_true(tn_wakeup_wait(&x->s->heard, heard, until));
    }
}

/* ---- hostile messages ---- */

/* A request that would be new: it must not be taken. */
static void refuse(storm *x, tn_frame f, tn_refusal code)
{
    const harm_message m = message_of(x, f);
    bring(x, &m);
    x->expected[code]++;
}

static uint64_t fresh(storm *x, uint32_t rank)
{
    return x->of[rank].sequence + 1 + draw(x, 8);
}

static void harmed(storm *x, uint32_t rank)
{
    harm_message m = message_of(x, draw(x, 2) == 0 ? cast(x, &x->pull, rank, fresh(x, rank))
                                                   : serving_push(x->s, rank, fresh(x, rank), 3));
    const tn_drop why = harm_one(&m, x->stream, &x->draws, &x->limits);
    x->sent_harmed++;
    x->expected_drops[why]++;
    bring(x, &m);
}

static void replayed(storm *x, uint32_t rank)
{
    const sender *r = &x->of[rank];
    if (r->n_old > 0) {
        bring(x, &r->old[draw(x, r->n_old < 4 ? r->n_old : 4)]);
    }
}

static void of_another_start(storm *x, uint32_t rank)
{
    tn_frame f = cast(x, &x->pull, rank, fresh(x, rank));
    f.incarnation += 1 + draw(x, 5);
    refuse(x, f, TN_REFUSAL_INCARNATION);
}

static void too_far_ahead(storm *x, uint32_t rank)
{
    const uint64_t far = x->of[rank].sequence + TN_DEDUP_WINDOW + 1 + draw(x, 1000);
    refuse(x, serving_push(x->s, rank, draw(x, 9) == 0 ? UINT64_MAX : far, 1), TN_REFUSAL_BEYOND);
}

/* Whether the block, filled with anything, is still one that could be meant. */
static bool fill_block(storm *x, tn_frame *f)
{
    const tn_keyblock_rules rules = {&x->s->shares->owners, &x->s->m->layout, 0};
    tn_keyblock block CLEANUP(tn_keyblock_done) = {0};
    char *at = x->s->payload + TN_PULL_PARAMS;
    for (uint64_t i = TN_PULL_PARAMS + draw(x, 4); i < f->bytes; i++) {
        x->s->payload[i] = (char)draw(x, 256);
    }
    const tn_drop why = tn_keyblock_read(&block, at, f->bytes - TN_PULL_PARAMS, f->count, &rules);
    return why == TN_DROP_NONE;
}

static void bad_pull(storm *x, uint32_t rank)
{
    const bool full = x->of[rank].open == 2;
    tn_frame f = cast(x, &x->pull, rank, fresh(x, rank));
    switch (draw(x, 6)) {
    case 0:
        tn_store_f64(x->s->payload + 8, draw(x, 2) == 0 ? (double)NAN : -1);
        break;
    case 1:
        f.count[TN_ROW_FLOATS]++;
        break;
    case 2:
        f.count[TN_KEYS]++;
        break;
    case 3:
        f = cast(x, &x->foreign, rank, f.sequence);
        break;
    case 4:
        x->s->payload[TN_PULL_PARAMS + draw(x, TN_KEY_ARRAYS)] = 77; /* a column's width */
        break;
    default:
        if (!full && fill_block(x, &f)) {
            return;
        }
    }
    refuse(x, f, full ? TN_REFUSAL_FULL : TN_REFUSAL_DAMAGED);
}

static void bad_push(storm *x, uint32_t rank)
{
    const float bad[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    const sender *r = &x->of[rank];
    const bool full = r->pushed || r->open == 0; /* two at once, or before its pull */
    tn_frame f = serving_push(x->s, rank, fresh(x, rank), 5);
    tn_refusal code = TN_REFUSAL_DAMAGED;
    switch (draw(x, 4)) {
    case 0:
        tn_store_f64(x->s->payload + 8, draw(x, 2) == 0 ? (double)INFINITY : -1); /* lr_factor */
        break;
    case 1:
        f.count[TN_KEYS]--;
        break;
    case 2:
        f.count[TN_DENSE_FLOATS]--;
        f.bytes -= sizeof(float);
        break;
    default:
        memcpy(x->s->payload + TN_PUSH_PARAMS +
                   draw(x, SERVING_FLOATS + SERVING_OWN) * sizeof(float),
               &bad[draw(x, 3)], sizeof(float));
        code = TN_REFUSAL_DIVERGED;
    }
    refuse(x, f, full ? TN_REFUSAL_FULL : code);
}

static void bad_norm(storm *x, uint32_t rank)
{
    tn_frame f = serving_norm(x->s, rank, fresh(x, rank), draw(x, 2) == 0 ? -1 : (double)NAN);
    const bool two = draw(x, 2) == 0;
    f.count[TN_DENSE_FLOATS] += two;
    f.bytes += two ? sizeof(double) : 0;
    refuse(x, f, two ? TN_REFUSAL_DAMAGED : TN_REFUSAL_DIVERGED);
}

static void strike(storm *x)
{
    static void (*const ways[])(storm *, uint32_t) = {
        harmed, harmed, replayed, of_another_start, too_far_ahead, bad_pull, bad_push, bad_norm,
    };
    for (uint64_t n = x->hostile ? 1 + draw(x, SEQUENCE_MOST) : 0; n > 0; n--) {
        const uint32_t rank = (uint32_t)draw(x, SERVING_RANKS);
        ways[draw(x, sizeof ways / sizeof *ways)](x, rank);
    }
    x->n_strikes++;
    receive_answers(x);
}

/* ---- those who keep the rules ---- */

static void send_good(storm *x, const tn_frame *f)
{
    sender *r = &x->of[f->rank];
    harm_message *m = &r->old[r->n_old++ % 4];
    *m = message_of(x, *f);
    r->sequence = f->sequence;
    r->open += f->type == TN_FRAME_PULL;
    r->pushed = f->type == TN_FRAME_PUSH;
    bring(x, m);
}

static void pull_all(storm *x, uint64_t sequence[SERVING_RANKS])
{
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        sequence[r] = x->of[r].sequence + 1;
        const tn_frame f = cast(x, &x->pull, r, sequence[r]);
        send_good(x, &f);
        strike(x); /* between two ranks, and when both have pulled */
    }
}

static void push_all(storm *x, uint32_t step, uint64_t sequence[SERVING_RANKS])
{
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        const float gradient = (float)(int)((step * 7 + r * 3) % 11 - 5) / 16;
        sequence[r] = x->of[r].sequence + 1;
        const tn_frame f = serving_push(x->s, r, sequence[r], gradient);
        send_good(x, &f);
        if (r == 0) {
            strike(x); /* what is late: the step is half done */
        }
    }
    await(x, sequence);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        x->of[r].open--;
        x->of[r].pushed = false;
    }
}

/* Every third step the pulls of the next one come before its pushes. */
static void train(storm *x)
{
    uint64_t pulled[2][SERVING_RANKS];
    uint64_t pushed[SERVING_RANKS];
    bool ahead = false;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t *now = pulled[step % 2];
        if (!ahead) {
            strike(x);
            pull_all(x, now);
        }
        await(x, now);
        strike(x);
        ahead = step % 3 == 0 && step + 1 < STEPS;
        if (ahead) {
            pull_all(x, pulled[(step + 1) % 2]);
            strike(x);
        }
        push_all(x, step, pushed);
    }
}

static void run_storm(storm *x, bool hostile)
{
    x->s = serving_new((double)INFINITY);
    x->hostile = hostile;
    x->pull = mould_of(x->s, serving_pull(x->s, 0, 1));
    x->foreign = mould_of(x->s, serving_pull_keys(x->s, 0, 1, &x->s->foreign, 1));
    x->stream = tn_stream2(59, 1, 1);
    x->limits = (tn_frame_limits){.job = JOB,
                                  .session = SESSION,
                                  .bytes_max = TN_FRAME_HEAD + SERVING_BYTES,
                                  .peers = SERVING_RANKS,
                                  .count_max = {1000, 1000, 1000}};
    assert_int_equal(pthread_create(&x->worker, NULL, work, x), 0);
    train(x);
    atomic_store(&x->stop, true);
    tn_wakeup_signal(&x->s->replies.wakeup);
    assert_int_equal(pthread_join(x->worker, NULL), 0);
    assert_false(atomic_load(&x->failed));
    receive_answers(x);
    for (uint32_t k = 0; k < SERVING_KEYS; k++) {
        kit_row row;
        assert_true(kit_row_of(x->s->shard.table, x->s->key[k], &row));
        x->table[k] = tn_crc32c((uint32_t)row.view.show, row.data, SERVING_DIM * sizeof(float));
    }
    assert_int_equal(tn_table_rows(x->s->shard.table), SERVING_KEYS);
    x->weights = tn_crc32c(0, x->s->weights, sizeof x->s->weights);
    serving_free(x->s);
}

static void check_counts(const storm *x)
{
    uint64_t dropped = 0;
    for (uint32_t why = TN_DROP_NONE + 1; why < TN_DROPS; why++) {
        dropped += x->dropped[why];
        assert_true(x->dropped[why] >= x->expected_drops[why]);
        if (why <= TN_DROP_SIZE) {
            assert_true(x->dropped[why] > 100); /* every reason a header can give */
        }
    }
    assert_int_equal(dropped, x->sent_harmed);
    for (uint32_t code = 0; code < REFUSALS; code++) {
        assert_int_equal(x->refused[code], x->expected[code]);
    }
    const tn_refusal reached[] = {TN_REFUSAL_INCARNATION, TN_REFUSAL_BEYOND, TN_REFUSAL_DAMAGED,
                                  TN_REFUSAL_FULL, TN_REFUSAL_DIVERGED};
    for (size_t i = 0; i < sizeof reached / sizeof *reached; i++) {
        assert_true(x->refused[reached[i]] > 1000);
    }
}

TEST(r50000_hostile_sequences_change_no_bit_of_good_steps)
{
    storm *quiet FREED(tn_free) = tn_alloc(1, sizeof *quiet, "steps");
    storm *loud FREED(tn_free) = tn_alloc(1, sizeof *loud, "steps");
    run_storm(quiet, false);
    run_storm(loud, true);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        assert_int_equal(loud->of[r].sequence, 2 * STEPS);
        assert_memory_equal(loud->of[r].told, quiet->of[r].told, sizeof quiet->of[r].told);
    }
    assert_memory_equal(loud->table, quiet->table, sizeof quiet->table);
    assert_int_equal(loud->weights, quiet->weights);
    check_counts(loud);
    assert_int_equal(loud->n_strikes, SEQUENCES);
}
