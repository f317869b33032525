/* scalecontrol.c - what rank 0 does for its group: see scale.h. */
#include "scale.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/text.h"
#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "cluster/group/failure_detector.h"
#include "cluster/group/rendezvous.h"
#include "cluster/ledger/ledger.h"
#include "cluster/net/link.h"
#include "cluster/sync/sync_server.h"
#include "cluster/wire/control_messages.h"
#include "metrics/metrics_pack.h"

#include <malloc.h>
#include <stdio.h>

enum {
    PARTS_EACH = 16, /* of a rank in an epoch */
    POLLS = 10,      /* a second */
};

#define SECOND UINT64_C(1000000000)
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Rank 0 of a group that is simulated. */
typedef struct root {
    uint32_t n;
    tn_scale_control *out;
    tn_shares *shares;
    tn_arena *arena; /* of the note that was read last */
    tn_rendezvous *rendezvous;
    tn_failure_detector *detector;
    tn_ledger *ledger;
    tn_text note;
    tn_scale_message *hello, *beat; /* of each rank */
    tn_scale_message message;       /* the latest that was written */
    uint64_t now;
} root;

/* Memory in use, large pieces that the system gave included. */
static double bytes_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

static void note_write(root *w, tn_frame_type type, uint32_t rank, const void *note,
                       tn_scale_message *m)
{
    tn_text_clear(&w->note);
    tn_note_write(type, note, &w->note);
    TN_ASSERT(!w->note.failed);
    char *payload = tn_scale_payload(m, w->note.size);
    for (size_t i = 0; i < w->note.size; i++) {
        payload[i] = w->note.data[i];
    }
    tn_scale_seal(m, &(tn_frame){.type = type, .rank = rank});
}

/* What the note holds lives until the next one is read. */
static void note_read(root *w, const tn_scale_message *m, tn_frame *frame, void *note)
{
    tn_scale_open(m, w->n, frame);
    tn_arena_free(w->arena);
    w->arena = tn_arena_new(1 << 16);
    tn_drop why = tn_note_read(note, frame->type, frame->payload, frame->bytes, w->arena);
    TN_ASSERT(why == TN_DROP_NONE);
}

/* ---- reports of all ranks, and cuts ---- */

enum {
    SCORED = 1 << 17, /* rows of a rank behind the metrics that it reports */
    REPORTERS = 16,   /* ranks that report */
};

/* Metrics of a rank that has scored some rows. */
static void pack_metrics(tn_text *out)
{
    const tn_metrics_opts opts = {0};
    tn_metrics *m = NULL;
    tn_status status = tn_metrics_new(&m, &opts, NULL);
    TN_ASSERT(status == TN_OK);
    const uint64_t stream = tn_stream2(2, TN_RNG_GENERATE, 0);
    for (uint64_t i = 0; i < SCORED; i++) {
        const double z = -3 + 1.5 * tn_normal(tn_draw(stream, 2 * i));
        const float logit = (float)z;
        const float label = tn_unit(tn_draw(stream, 2 * i + 1)) < tn_sigmoid(z) ? 1 : 0;
        status = tn_metrics_add(m, &(tn_scored){.n = 1, .logit = &logit, .label = &label}, NULL);
        TN_ASSERT(status == TN_OK);
    }
    tn_metrics_pack(m, out);
    TN_ASSERT(!out->failed);
    tn_metrics_free(m);
}

/* Seconds of reading one report and keeping what it says. */
static double take_report(root *w, tn_peer_metrics *metrics)
{
    tn_frame f;
    tn_report_note note;
    const double start = tn_scale_cpu_s();
    note_read(w, &w->message, &f, &note);
    tn_status status =
        tn_peer_metrics_put(metrics, f.rank, note.number, note.metrics.at, note.metrics.n, NULL);
    TN_ASSERT(status == TN_OK);
    return tn_scale_cpu_s() - start;
}

/* Ranks report, then all are added up. */
static void measure_reports(root *w, uint32_t rounds)
{
    const tn_metrics_opts opts = {0};
    tn_text packed = {0};
    tn_metrics *total = NULL;
    tn_peer_metrics *metrics = NULL;
    pack_metrics(&packed);
    uint32_t n = w->n;
    if (n > REPORTERS) {
        n = REPORTERS;
    }
    tn_status status = tn_metrics_new(&total, &opts, NULL);
    TN_ASSERT(status == TN_OK);
    const double before = bytes_in_use();
    status = tn_peer_metrics_new(&metrics, w->n, &opts, NULL);
    TN_ASSERT(status == TN_OK);
    for (uint32_t i = 0; i < rounds; i++) {
        double seconds = 0;
        for (uint32_t r = 0; r < n; r++) {
            const tn_report_note note = {.number = i + 1,
                                         .records = SCORED,
                                         .samples = SCORED,
                                         .loss_sum = .5,
                                         .weight_sum = SCORED,
                                         .metrics = {packed.data, packed.size}};
            note_write(w, TN_FRAME_REPORT, r, &note, &w->message);
            seconds += take_report(w, metrics);
        }
        const double start = tn_scale_cpu_s();
        status = tn_peer_metrics_total(metrics, total, NULL);
        TN_ASSERT(status == TN_OK);
        seconds += tn_scale_cpu_s() - start;
        tn_sample(&w->out->report_us, 1e6 * seconds / n);
    }
    w->out->report = (double)w->message.size;
    w->out->metrics = (bytes_in_use() - before) / n;
    tn_peer_metrics_free(metrics);
    tn_metrics_free(total);
    tn_text_done(&packed);
}

/* CUT and MARK to every rank; each says what it has sent to all, and what of all it has applied. */
static void cut(root *w, const tn_scale_message *sent, const tn_scale_message *marked)
{
    w->out->cut = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const tn_order_note order = {.what = i == 0 ? TN_ORDER_CUT : TN_ORDER_MARK, .number = 7};
        const tn_scale_message *done = i == 0 ? sent : marked;
        for (uint32_t r = 1; r < w->n; r++) {
            tn_frame f;
            tn_done_note note;
            note_write(w, TN_FRAME_ORDER, 0, &order, &w->message);
            note_read(w, done, &f, &note);
            TN_ASSERT(note.sent.n + note.low.n == w->n);
            w->out->cut += (double)(w->message.size + done->size);
        }
    }
}

static void measure_cuts(root *w, uint32_t rounds)
{
    tn_scale_message sent = {0};
    tn_scale_message marked = {0};
    uint64_t *number = tn_alloc(w->n, sizeof *number, "numbers");
    uint64_t *incarnation = tn_alloc(w->n, sizeof *incarnation, "numbers");
    const uint64_t stream = tn_stream2(3, TN_RNG_GENERATE, 0);
    for (uint32_t r = 0; r < w->n; r++) {
        number[r] = 1000000 + r;
        incarnation[r] = tn_draw(stream, r);
    }
    const tn_done_note done = {.what = TN_ORDER_CUT, .sent = {number, w->n}};
    const tn_done_note mark = {
        .what = TN_ORDER_MARK, .low = {number, w->n}, .incarnation = {incarnation, w->n}};
    note_write(w, TN_FRAME_DONE, 1, &done, &sent);
    note_write(w, TN_FRAME_DONE, 1, &mark, &marked);
    for (uint32_t i = 0; i < rounds; i++) {
        const double start = tn_scale_cpu_s();
        cut(w, &sent, &marked);
        tn_sample(&w->out->cut_ms, 1e3 * (tn_scale_cpu_s() - start));
    }
    tn_scale_message_done(&sent);
    tn_scale_message_done(&marked);
    tn_free(number);
    tn_free(incarnation);
}

/* ---- the group forms ---- */

static tn_hello_note hello_of(const root *w, uint32_t rank, char host[32], char address[64])
{
    (void)snprintf(host, 32, "node%04u.cluster", rank);
    (void)snprintf(address, 64, "tcp://10.1.%u.%u:4770", rank / 256, rank % 256);
    return (tn_hello_note){.version = "0.2.0",
                           .host = host,
                           .address = address,
                           .config_hash = HASH,
                           .structure = HASH,
                           .cpu = "avx512",
                           .pid = 1000 + rank,
                           .peers = w->n,
                           .threads = 32,
                           .started = INT64_C(1790000000000)};
}

static void write_hellos(root *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        char host[32];
        char address[64];
        const tn_hello_note note = hello_of(w, r, host, address);
        note_write(w, TN_FRAME_HELLO, r, &note, &w->hello[r]);
        w->out->hello += r > 0 ? (double)w->hello[r].size : 0;
    }
}

static void new_rendezvous(root *w)
{
    char host[32];
    char address[64];
    const tn_hello_note own = hello_of(w, 0, host, address);
    tn_status status = tn_rendezvous_new(&w->rendezvous, &w->shares->owners, 1, &own, NULL);
    TN_ASSERT(status == TN_OK);
}

static void form(root *w)
{
    tn_text why = {0};
    tn_welcome_note welcome;
    w->out->welcome = 0;
    for (uint32_t r = 1; r < w->n; r++) {
        tn_frame f;
        tn_hello_note note;
        note_read(w, &w->hello[r], &f, &note);
        uint32_t refusal = tn_rendezvous_hello(w->rendezvous, f.rank, f.incarnation, &note, &why);
        TN_ASSERT(refusal == 0);
    }
    tn_rendezvous_welcome(w->rendezvous, &welcome);
    for (uint32_t r = 1; r < w->n; r++) {
        note_write(w, TN_FRAME_WELCOME, 0, &welcome, &w->message);
        w->out->welcome += (double)w->message.size;
    }
}

/* ---- a second ---- */

static void write_beats(root *w, uint64_t second)
{
    for (uint32_t r = 0; r < w->n; r++) {
        const uint64_t part[2] = {r, w->n + r};
        const uint64_t attempt[2] = {0, 0};
        const uint64_t position[2] = {second * 30000, 0};
        const tn_beat_note note = {.state = TN_PEER_TRAINING,
                                   .records = second * 30000,
                                   .in_flight = 2,
                                   .rss_bytes = UINT64_C(4) << 30,
                                   .bytes_out = second << 28,
                                   .bytes_in = second << 28,
                                   .waits_for = 1 + (r + 1) % w->n,
                                   .rows_per_s = 30000.5,
                                   .waiting = .125,
                                   .held = {{part, 2}, {attempt, 2}, {position, 2}}};
        note_write(w, TN_FRAME_BEAT, r, &note, &w->beat[r]);
    }
}

static void receive_beat(root *w, const tn_scale_message *m)
{
    tn_frame f;
    tn_beat_note beat;
    note_read(w, m, &f, &beat);
    tn_failure_detector_received(w->detector, f.rank, &beat, f.step, w->now);
    tn_ledger_held held[2];
    for (uint32_t i = 0; i < 2; i++) {
        held[i] = (tn_ledger_held){.rank = f.rank,
                                   .part = (uint32_t)beat.held.part.at[i],
                                   .attempt = (uint32_t)beat.held.attempt.at[i],
                                   .position = beat.held.position.at[i]};
    }
    (void)tn_ledger_claim(w->ledger, f.rank, held, 2, w->now);
}

/* Beats of all come, one goes to each, and ten times somebody looks who is silent. */
static void second_of_beats(root *w)
{
    tn_failure_event event;
    tn_ledger_held asked;
    uint32_t silent;
    w->out->beat = 0;
    for (uint32_t r = 1; r < w->n; r++) {
        receive_beat(w, &w->beat[r]);
        w->out->beat += (double)w->beat[r].size;
    }
    for (uint32_t r = 1; r < w->n; r++) {
        const tn_beat_note own = {.state = TN_PEER_TRAINING, .records = 30000};
        note_write(w, TN_FRAME_BEAT, 0, &own, &w->message);
        w->out->beat += (double)w->message.size;
    }
    for (uint32_t i = 0; i < POLLS; i++) {
        w->now += SECOND / POLLS;
        bool any = tn_failure_detector_poll(w->detector, w->now, &event) ||
                   tn_ledger_straggler(w->ledger, w->now, &asked) ||
                   tn_ledger_silent(w->ledger, w->now, &silent);
        TN_ASSERT(!any);
    }
}

static void print_table(root *w)
{
    tn_text_clear(&w->note);
    tn_failure_detector_table(w->detector, w->now, &w->note);
    TN_ASSERT(!w->note.failed);
}

/* ---- parts ---- */

static void new_ledger(root *w)
{
    const uint32_t n_parts = w->n * PARTS_EACH;
    tn_ledger_span *span = tn_alloc(n_parts, sizeof *span, "spans");
    for (uint32_t i = 0; i < n_parts; i++) {
        span[i] = (tn_ledger_span){.source = i, .end = 1000};
    }
    const tn_ledger_opts opts = {.ranks = w->n,
                                 .n_parts = n_parts,
                                 .mode = TN_LEDGER_ON_REQUEST,
                                 .relaxed = true,
                                 .part = span};
    tn_status status = tn_ledger_new(&w->ledger, &opts, NULL);
    TN_ASSERT(status == TN_OK);
    tn_free(span);
}

/* `id`: of the rank's ask. What it says is done is what it got with the one before. */
static void deal(root *w, const tn_scale_message *ask, uint64_t id)
{
    tn_frame f;
    tn_ask_note note;
    tn_ledger_deal got;
    note_read(w, ask, &f, &note);
    for (size_t i = 0; i < note.done.part.n; i++) {
        bool done = tn_ledger_done(w->ledger, f.rank, (uint32_t)note.done.part.at[i],
                                   (uint32_t)note.done.attempt.at[i], w->now);
        TN_ASSERT(done);
    }
    tn_ledger_answer answer = tn_ledger_ask(w->ledger, f.rank, 0, id, w->now, &got);
    TN_ASSERT(answer == TN_LEDGER_PART);
    const tn_part_note part = {.part = got.part,
                               .source = got.span.source,
                               .begin = got.span.begin,
                               .end = got.span.end,
                               .attempt = got.attempt,
                               .position = got.position};
    note_write(w, TN_FRAME_PART, 0, &part, &w->message);
}

/* Every rank gets one more part; microseconds of each. Ranks ask in turn, so rank r has got part
 * id * n + r with its id-th ask. */
static void deal_round(root *w, uint64_t id)
{
    tn_scale_message ask = {0};
    for (uint32_t r = 0; r < w->n; r++) {
        const uint64_t zero = 0;
        const uint64_t done = id > 2 ? (id - 3) * w->n + r : 0;
        tn_ask_note note = {0};
        if (id > 2) { /* two at a time are in its hands */
            note.done = (tn_note_parts){{&done, 1}, {&zero, 1}, {&zero, 1}};
        }
        note_write(w, TN_FRAME_ASK, r, &note, &ask);
        const double start = tn_scale_cpu_s();
        deal(w, &ask, id);
        tn_sample(&w->out->deal_us, 1e6 * (tn_scale_cpu_s() - start));
        w->out->deal = (double)(ask.size + w->message.size);
    }
    tn_scale_message_done(&ask);
}

/* ---- all of it ---- */

static void new_detector(root *w)
{
    tn_status status = tn_failure_detector_new(&w->detector, w->n, TN_FAILURE_GAP_NS, NULL);
    TN_ASSERT(status == TN_OK);
}

/* Bytes that it takes for each rank. */
static double bytes_of(void (*make)(root *w), root *w)
{
    const double before = bytes_in_use();
    make(w);
    return (bytes_in_use() - before) / w->n;
}

static void new_books(root *w)
{
    w->out->rendezvous = bytes_of(new_rendezvous, w);
    w->out->ledger = bytes_of(new_ledger, w);
    w->out->detector = bytes_of(new_detector, w);
    for (uint32_t r = 0; r < w->n; r++) {
        char host[32];
        char address[64];
        const tn_hello_note note = hello_of(w, r, host, address);
        tn_failure_detector_name(w->detector, r, note.host, note.pid);
        if (r > 0) {
            tn_failure_detector_watch(w->detector, r, w->now);
        }
    }
}

static void root_done(root *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        tn_scale_message_done(&w->hello[r]);
        tn_scale_message_done(&w->beat[r]);
    }
    tn_free(w->hello);
    tn_free(w->beat);
    tn_scale_message_done(&w->message);
    tn_text_done(&w->note);
    tn_ledger_free(w->ledger);
    tn_failure_detector_free(w->detector);
    tn_rendezvous_free(w->rendezvous);
    tn_arena_free(w->arena);
    tn_shares_free(w->shares);
}

static void sample_ms(tn_samples *s, void (*what)(root *w), root *w)
{
    const double start = tn_scale_cpu_s();
    what(w);
    tn_sample(s, 1e3 * (tn_scale_cpu_s() - start));
}

void tn_scale_control_measure(tn_scale_control *c, uint32_t n_ranks, uint32_t rounds)
{
    root w = {.n = n_ranks, .out = c, .arena = tn_arena_new(1 << 16), .now = SECOND};
    tn_status status = tn_shares_new(&w.shares, n_ranks, TN_SCALE_DENSE, NULL);
    TN_ASSERT(status == TN_OK);
    w.hello = tn_alloc(n_ranks, sizeof *w.hello, "messages");
    w.beat = tn_alloc(n_ranks, sizeof *w.beat, "messages");
    new_books(&w);
    write_hellos(&w);
    for (uint32_t i = 0; i < rounds; i++) {
        sample_ms(&c->form_ms, form, &w);
        tn_rendezvous_free(w.rendezvous);
        new_rendezvous(&w);
    }
    deal_round(&w, 1);
    deal_round(&w, 2);
    for (uint32_t i = 0; i < rounds; i++) {
        write_beats(&w, i);
        sample_ms(&c->beats_ms, second_of_beats, &w);
        sample_ms(&c->table_ms, print_table, &w);
    }
    for (uint64_t id = 3; id <= PARTS_EACH; id++) {
        deal_round(&w, id);
    }
    measure_reports(&w, rounds);
    measure_cuts(&w, rounds);
    c->link = (double)tn_link_rank_bytes();
    c->owner = (double)tn_sync_server_rank_bytes();
    root_done(&w);
}
