/* window_totals.c - adds up the steps of a window, of this rank and of the others. */
#include "train/report/window_totals.h"

#include "base/codec/json.h"
#include "base/machine/limits.h"
#include "metrics/metrics_pack.h"
#include "train/report/metrics_jsonl.h"

#include <math.h>

tn_status tn_window_totals_init(tn_window_totals *w, const tn_metrics_opts *kinds,
                                const tn_ranks *ranks, double now, tn_error *err)
{
    const tn_metrics_opts coarse = {
        .target = kinds->target, .coarse = true, .sampling = kinds->sampling};
    *w = (tn_window_totals){.begin = now, .ranks = ranks};
    TN_TRY(tn_metrics_new(&w->metrics, &coarse, err));
    if (ranks == NULL) {
        return TN_OK;
    }
    TN_TRY(tn_metrics_new(&w->whole, &coarse, err));
    TN_TRY(tn_metrics_new(&w->before, &coarse, err));
    return tn_metrics_new(&w->now, &coarse, err);
}

void tn_window_totals_done(tn_window_totals *w)
{
    tn_metrics_free(w->metrics);
    tn_metrics_free(w->whole);
    tn_metrics_free(w->before);
    tn_metrics_free(w->now);
    *w = (tn_window_totals){0};
}

void tn_window_totals_clear(tn_window_totals *w, double now)
{
    tn_metrics_clear(w->metrics);
    if (w->whole != NULL) {
        tn_metrics_clear(w->whole);
    }
    *w = (tn_window_totals){.begin = now,
                            .metrics = w->metrics,
                            .ranks = w->ranks,
                            .whole = w->whole,
                            .before = w->now, /* the last window is reported */
                            .now = w->before,
                            .others = w->others,
                            .others_before = w->others,
                            .bytes_in = w->bytes_in,
                            .bytes_out = w->bytes_out,
                            .in_before = w->bytes_in,
                            .out_before = w->bytes_out};
}

void tn_window_totals_add(tn_window_totals *w, const tn_window_step *s)
{
    const tn_step_turn *turn = s->turn;
    const tn_learned *learned = &turn->learned;
    TN_ASSERT(s->bytes_in >= w->bytes_in && s->bytes_out >= w->bytes_out);
    w->steps++;
    w->rows += s->joint;
    w->keys += turn->step != NULL ? turn->step->local->keys.n : 0;
    w->loss += learned->loss * turn->weight;
    w->weight += turn->weight;
    w->grad_norm += learned->grad_norm;
    w->bytes_in = s->bytes_in;
    w->bytes_out = s->bytes_out;
    w->wait_read_s += turn->waited_s;
    w->wait_pull_s += turn->waits.rows_s;
    w->wait_push_s += turn->waits.weights_s;
    w->compute_s += turn->took_s;
    w->lr = s->lr;
    w->staleness = learned->staleness > w->staleness ? learned->staleness : w->staleness;
}

tn_status tn_window_totals_hear(tn_window_totals *w, tn_error *err)
{
    if (w->ranks == NULL) {
        return TN_OK;
    }
    w->ranks->ops->sums(w->ranks->self, &w->others);
    TN_TRY(w->ranks->ops->scores(w->ranks->self, w->now, err));
    tn_metrics_clear(w->whole);
    TN_TRY(tn_metrics_merge(w->whole, w->now, err));
    tn_metrics_subtract(w->whole, w->before);
    return tn_metrics_merge(w->whole, w->metrics, err);
}

double tn_window_totals_loss(const tn_window_totals *w)
{
    const double weight = w->weight + w->others.weight - w->others_before.weight;
    const double loss = w->loss + w->others.loss - w->others_before.loss;
    return weight > 0 ? loss / weight : (double)NAN;
}

const tn_metrics *tn_window_totals_metrics(const tn_window_totals *w)
{
    return w->whole != NULL ? w->whole : w->metrics;
}

void tn_window_totals_record(const tn_window_totals *w, double now, bool hex, tn_text *t)
{
    TN_ASSERT(w->steps > 0);
    static const char *const names[] = {"auc", "copc", "ctr", "pctr"};
    static const char *const of_numbers[] = {"rmse", "mae", "label_mean", "prediction_mean"};
    const tn_metrics *m = tn_window_totals_metrics(w);
    const tn_target target = tn_metrics_target(m);
    const double seconds = now - w->begin;
    const double steps = (double)w->steps;
    const uint64_t rows = w->rows + w->others.rows - w->others_before.rows;
    tn_memory_use use;
    tn_memory_use_of("", &use);
    tn_journal_loss(t, tn_window_totals_loss(w), hex);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *name = target == TN_TARGET_NUMBER ? of_numbers[i] : names[i];
        if (tn_metric_fits(name, target)) {
            tn_json_f64(t, name, tn_metrics_get(m, name));
        }
    }
    tn_json_f64(t, "lr", w->lr);
    tn_json_f64(t, "rows_per_s", seconds > 0 ? (double)rows / seconds : (double)NAN);
    tn_json_f64(t, "grad_norm", w->grad_norm / steps);
    tn_json_u64(t, "keys", w->keys / w->steps);
    tn_json_u64(t, "rss_bytes", use.resident);
    tn_json_open_key(t, "wait_ms", '{');
    tn_json_f64(t, "read", 1e3 * w->wait_read_s / steps);
    tn_json_f64(t, "pull", 1e3 * w->wait_pull_s / steps);
    tn_json_f64(t, "push", 1e3 * w->wait_push_s / steps);
    tn_json_close(t, '}');
    tn_json_f64(t, "compute_ms", 1e3 * w->compute_s / steps);
    tn_json_u64(t, "pulled_bytes", w->bytes_in - w->in_before);
    tn_json_u64(t, "pushed_bytes", w->bytes_out - w->out_before);
    tn_json_u64(t, "staleness_max", w->staleness);
}
