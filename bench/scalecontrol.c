/* scalecontrol.c - what rank 0 does for its group: see scale.h. */
#include "scaleroot.h"

#include "base/core/alloc.h"
#include "cluster/net/link.h"
#include "cluster/sync/sync_server.h"
#include "cluster/wire/control_messages.h"

#include <malloc.h>
#include <stdio.h>

enum {
    PARTS_EACH = 16, /* of a rank in an epoch */
    POLLS = 10,      /* a second */
};

#define SECOND UINT64_C(1000000000)
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

double tn_scale_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

void tn_scale_note_write(tn_scale_root *w, tn_frame_type type, uint32_t rank, const void *note,
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

void tn_scale_note_read(tn_scale_root *w, const tn_scale_message *m, tn_frame *frame, void *note)
{
    tn_scale_open(m, w->n, frame);
    tn_arena_reset(w->arena);
    tn_drop why = tn_note_read(note, frame->type, frame->payload, frame->bytes, w->arena);
    TN_ASSERT(why == TN_DROP_NONE);
}

/* ---- the group forms ---- */

static tn_hello_note hello_of(const tn_scale_root *w, uint32_t rank, char host[32],
                              char address[64])
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

static void write_hellos(tn_scale_root *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        char host[32];
        char address[64];
        const tn_hello_note note = hello_of(w, r, host, address);
        tn_scale_note_write(w, TN_FRAME_HELLO, r, &note, &w->hello[r]);
        w->out->hello += r > 0 ? (double)w->hello[r].size : 0;
    }
}

static void new_rendezvous(tn_scale_root *w)
{
    char host[32];
    char address[64];
    const tn_hello_note own = hello_of(w, 0, host, address);
    tn_status status = tn_rendezvous_new(&w->rendezvous, &w->shares->owners, 1, &own, NULL);
    TN_ASSERT(status == TN_OK);
}

static void form(tn_scale_root *w)
{
    tn_text why = {0};
    tn_welcome_note welcome;
    w->out->welcome = 0;
    for (uint32_t r = 1; r < w->n; r++) {
        tn_frame f;
        tn_hello_note note;
        tn_scale_note_read(w, &w->hello[r], &f, &note);
        uint32_t refusal = tn_rendezvous_hello(w->rendezvous, f.rank, f.incarnation, &note, &why);
        TN_ASSERT(refusal == 0);
    }
    tn_rendezvous_welcome(w->rendezvous, &welcome);
    for (uint32_t r = 1; r < w->n; r++) {
        tn_scale_note_write(w, TN_FRAME_WELCOME, 0, &welcome, &w->message);
        w->out->welcome += (double)w->message.size;
    }
}

/* ---- a second ---- */

static void write_beats(tn_scale_root *w, uint64_t second)
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
        tn_scale_note_write(w, TN_FRAME_BEAT, r, &note, &w->beat[r]);
    }
}

static void receive_beat(tn_scale_root *w, const tn_scale_message *m)
{
    tn_frame f;
    tn_beat_note beat;
    tn_scale_note_read(w, m, &f, &beat);
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
static void second_of_beats(tn_scale_root *w)
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
        tn_scale_note_write(w, TN_FRAME_BEAT, 0, &own, &w->message);
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

static void print_table(tn_scale_root *w)
{
    tn_text_clear(&w->note);
    tn_failure_detector_table(w->detector, w->now, &w->note);
    TN_ASSERT(!w->note.failed);
}

/* ---- parts ---- */

static void new_ledger(tn_scale_root *w)
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
static void deal(tn_scale_root *w, const tn_scale_message *ask, uint64_t id)
{
    tn_frame f;
    tn_ask_note note;
    tn_ledger_deal got;
    tn_scale_note_read(w, ask, &f, &note);
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
    tn_scale_note_write(w, TN_FRAME_PART, 0, &part, &w->message);
}

/* Every rank gets one more part; microseconds of each. Ranks ask in turn, so rank r has got part
 * id * n + r with its id-th ask. */
static void deal_round(tn_scale_root *w, uint64_t id)
{
    tn_scale_message ask = {0};
    for (uint32_t r = 0; r < w->n; r++) {
        const uint64_t zero = 0;
        const uint64_t done = id > 2 ? (id - 3) * w->n + r : 0;
        tn_ask_note note = {0};
        if (id > 2) { /* two at a time are in its hands */
            note.done = (tn_note_parts){{&done, 1}, {&zero, 1}, {&zero, 1}};
        }
        tn_scale_note_write(w, TN_FRAME_ASK, r, &note, &ask);
        const double start = tn_scale_cpu_s();
        deal(w, &ask, id);
        tn_sample(&w->out->deal_us, 1e6 * (tn_scale_cpu_s() - start));
        w->out->deal = (double)(ask.size + w->message.size);
    }
    tn_scale_message_done(&ask);
}

/* ---- all of it ---- */

static void new_detector(tn_scale_root *w)
{
    const tn_failure_detector_opts opts = {.size = w->n};
    tn_status status = tn_failure_detector_new(&w->detector, &opts, NULL);
    TN_ASSERT(status == TN_OK);
}

/* Bytes that it takes for each rank. */
static double bytes_of(void (*make)(tn_scale_root *w), tn_scale_root *w)
{
    const double before = tn_scale_bytes();
    make(w);
    return (tn_scale_bytes() - before) / w->n;
}

static void new_books(tn_scale_root *w)
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

static void root_done(tn_scale_root *w)
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

static void sample_ms(tn_samples *s, void (*what)(tn_scale_root *w), tn_scale_root *w)
{
    const double start = tn_scale_cpu_s();
    what(w);
    tn_sample(s, 1e3 * (tn_scale_cpu_s() - start));
}

void tn_scale_control_measure(tn_scale_control *c, uint32_t n_ranks, uint32_t rounds)
{
    tn_scale_root w = {.n = n_ranks, .out = c, .arena = tn_arena_new(1 << 16), .now = SECOND};
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
    tn_scale_reports_measure(&w, rounds);
    tn_scale_cuts_measure(&w, rounds);
    c->link = (double)tn_link_rank_bytes();
    c->owner = (double)tn_sync_server_rank_bytes();
    root_done(&w);
}
