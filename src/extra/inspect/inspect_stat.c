/* inspect_stat.c - counting rows slot by slot, and reporting what was counted. */
#include "extra/inspect/inspect_stat.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/math/key.h"
#include "base/thread/team.h"
#include "extra/inspect/inspect_sketch.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/number_sample.h"
#include "io/schema/schema.h"

#include <math.h>
#include <string.h>

/* Counts of one slot or numeric column. */
typedef struct slot_stat {
    uint64_t filled; /* rows with a value */
    uint64_t values;
    uint32_t values_max; /* in one row */
    bool has_keys;
    bool has_numbers;     /* its texts are numbers */
    tn_distinct distinct; /* with keys, as the next one */
    tn_top top;
    tn_numbers numbers;
} slot_stat;

/* An entry of the block that is added, and its row. */
typedef struct place {
    uint32_t entry, row;
} place;

struct tn_stat {
    const tn_schema *schema;
    double label_low, label_high;
    uint64_t rows, labelled, clicks, soft, weighted, grouped, zero_weight;
    double labels, weights;
    slot_stat *slot;       /* n_specs */
    const tn_rows *adding; /* for the tiles of one tn_stat_add */
    place *order;          /* by slot, rows ascending; room for `orders` */
    uint32_t *first;       /* n_slots + 1, into order */
    size_t orders;
};

static const double shares[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};

enum { N_SHARES = sizeof shares / sizeof shares[0] };

/* Its texts are numbers, as key or not. */
static bool has_numbers(const tn_slot_spec *spec)
{
    return tn_spec_is_number(spec) || spec->type == TN_SIGN_INT || spec->type == TN_SIGN_FLOAT;
}

void tn_stat_free(tn_stat *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; s->slot != NULL && i < s->schema->n_specs; i++) {
        tn_distinct_done(&s->slot[i].distinct);
        tn_top_done(&s->slot[i].top);
        tn_numbers_done(&s->slot[i].numbers);
    }
    tn_free(s->slot);
    tn_free(s->first);
    tn_free(s->order);
    tn_free(s);
}

static tn_status open_slots(tn_stat *s, tn_error *err)
{
    const tn_schema *schema = s->schema;
    uint32_t n = 0;
    TN_TRY(TN_ALLOC(s->slot, (size_t)schema->n_specs + 1, "statistics", err));
    TN_TRY(TN_ALLOC(s->first, (size_t)schema->n_slots + 1, "statistics", err));
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        s->slot[i].has_keys = schema->spec[i].as == TN_AS_KEY;
        s->slot[i].has_numbers = has_numbers(&schema->spec[i]);
        n += s->slot[i].has_numbers;
    }
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        s->slot[i].numbers.sample_max = tn_numbers_max(n);
    }
    return TN_OK;
}

tn_status tn_stat_new(tn_stat **out, const tn_schema *schema, tn_error *err)
{
    *out = NULL;
    tn_stat *s = tn_alloc(1, sizeof *s, "statistics");
    s->schema = schema;
    tn_status status = open_slots(s, err);
    if (status != TN_OK) {
        tn_stat_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

static void count_row(tn_stat *s, const tn_parsed_row *row)
{
    s->rows++;
    s->weights += (double)row->weight;
    s->weighted += row->weight != 1;
    s->zero_weight += row->weight == 0;
    s->grouped += row->group != TN_NO_GROUP;
    if (!isnan(row->label)) {
        const double label = (double)row->label;
        s->label_low = s->labelled > 0 ? fmin(s->label_low, label) : label;
        s->label_high = s->labelled > 0 ? fmax(s->label_high, label) : label;
        s->labelled++;
        s->labels += (double)row->label;
        s->clicks += row->label > 0.5F;
        s->soft += row->label > 0 && row->label < 1;
    }
}

static tn_status grow(tn_stat *s, size_t entries, tn_error *err)
{
    if (entries <= s->orders) {
        return TN_OK;
    }
    tn_free(s->order);
    s->orders = 0;
    TN_TRY(TN_ALLOC(s->order, 2 * entries, "statistics", err));
    s->orders = 2 * entries;
    return TN_OK;
}

/* A counting sort of the block's entries by slot. */
static void sort_by_slot(tn_stat *s, const tn_rows *rows)
{
    uint32_t n = s->schema->n_slots;
    memset(s->first, 0, ((size_t)n + 1) * sizeof *s->first);
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        s->first[rows->entry[i].slot + 1]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        s->first[i + 1] += s->first[i];
    }
    for (uint32_t r = 0; r < rows->n; r++) {
        uint32_t end = tn_rows_end_of(rows, r);
        for (uint32_t i = rows->row[r].first; i < end; i++) {
            s->order[s->first[rows->entry[i].slot]++] = (place){i, r};
        }
    }
    for (uint32_t i = n; i > 0; i--) { /* every start moved to the next one's */
        s->first[i] = s->first[i - 1];
    }
    s->first[0] = 0;
}

/* Returns what is counted as one value: the number itself where many numbers share a key, else the
 * key. */
static uint64_t count_text(slot_stat *s, const tn_rows *rows, uint32_t row, tn_token token,
                           uint64_t key)
{
    double value = 0;
    if (s->has_numbers && tn_read_f64(rows->text + token.at, token.size, &value) == TN_NUM_OK) {
        tn_numbers_add(&s->numbers, value, rows->row[row].weight);
        value += 0.0; /* -0 is 0 */
        memcpy(&key, &value, sizeof key);
        key = tn_mix(key);
    }
    return key;
}

static void count_slot(tn_stat *s, slot_stat *out, uint32_t slot)
{
    const tn_rows *rows = s->adding;
    uint32_t row = UINT32_MAX;
    uint32_t in_row = 0;
    for (uint32_t k = s->first[slot]; k < s->first[slot + 1]; k++) {
        uint32_t i = s->order[k].entry;
        if (rows->token[i].size == TN_TOKEN_NONE) {
            continue; /* a missing value */
        }
        in_row = s->order[k].row == row ? in_row + 1 : 1;
        row = s->order[k].row;
        out->filled += in_row == 1;
        out->values++;
        out->values_max = in_row > out->values_max ? in_row : out->values_max;
        const uint64_t key = count_text(out, rows, row, rows->token[i], rows->entry[i].key);
        if (out->has_keys) {
            tn_distinct_add(&out->distinct, key);
            tn_top_add(&out->top, key, rows->text + rows->token[i].at, rows->token[i].size);
        }
    }
}

static void count_numeric(tn_stat *s, slot_stat *out, uint32_t column)
{
    const tn_rows *rows = s->adding;
    for (uint32_t r = 0; r < rows->n; r++) {
        tn_token token = rows->numeric_token[(size_t)r * tn_schema_numbers(s->schema) + column];
        if (token.size != TN_TOKEN_NONE) {
            out->filled++;
            out->values++;
            out->values_max = 1;
            (void)count_text(out, rows, r, token, 0);
        }
    }
}

static void count_spec(void *job, uint32_t i)
{
    tn_stat *s = job;
    const tn_slot_spec *spec = &s->schema->spec[i];
    if (spec->slot != TN_NOWHERE) {
        count_slot(s, &s->slot[i], spec->slot);
    } else {
        count_numeric(s, &s->slot[i], spec->numeric);
    }
}

tn_status tn_stat_add(tn_stat *s, const tn_rows *rows, tn_team *team, tn_error *err)
{
    TN_ASSERT(rows->schema == s->schema);
    if (rows->n == 0) {
        return TN_OK;
    }
    TN_TRY(grow(s, (size_t)rows->n_entries + 1, err));
    for (uint32_t r = 0; r < rows->n; r++) {
        count_row(s, &rows->row[r]);
    }
    sort_by_slot(s, rows);
    s->adding = rows;
    tn_team_run(team, s->schema->n_specs, count_spec, s);
    s->adding = NULL;
    return TN_OK;
}

static const char *const share_names[] = {"p1", "p5", "p25", "p50", "p75", "p95", "p99"};

static double ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
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

/* The most frequent values, at most `top`. */
static uint32_t sort_top(slot_stat *s, uint32_t top)
{
    uint32_t n = tn_top_sort(&s->top);
    return n < top ? n : top;
}

static void top_text(slot_stat *s, uint32_t top, tn_text *out)
{
    const uint64_t missed = s->top.missed;
    const uint32_t n = sort_top(s, top);
    const tn_top_item *item = s->top.kept;
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
    slot_stat *slot = &s->slot[i];
    tn_text_addf(out, "  %s (%s): ", spec->name, tn_slot_type_words[spec->type]);
    tn_text_addf(out, "%.2f%% filled", 100 * ratio((double)slot->filled, (double)s->rows));
    if (slot->values_max > 1) {
        tn_text_addf(out, ", %.2f values a row, at most %u",
                     ratio((double)slot->values, (double)slot->filled), slot->values_max);
    }
    if (slot->has_keys) {
        bool exact = false;
        uint64_t n = tn_distinct_count(&slot->distinct, &exact);
        tn_text_addf(out, ", %s%llu different", exact ? "" : "about ", (unsigned long long)n);
    }
    tn_text_addc(out, '\n');
    if (slot->has_numbers) {
        numbers_text(&slot->numbers, out);
    } else if (slot->has_keys) {
        top_text(slot, top, out);
    }
}

void tn_stat_text(tn_stat *s, uint32_t top, tn_text *out)
{
    TN_ASSERT(top <= TN_STAT_TOP_MAX);
    tn_text_addf(out, "rows %llu\n", (unsigned long long)s->rows);
    if (s->labelled > 0 && s->schema->label->target > TN_TARGET_SIDE) {
        tn_text_addf(out, "labels from %.6g to %.6g, mean %.6g\n", s->label_low, s->label_high,
                     ratio(s->labels, (double)s->labelled));
    } else if (s->labelled > 0) {
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

static void top_json(slot_stat *s, uint32_t top, tn_text *out)
{
    const uint32_t n = sort_top(s, top);
    const tn_top_item *item = s->top.kept;
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
    tn_json_count(out, "top_missed", s->top.missed);
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
    slot_stat *slot = &s->slot[i];
    tn_json_open(out, '{');
    tn_json_str(out, "name", spec->name);
    tn_json_str(out, "type", tn_slot_type_words[spec->type]);
    tn_json_count(out, "filled", slot->filled);
    tn_json_count(out, "values", slot->values);
    tn_json_u64(out, "values_max", slot->values_max);
    if (slot->has_keys) {
        bool exact = false;
        uint64_t n = tn_distinct_count(&slot->distinct, &exact);
        tn_json_count(out, "distinct", n);
        tn_json_bool(out, "distinct_exact", exact);
        top_json(slot, top, out);
    }
    if (slot->has_numbers) {
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
    if (s->schema->label->target > TN_TARGET_SIDE && s->labelled > 0) {
        tn_json_f64(out, "label_min", s->label_low);
        tn_json_f64(out, "label_max", s->label_high);
    }
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
    if (x->weighed == 0) {
        return tn_fail(err, TN_E_USAGE, "slot '%s' holds no numbers", slot);
    }
    double *bound = NULL;
    TN_TRY(TN_ALLOC(bound, n, "bounds", err));
    const uint32_t n_bounds = tn_numbers_bounds(x, n, bound);
    for (uint32_t k = 0; k < n_bounds; k++) {
        char number[TN_NUMBER_TEXT_MAX];
        tn_text_add(out, number, tn_write_f64(number, bound[k]));
        tn_text_addc(out, '\n');
    }
    tn_free(bound);
    return tn_text_check(out, "bounds", err);
}
