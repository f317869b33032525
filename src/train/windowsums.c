/* windowsums.c - see windowsums.h. */
#include "train/windowsums.h"

#include <math.h>

tn_status tn_window_sums_init(tn_window_sums *w, double sampling, double now, tn_error *err)
{
    const tn_metrics_opts coarse = {.coarse = true, .sampling = sampling};
    *w = (tn_window_sums){.begin = now};
    return tn_metrics_new(&w->metrics, &coarse, err);
}

void tn_window_sums_done(tn_window_sums *w)
{
    tn_metrics_free(w->metrics);
    w->metrics = NULL;
}

void tn_window_sums_clear(tn_window_sums *w, double now)
{
    tn_metrics_clear(w->metrics);
    *w = (tn_window_sums){.begin = now,
                          .metrics = w->metrics,
                          .bytes_in = w->bytes_in,
                          .bytes_out = w->bytes_out,
                          .in_before = w->bytes_in,
                          .out_before = w->bytes_out};
}

tn_status tn_window_sums_add(tn_window_sums *w, const tn_report_step *s, tn_error *err)
{
    w->steps++;
    w->rows += s->rows->n;
    w->joint += s->joint;
    w->keys += s->keys;
    w->loss += s->learned->loss * s->rows->n;
    w->grad_norm += s->learned->grad_norm;
    w->bytes_in = s->bytes_in;
    w->bytes_out = s->bytes_out;
    w->wait_read_s += s->wait_read_s;
    w->wait_pull_s += s->wait_pull_s;
    w->wait_push_s += s->wait_push_s;
    w->compute_s += s->compute_s;
    w->lr = s->lr;
    w->staleness = s->learned->staleness > w->staleness ? s->learned->staleness : w->staleness;
    return tn_metrics_add(w->metrics, s->rows, err);
}

tn_journal_train_record tn_window_sums_record(const tn_window_sums *w, double now)
{
    TN_ASSERT(w->steps > 0);
    double seconds = now - w->begin;
    double steps = (double)w->steps;
    return (tn_journal_train_record){
        .window = w->metrics,
        .loss = w->rows > 0 ? w->loss / (double)w->rows : (double)NAN,
        .lr = w->lr,
        .rows_per_s = seconds > 0 ? (double)w->joint / seconds : (double)NAN,
        .grad_norm = w->grad_norm / steps,
        .wait_read_ms = 1e3 * w->wait_read_s / steps,
        .wait_pull_ms = 1e3 * w->wait_pull_s / steps,
        .wait_push_ms = 1e3 * w->wait_push_s / steps,
        .pulled_bytes = w->bytes_in - w->in_before,
        .pushed_bytes = w->bytes_out - w->out_before,
        .compute_ms = 1e3 * w->compute_s / steps,
        .keys = w->keys / w->steps,
        .staleness_max = w->staleness,
    };
}
