/* format_libffm.c - label[:weight] field:index[:value] .. [# comment]. */
#include "io/format/format.h"
#include "io/format/svm_pairs.h"
#include "io/schema/columns.h"
#include "io/schema/dataopts.h"

#include <math.h>

/* The slot of a field; NULL: none takes it and it is to be ignored. */
static tn_status spec_of(const tn_pairs *in, const char *from, uint64_t field,
                         const tn_slot_spec **out, tn_error *err)
{
    const tn_columns *columns = in->schema->columns;
    *out = NULL;
    if (field > TN_COLUMNS_MAX) {
        return tn_record_location_fail(in->place, in->line, from, err,
                                       "field too large (at most %d)", TN_COLUMNS_MAX);
    }
    uint32_t i = field < columns->n_fields ? columns->spec_of_field[field] : TN_NOWHERE;
    if (i != TN_NOWHERE) {
        *out = &in->schema->spec[i];
    } else if (in->schema->data->unknown_field == TN_FIELD_IS_ERROR) {
        return tn_record_location_fail(in->place, in->line, from, err, "no slot takes field '%.*s'",
                                       (int)(in->at - from), from);
    }
    return TN_OK;
}

static tn_status take_pair(tn_pairs *in, tn_error *err)
{
    const char *from = in->at;
    const tn_slot_spec *spec;
    uint64_t field;
    uint64_t index;
    if (!tn_pairs_digits(in, &field)) {
        return tn_pairs_no_digits(in, from, "field", err);
    }
    if (in->at == in->end || *in->at != ':') {
        return tn_record_location_fail(in->place, in->line, in->at, err,
                                       "expected ':' after the field");
    }
    TN_TRY(spec_of(in, from, field, &spec, err));
    from = ++in->at;
    if (!tn_pairs_digits(in, &index)) {
        return tn_pairs_no_digits(in, from, "index", err);
    }
    if (!tn_pairs_rebase(in, &index)) {
        tn_bytes token = {from, (size_t)(in->at - from), false};
        return tn_record_location_fault(in->place, in->line, token, TN_FAULT_BASE, err);
    }
    return spec != NULL ? tn_pairs_add(in, spec, from, index, err) : tn_pairs_ignore(in, err);
}

/* row_norm: x_j / ||x||, so that a product of two is scaled by 1 / ||x||^2, once. */
static void normalise(tn_rows *rows)
{
    double sum = 0;
    uint32_t first = rows->row[rows->n].first;
    for (uint32_t i = first; i < rows->n_entries; i++) {
        sum += (double)rows->entry[i].value * (double)rows->entry[i].value;
    }
    if (!(sum > 0)) { /* no values, or all are 0 */
        return;
    }
    double scale = 1 / sqrt(sum);
    for (uint32_t i = first; i < rows->n_entries; i++) {
        rows->entry[i].value = (float)((double)rows->entry[i].value * scale);
    }
}

static tn_status libffm_parse(tn_bytes record, const tn_schema *schema,
                              const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    tn_pairs in = {.line = record, .place = place, .schema = schema, .rows = rows};
    if (!tn_pairs_begin_fast(&in, true)) {
        TN_TRY(tn_pairs_begin(&in, err));
    }
    while (tn_pairs_more(&in)) {
        tn_status status = take_pair(&in, err);
        if (status != TN_OK) {
            tn_rows_rollback(rows);
            return status;
        }
    }
    if (schema->data->row_norm) {
        normalise(rows);
    }
    return tn_pairs_end(&in, err);
}

static const char *const data_options[] = {"index_base", "unknown_field", "row_norm", NULL};
static const char *const slot_options[] = {"field", NULL};

extern const tn_format tn_format_libffm;
const tn_format tn_format_libffm = {
    .name = "libffm",
    .help = "label[:weight] field:index[:value] ..; a slot per field",
    .data_options = data_options,
    .slot_options = slot_options,
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = libffm_parse,
};
