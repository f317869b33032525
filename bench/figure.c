/* figure.c - see figure.h. */
#include "figure.h"

#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 96 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void tn_sample(tn_samples *s, double x)
{
    if (s->n < TN_SAMPLES_MAX) {
        s->x[s->n++] = x;
    }
}

tn_spread tn_spread_of(const tn_samples *s)
{
    static double sorted[TN_SAMPLES_MAX];
    uint32_t n = s->n;
    if (n == 0) {
        return tn_spread_one((double)NAN);
    }
    memcpy(sorted, s->x, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return (tn_spread){median, sorted[0], sorted[n - 1]};
}

tn_spread tn_spread_one(double x)
{
    return (tn_spread){x, x, x};
}

tn_spread tn_spread_scaled(tn_spread s, double factor)
{
    return (tn_spread){s.median * factor, s.least * factor, s.most * factor};
}

double tn_figure_ratio(const tn_figure *f)
{
    const double base[] = {
        [TN_AIM_VALUE] = f->target, [TN_AIM_LIMIT] = f->limit, [TN_AIM_YARDSTICK] = f->yardstick};
    return f->is.median / base[f->aim];
}

bool tn_figure_met(const tn_figure *f)
{
    double most = f->aim == TN_AIM_VALUE ? 1 : f->target;
    double ratio = tn_figure_ratio(f);
    return f->at_most ? ratio <= most : ratio >= most;
}

/* "1234567", "45.2", ".0312": three digits that mean something. */
static const char *number(double x, char out[WORD])
{
    double size = fabs(x);
    int digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= .1 ? 3 : 4;
    (void)snprintf(out, WORD, "%.*f", size == 0 ? 0 : digits, x);
    return out;
}

static void print_json(const tn_figure *f)
{
    static const char *const aims[] = {"value", "limit", "yardstick"};
    (void)printf("{\"row\":\"%s\",\"what\":\"%s\",\"unit\":\"%s\",\"median\":%.6g,\"min\":%.6g,"
                 "\"max\":%.6g",
                 f->row, f->what, f->unit, f->is.median, f->is.least, f->is.most);
    if (f->limit != 0) {
        (void)printf(",\"limit\":%.6g,\"limit_is\":\"%s\"", f->limit, f->limit_is);
    }
    if (f->yardstick != 0) {
        (void)printf(",\"yardstick\":%.6g,\"yardstick_is\":\"%s\"", f->yardstick, f->yardstick_is);
    }
    if (!isnan(f->target)) {
        (void)printf(",\"target\":%.6g,\"target_of\":\"%s\",\"at_most\":%s,\"ratio\":%.4g,"
                     "\"met\":%s",
                     f->target, aims[f->aim], f->at_most ? "true" : "false", tn_figure_ratio(f),
                     tn_figure_met(f) ? "true" : "false");
    }
    tn_turns t = tn_turns_take();
    if (t.n > 0) {
        (void)printf(",\"turns\":%u,\"again\":%u,\"disturbed\":%u", t.n, t.tries - t.n,
                     t.disturbed);
    }
    (void)printf("}\n");
}

static void print_text(const tn_figure *f)
{
    static const char *const of[] = {"", " of the limit", " x the yardstick"};
    char a[WORD];
    char b[WORD];
    char c[WORD];
    char target[WORD + 24] = "-";
    if (!isnan(f->target)) {
        (void)snprintf(target, sizeof target, "%s %s%s",
                       f->at_most ? "<=" : ">=", number(f->target, a), of[f->aim]);
    }
    (void)printf("%-4s %-52s %-22s %8s [%s %s] %s", f->row, f->what, target,
                 number(f->is.median, a), number(f->is.least, b), number(f->is.most, c), f->unit);
    if (f->limit != 0) {
        (void)printf("; limit %s (%s)", number(f->limit, a), f->limit_is);
    }
    if (f->yardstick != 0) {
        (void)printf("; yardstick %s (%s)", number(f->yardstick, a), f->yardstick_is);
    }
    if (!isnan(f->target)) {
        (void)printf("; ratio %.2f, %s", tn_figure_ratio(f), tn_figure_met(f) ? "met" : "missed");
    }
    tn_turns t = tn_turns_take();
    if (t.n > 0) {
        (void)printf("; %u turns, %u again, %u disturbed", t.n, t.tries - t.n, t.disturbed);
    }
    (void)printf("\n");
}

void tn_figure_print(const tn_figure *f, bool json)
{
    if (json) {
        print_json(f);
    } else {
        print_text(f);
    }
    (void)fflush(stdout);
}

bool tn_json_wanted(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof *argv); /* and the NULL */
            --*argc;
            return true;
        }
    }
    return false;
}
