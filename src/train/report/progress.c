/* progress.c - pacing, smoothing and the text of the line. */
#include "train/report/progress.h"

#include <math.h>
#include <string.h>

#define TERMINAL_SECONDS 0.5
#define SMOOTHING_SECONDS 20.0 /* how far back rates look */
#define DAY_SECONDS 86400.0

enum {
    WIDTH_DEFAULT = 80,
    BAR_MAX = 30,
    BAR_MIN = 8,
};

/* In the largest of n units that leaves at least one; returns which. */
static uint32_t scale(double *value, uint32_t n)
{
    uint32_t unit = 0;
    for (; *value >= 999.5 && unit + 1 < n; unit++) {
        *value /= 1000;
    }
    return unit;
}

void tn_put_count(tn_text *out, double count)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    const uint32_t unit = scale(&count, sizeof units / sizeof units[0]);
    const int decimals = unit == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
    tn_text_addf(out, "%.*f%s", decimals, count, units[unit]);
}

void tn_put_bytes(tn_text *out, double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    const uint32_t unit = scale(&bytes, sizeof units / sizeof units[0]);
    tn_text_addf(out, "%.*f %s", unit == 0 || bytes >= 9.95 ? 0 : 1, bytes, units[unit]);
}

void tn_put_duration(tn_text *out, double seconds)
{
    double whole = floor(seconds + 0.5);
    if (!(whole >= 0 && whole < 1000 * DAY_SECONDS)) {
        tn_text_adds(out, "-:--:--");
        return;
    }
    uint32_t s = (uint32_t)whole;
    uint32_t days = s / (uint32_t)DAY_SECONDS;
    uint32_t hours = s / 3600 % 24;
    if (days > 0) {
        tn_text_addf(out, "%ud %02u", days, hours);
    } else {
        tn_text_addf(out, "%u", hours);
    }
    tn_text_addf(out, ":%02u:%02u", s / 60 % 60, s % 60);
}

static double period_of(const tn_bar *bar)
{
    return bar->opts.terminal ? TERMINAL_SECONDS : bar->opts.every;
}

/* Epochs where an early stop decides how many there are, else the share of the run. */
static double done_of(const tn_bar_state *s)
{
    return s->may_end_early ? s->epoch - 1 + s->epoch_done : s->run_done;
}

void tn_bar_init(tn_bar *bar, const tn_bar_opts *opts, const tn_bar_state *start, double now)
{
    *bar = (tn_bar){.opts = *opts};
    bar->opts.width = opts->width > 0 ? opts->width : WIDTH_DEFAULT;
    bar->next = now + period_of(bar);
    bar->last_at = now;
    bar->last_rows = start != NULL ? start->rows : 0;
    bar->last_done = start != NULL ? done_of(start) : (double)NAN;
    bar->rows_per_s = (double)NAN;
    bar->share_per_s = (double)NAN;
}

void tn_bar_done(tn_bar *bar)
{
    tn_text_done(&bar->line);
}

bool tn_bar_due(const tn_bar *bar, double now)
{
    return bar->opts.show != NULL && now >= bar->next;
}

/* Moves an average towards a rate that held for `seconds`. */
static double smooth(double average, double rate, double seconds)
{
    if (isnan(average) || isnan(rate)) {
        return rate;
    }
    double weight = seconds / (seconds + SMOOTHING_SECONDS);
    return average + weight * (rate - average);
}

void tn_bar_begin(tn_bar *bar, double now)
{
    bar->last_at = now;
    /* The pace of one step says nothing. */
    bar->next = fmax(bar->next, now + fmin(period_of(bar), TERMINAL_SECONDS));
}

static void measure(tn_bar *bar, const tn_bar_state *s, double now)
{
    double seconds = now - bar->last_at;
    if (seconds > 0 && s->rows >= bar->last_rows) {
        double rate = (double)(s->rows - bar->last_rows) / seconds;
        bar->rows_per_s = smooth(bar->rows_per_s, rate, seconds);
        bar->share_per_s =
            smooth(bar->share_per_s, (done_of(s) - bar->last_done) / seconds, seconds);
    }
    bar->last_at = now;
    bar->last_rows = s->rows;
    bar->last_done = done_of(s);
}

void tn_bar_draw(tn_bar *bar, const tn_bar_state *s, double now)
{
    measure(bar, s, now);
    bar->next = now + period_of(bar);
    if (bar->opts.show == NULL) {
        return;
    }
    TN_ASSERT(bar->opts.width > 0);
    const double goal = s->may_end_early ? s->epoch : 1;
    tn_bar_pace pace = {bar->rows_per_s, (goal - done_of(s)) / bar->share_per_s};
    tn_text_clear(&bar->line);
    tn_bar_line(s, &pace, bar->opts.terminal ? bar->opts.width - 1 : 0, &bar->line);
    bar->opts.show(bar->opts.arg, tn_text_str(&bar->line), bar->opts.terminal);
}

enum { PIECE_SIZE = 48, PIECES = 5 };

/* Parts of the line after the bar, the most important first; an empty one is not known. */
typedef struct pieces {
    char text[PIECES][PIECE_SIZE];
} pieces;

/* Moves what was appended since `begin` into a piece; too long is as good as not known. */
static void cut(tn_text *t, size_t begin, char out[PIECE_SIZE])
{
    TN_ASSERT(t->size >= begin);
    size_t size = !t->failed && t->size - begin < PIECE_SIZE ? t->size - begin : 0;
    if (size > 0) {
        memcpy(out, t->data + begin, size);
    }
    out[size] = 0;
    t->size = begin;
}

static void make_pieces(const tn_bar_state *s, const tn_bar_pace *pace, tn_text *t, pieces *out)
{
    const size_t begin = t->size;
    if (isfinite(s->loss)) {
        tn_text_addf(t, "loss %.4f", s->loss);
    }
    cut(t, begin, out->text[0]);
    if (isfinite(pace->eta_s) && pace->eta_s >= 0) {
        tn_text_adds(t, s->may_end_early ? "epoch eta " : "eta ");
        tn_put_duration(t, pace->eta_s);
    }
    cut(t, begin, out->text[1]);
    if (isfinite(s->auc)) {
        tn_text_addf(t, "auc %.4f", s->auc);
    }
    cut(t, begin, out->text[2]);
    if (isfinite(pace->rows_per_s)) {
        tn_put_count(t, pace->rows_per_s);
        tn_text_adds(t, " rows/s");
    }
    cut(t, begin, out->text[3]);
    tn_text_addf(t, "step %llu", (unsigned long long)s->step);
    cut(t, begin, out->text[4]);
}

/* "[====>    ]", `size` characters inside. */
static void put_bar(tn_text *out, double done, uint32_t size)
{
    uint32_t full = (uint32_t)(fmin(fmax(done, 0), 1) * size);
    tn_text_adds(out, " [");
    for (uint32_t i = 0; i < size; i++) {
        tn_text_adds(out, i < full ? "=" : i == full ? ">" : " ");
    }
    tn_text_addc(out, ']');
}

/* "epoch 1/3  42%", with the percentage where it is known. */
static void put_epoch(tn_text *out, const tn_bar_state *s)
{
    tn_text_addf(out, "epoch %u/%u", s->epoch, s->epochs);
    if (!isnan(s->epoch_done)) {
        tn_text_addf(out, " %3.0f%%", floor(100 * fmin(fmax(s->epoch_done, 0), 1)));
    }
}

/* Drops the pieces that do not fit into what is left of the width; returns what is used then. A
 * piece that does not fit is not replaced by a smaller one of less weight: the line would jump. */
static size_t fit(pieces *p, size_t used, uint32_t width)
{
    bool full = false;
    for (uint32_t i = 0; i < PIECES; i++) {
        size_t size = p->text[i][0] != 0 ? 2 + strlen(p->text[i]) : 0;
        char *unit = width > 0 && used + size > width ? strstr(p->text[i], " rows/s") : NULL;
        if (unit != NULL) {
            memcpy(unit, "/s", sizeof "/s");
            size = 2 + strlen(p->text[i]);
        }
        full = full || (width > 0 && used + size > width);
        if (full) {
            p->text[i][0] = 0;
        } else {
            used += size;
        }
    }
    return used;
}

void tn_bar_line(const tn_bar_state *s, const tn_bar_pace *pace, uint32_t width, tn_text *out)
{
    static const int order[PIECES] = {3, 4, 0, 2, 1}; /* rate, step, loss, auc, eta */
    enum { FRAME = 3 };                               /* " [" and "]" */
    pieces p;
    make_pieces(s, pace, out, &p);
    size_t begin = out->size;
    put_epoch(out, s);
    size_t used = out->size - begin;
    const bool bar = !isnan(s->epoch_done) && width >= used + FRAME + BAR_MIN;
    used = fit(&p, used + (bar ? FRAME + BAR_MIN : 0), width);
    if (bar) {
        TN_ASSERT(used <= width);
        size_t room = BAR_MIN + width - used;
        put_bar(out, s->epoch_done, room < BAR_MAX ? (uint32_t)room : BAR_MAX);
    }
    for (uint32_t i = 0; i < PIECES; i++) {
        if (p.text[order[i]][0] != 0) {
            tn_text_addf(out, "  %s", p.text[order[i]]);
        }
    }
    if (width > 0 && out->size - begin > width && !out->failed) {
        out->size = begin + width;
        out->data[out->size] = 0;
    }
}
