/* scalereports.c - reports of all ranks and cuts, as rank 0 has them: see scale.h. */
#include "scaleroot.h"

#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "cluster/wire/control_messages.h"
#include "metrics/metrics_pack.h"

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
static double take_report(tn_scale_root *w, tn_peer_metrics *metrics)
{
    tn_frame f;
    tn_report_note note;
    const double start = tn_scale_cpu_s();
    tn_scale_note_read(w, &w->message, &f, &note);
    tn_status status =
        tn_peer_metrics_put(metrics, f.rank, note.number, note.metrics.at, note.metrics.n, NULL);
    TN_ASSERT(status == TN_OK);
    return tn_scale_cpu_s() - start;
}

/* Ranks report, then all are added up. */
void tn_scale_reports_measure(tn_scale_root *w, uint32_t rounds)
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
    const double before = tn_scale_bytes();
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
            tn_scale_note_write(w, TN_FRAME_REPORT, r, &note, &w->message);
            seconds += take_report(w, metrics);
        }
        const double start = tn_scale_cpu_s();
        status = tn_peer_metrics_total(metrics, total, NULL);
        TN_ASSERT(status == TN_OK);
        seconds += tn_scale_cpu_s() - start;
        tn_sample(&w->out->report_us, 1e6 * seconds / n);
    }
    w->out->report = (double)w->message.size;
    w->out->metrics = (tn_scale_bytes() - before) / n;
    tn_peer_metrics_free(metrics);
    tn_metrics_free(total);
    tn_text_done(&packed);
}

/* CUT and MARK to every rank; each says what it has sent to all, and what of all it has applied. */
static void cut(tn_scale_root *w, const tn_scale_message *sent, const tn_scale_message *marked)
{
    w->out->cut = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const tn_order_note order = {.what = i == 0 ? TN_ORDER_CUT : TN_ORDER_MARK, .number = 7};
        const tn_scale_message *done = i == 0 ? sent : marked;
        for (uint32_t r = 1; r < w->n; r++) {
            tn_frame f;
            tn_done_note note;
            tn_scale_note_write(w, TN_FRAME_ORDER, 0, &order, &w->message);
            tn_scale_note_read(w, done, &f, &note);
            TN_ASSERT(note.sent.n + note.low.n == w->n);
            w->out->cut += (double)(w->message.size + done->size);
        }
    }
}

void tn_scale_cuts_measure(tn_scale_root *w, uint32_t rounds)
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
    tn_scale_note_write(w, TN_FRAME_DONE, 1, &done, &sent);
    tn_scale_note_write(w, TN_FRAME_DONE, 1, &mark, &marked);
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
