/* inspect_report.c - statistics as a page of text, as JSON, and as bounds for buckets. */
#include "base/codec/json.h"
#include "base/core/number.h"
#include "io/inspect/inspect_state.h"

#include <math.h>
#include <string.h>

static const double shares[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
static const char *const share_names[] = {"p1", "p5", "p25", "p50", "p75", "p95", "p99"};

enum { N_SHARES = sizeof shares / sizeof shares[0] };

static double ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

static const char *type_name(const tn_slot_spec *spec)
{
    static const char *const types[] = {"id", "int", "hex", "str", "float"};
    return types[spec->type];
}

/* Bytes as they are where they show, else as \xNN. */
static void add_visible(tn_text *out, const char *text, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c == 0x7f) {
            tn_text_addf(out, "\\x%02x", c);
        } else {
            tn_text_addc(out, (char)c);
        }
    }
}

static void top_text(const tn_slot_stat *s, uint32_t top, tn_text *out)
{
    tn_top_item item[TN_STAT_TOP_MAX];
    uint64_t missed = 0;
    uint32_t n = tn_top_list(s->top, item, top, &missed);
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(out, "      %12llu  %6.2f%%  ", (unsigned long long)item[i].count,
                     100 * ratio((double)item[i].count, (double)s->values));
        add_visible(out, item[i].text, item[i].size);
        tn_text_addc(out, '\n');
    }
    if (n > 0 && missed > 0) {
        tn_text_addf(out, "      (counts may be short by up to %llu)\n",
                     (unsigned long long)missed);
    }
}

static void numbers_text(tn_numbers *x, tn_text *out)
{
    if (x->n == 0) {
        return;
    }
    tn_text_addf(out, "      min %.6g  max %.6g  mean %.6g  deviation %.6g\n      ", x->least,
                 x->largest, x->mean, tn_numbers_deviation(x));
    for (uint32_t i = 0; i < N_SHARES; i++) {
        tn_text_addf(out, "%s %.6g%s", share_names[i], tn_numbers_quantile(x, shares[i]),
                     i + 1 < N_SHARES ? "  " : "\n");
    }
}

static void slot_text(const tn_stat *s, uint32_t i, uint32_t top, tn_text *out)
{
    const tn_slot_spec *spec = &s->schema->spec[i];
    tn_slot_stat *slot = &s->slot[i];
    tn_text_addf(out, "  %s (%s): ", spec->name, type_name(spec));
    tn_text_addf(out, "%.2f%% filled", 100 * ratio((double)slot->filled, (double)s->rows));
    if (slot->values_max > 1) {
        tn_text_addf(out, ", %.2f values a row, at most %u",
                     ratio((double)slot->values, (double)slot->filled), slot->values_max);
    }
    if (slot->distinct != NULL) {
        bool exact = false;
        uint64_t n = tn_distinct_count(slot->distinct, &exact);
        tn_text_addf(out, ", %s%llu different", exact ? "" : "about ", (unsigned long long)n);
    }
    tn_text_addc(out, '\n');
    if (slot->numeric) {
        numbers_text(&slot->numbers, out);
    } else if (slot->top != NULL) {
        top_text(slot, top, out);
    }
}

void tn_stat_text(tn_stat *s, uint32_t top, tn_text *out)
{
    TN_ASSERT(top <= TN_STAT_TOP_MAX);
    tn_text_addf(out, "rows %llu\n", (unsigned long long)s->rows);
    if (s->labelled > 0) {
        tn_text_addf(out, "clicks %llu (%.4f%%), mean label %.6g", (unsigned long long)s->clicks,
                     100 * ratio((double)s->clicks, (double)s->labelled),
                     ratio(s->labels, (double)s->labelled));
        if (s->soft > 0) {
            tn_text_addf(out, ", %llu soft", (unsigned long long)s->soft);
        }
        tn_text_addc(out, '\n');
    }
    if (s->weighted > 0) {
        tn_text_addf(out, "weights: mean %.6g, %llu rows of weight 0\n",
                     ratio(s->weights, (double)s->rows), (unsigned long long)s->zero_weight);
    }
    if (s->grouped > 0) {
        tn_text_addf(out, "rows in a group %llu\n", (unsigned long long)s->grouped);
    }
    tn_text_addf(out, "slots %u\n", s->schema->n_specs);
    for (uint32_t i = 0; i < s->schema->n_specs; i++) {
        slot_text(s, i, top, out);
    }
}

static void top_json(const tn_slot_stat *s, uint32_t top, tn_text *out)
{
    tn_top_item item[TN_STAT_TOP_MAX];
    uint64_t missed = 0;
    uint32_t n = tn_top_list(s->top, item, top, &missed);
    tn_json_open_key(out, "top", '[');
    for (uint32_t i = 0; i < n; i++) {
        char text[TN_TOP_TEXT_MAX + 1];
        memcpy(text, item[i].text, item[i].size);
        text[item[i].size] = '\0';
        tn_json_open(out, '{');
        tn_json_str(out, "value", text);
        tn_json_count(out, "count", item[i].count);
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
    tn_json_count(out, "top_missed", missed);
}

static void numbers_json(tn_numbers *x, tn_text *out)
{
    tn_json_open_key(out, "numbers", '{');
    tn_json_count(out, "n", x->n);
    tn_json_f64(out, "min", x->n > 0 ? x->least : (double)NAN);
    tn_json_f64(out, "max", x->n > 0 ? x->largest : (double)NAN);
    tn_json_f64(out, "mean", x->n > 0 ? x->mean : (double)NAN);
    tn_json_f64(out, "deviation", x->n > 0 ? tn_numbers_deviation(x) : (double)NAN);
    for (uint32_t i = 0; i < N_SHARES; i++) {
        tn_json_f64(out, share_names[i], tn_numbers_quantile(x, shares[i]));
    }
    tn_json_close(out, '}');
}

static void slot_json(const tn_stat *s, uint32_t i, uint32_t top, tn_text *out)
{
    const tn_slot_spec *spec = &s->schema->spec[i];
    tn_slot_stat *slot = &s->slot[i];
    tn_json_open(out, '{');
    tn_json_str(out, "name", spec->name);
    tn_json_str(out, "type", type_name(spec));
    tn_json_count(out, "filled", slot->filled);
    tn_json_count(out, "values", slot->values);
    tn_json_u64(out, "values_max", slot->values_max);
    if (slot->distinct != NULL) {
        bool exact = false;
        uint64_t n = tn_distinct_count(slot->distinct, &exact);
        tn_json_count(out, "distinct", n);
        tn_json_bool(out, "distinct_exact", exact);
        top_json(slot, top, out);
    }
    if (slot->numeric) {
        numbers_json(&slot->numbers, out);
    }
    tn_json_close(out, '}');
}

void tn_stat_json(tn_stat *s, uint32_t top, tn_text *out)
{
    TN_ASSERT(top <= TN_STAT_TOP_MAX);
    tn_json_open(out, '{');
    tn_json_str(out, "format", "tnet-stat");
    tn_json_raw(out, "version", "[1,0]");
    tn_json_count(out, "rows", s->rows);
    tn_json_count(out, "labelled", s->labelled);
    tn_json_count(out, "clicks", s->clicks);
    tn_json_count(out, "soft", s->soft);
    tn_json_f64(out, "label_mean", ratio(s->labels, (double)s->labelled));
    tn_json_f64(out, "weight_mean", ratio(s->weights, (double)s->rows));
    tn_json_count(out, "zero_weight", s->zero_weight);
    tn_json_count(out, "grouped", s->grouped);
    tn_json_open_key(out, "slots", '[');
    for (uint32_t i = 0; i < s->schema->n_specs; i++) {
        slot_json(s, i, top, out);
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
}

tn_status tn_stat_bounds(tn_stat *s, const char *slot, uint32_t n, tn_text *out, tn_error *err)
{
    TN_ASSERT(n >= 2);
    uint32_t i = 0;
    while (i < s->schema->n_specs && strcmp(s->schema->spec[i].name, slot) != 0) {
        i++;
    }
    if (i == s->schema->n_specs) {
        return tn_fail(err, TN_E_USAGE, "there is no slot '%s'", slot);
    }
    tn_numbers *x = &s->slot[i].numbers;
    if (!s->slot[i].numeric || x->n == 0) {
        return tn_fail(err, TN_E_USAGE, "slot '%s' holds no numbers", slot);
    }
    double before = (double)-INFINITY;
    for (uint32_t k = 1; k < n; k++) {
        double bound = tn_numbers_quantile(x, (double)k / n);
        if (bound > before && bound > x->least) { /* equal ones bound nothing */
            char text[TN_NUMBER_TEXT_MAX];
            tn_text_add(out, text, tn_write_f64(text, bound));
            tn_text_addc(out, '\n');
            before = bound;
        }
    }
    return tn_text_check(out, "bounds", err);
}
