/* inspect_stat.c - counting rows; inspect_report.c says what was counted. */
#include "io/inspect/inspect_stat.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "io/inspect/inspect_state.h"

#include <math.h>
#include <string.h>

/* A slot whose texts are numbers, as key or not. */
static bool holds_numbers(const tn_slot_spec *spec)
{
    return tn_spec_is_number(spec) || spec->type == TN_SIGN_INT || spec->type == TN_SIGN_FLOAT;
}

static tn_status new_slot(tn_slot_stat *s, const tn_slot_spec *spec, tn_error *err)
{
    s->numeric = holds_numbers(spec);
    if (s->numeric) {
        TN_TRY(tn_numbers_init(&s->numbers, err));
    }
    if (spec->as == TN_AS_KEY) {
        TN_TRY(tn_distinct_new(&s->distinct, err));
        TN_TRY(tn_top_new(&s->top, err));
    }
    return TN_OK;
}

tn_status tn_stat_new(tn_stat **out, const tn_schema *schema, tn_error *err)
{
    *out = NULL;
    tn_status status = TN_E_MEMORY;
    tn_stat *s = tn_alloc(1, sizeof *s, "statistics");
    s->schema = schema;
    s->slot = tn_try_alloc((size_t)schema->n_specs + 1, sizeof *s->slot, "statistics", err);
    s->first = tn_try_alloc((size_t)schema->n_slots + 1, sizeof *s->first, "statistics", err);
    if (s->slot == NULL || s->first == NULL) {
        goto fail;
    }
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        status = new_slot(&s->slot[i], &schema->spec[i], err);
        if (status != TN_OK) {
            goto fail;
        }
    }
    *out = s;
    return TN_OK;
fail:
    tn_stat_free(s);
    return status;
}

void tn_stat_free(tn_stat *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; s->slot != NULL && i < s->schema->n_specs; i++) {
        tn_distinct_free(s->slot[i].distinct);
        tn_top_free(s->slot[i].top);
        tn_numbers_done(&s->slot[i].numbers);
    }
    tn_free(s->slot);
    tn_free(s->first);
    tn_free(s->order);
    tn_free(s->row_of);
    tn_free(s);
}

static void count_row(tn_stat *s, const tn_parsed_row *row)
{
    s->rows++;
    s->weights += (double)row->weight;
    s->weighted += row->weight != 1;
    s->zero_weight += row->weight == 0;
    s->grouped += row->group != TN_NO_GROUP;
    if (!isnan(row->label)) {
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
    tn_free(s->row_of);
    s->orders = 0;
    s->order = tn_try_alloc(2 * entries, sizeof *s->order, "statistics", err);
    s->row_of = tn_try_alloc(2 * entries, sizeof *s->row_of, "statistics", err);
    if (s->order == NULL || s->row_of == NULL) {
        return TN_E_MEMORY;
    }
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
            s->row_of[i] = r;
            s->order[s->first[rows->entry[i].slot]++] = i;
        }
    }
    for (uint32_t i = n; i > 0; i--) { /* every start moved to the next one's */
        s->first[i] = s->first[i - 1];
    }
    s->first[0] = 0;
}

static void count_text(tn_slot_stat *s, const tn_rows *rows, tn_token token)
{
    double value = 0;
    if (s->numeric && tn_read_f64(rows->text + token.at, token.size, &value) == TN_NUM_OK) {
        tn_numbers_add(&s->numbers, value);
    }
}

static void count_slot(tn_stat *s, tn_slot_stat *out, uint32_t slot)
{
    const tn_rows *rows = s->adding;
    uint32_t row = UINT32_MAX;
    uint32_t in_row = 0;
    for (uint32_t k = s->first[slot]; k < s->first[slot + 1]; k++) {
        uint32_t i = s->order[k];
        if (rows->token[i].size == TN_TOKEN_NONE) {
            continue; /* stands for a missing value */
        }
        in_row = s->row_of[i] == row ? in_row + 1 : 1;
        row = s->row_of[i];
        out->filled += in_row == 1;
        out->values++;
        out->values_max = in_row > out->values_max ? in_row : out->values_max;
        count_text(out, rows, rows->token[i]);
        if (out->distinct != NULL) {
            tn_distinct_add(out->distinct, rows->entry[i].key);
            tn_top_add(out->top, rows->entry[i].key, rows->text + rows->token[i].at,
                       rows->token[i].size);
        }
    }
}

static void count_numeric(tn_stat *s, tn_slot_stat *out, uint32_t column)
{
    const tn_rows *rows = s->adding;
    for (uint32_t r = 0; r < rows->n; r++) {
        tn_token token = rows->numeric_token[(size_t)r * s->schema->n_numeric + column];
        if (token.size != TN_TOKEN_NONE) {
            out->filled++;
            out->values++;
            out->values_max = 1;
            count_text(out, rows, token);
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
