/* format_libsvm.c - label[:weight] [qid:id] index[:value] .. [# comment], the dialects in use
 * united.
 *
 * One slot takes all indices, or each of several takes a range of them.
 */
#include "io/format/format.h"
#include "io/format/svm_pairs.h"
#include "io/schema/columns.h"
#include "io/schema/dataopts.h"

#include <string.h>

static bool at_qid(const tn_pairs *in)
{
    return in->end - in->at >= 4 && memcmp(in->at, "qid:", 4) == 0;
}

static tn_status take_qid(tn_pairs *in, tn_error *err)
{
    in->at += 4;
    const char *from = in->at;
    uint64_t id;
    if (!tn_pairs_digits(in, &id) || (in->at < in->end && !tn_is_blank(*in->at))) {
        return tn_record_location_fail(in->place, in->line, from, err,
                                       "expected a decimal integer after qid:");
    }
    tn_rows_group(in->rows, id);
    return TN_OK;
}

/* The slot that takes an index; NULL: none does. */
static const tn_slot_spec *spec_of(const tn_schema *schema, uint64_t index)
{
    const tn_slot_spec *only = &schema->spec[0];
    if (schema->n_specs == 1 && only->range_to == UINT64_MAX && only->range_from == 0) {
        return only;
    }
    uint32_t i = tn_columns_of_index(schema->columns, schema, index);
    return i != TN_NOWHERE ? &schema->spec[i] : NULL;
}

static tn_status take_pair(tn_pairs *in, tn_error *err)
{
    const char *from = in->at;
    uint64_t index;
    if (!tn_pairs_digits(in, &index)) {
        return tn_pairs_no_digits(in, from, "index", err);
    }
    if (!tn_pairs_rebase(in, &index)) {
        tn_bytes token = {from, (size_t)(in->at - from), false};
        return tn_record_location_fault(in->place, in->line, token, TN_FAULT_BASE, err);
    }
    const tn_slot_spec *spec = spec_of(in->schema, index);
    if (spec != NULL) {
        return tn_pairs_add(in, spec, from, index, err);
    }
    if (in->schema->data->unknown_field == TN_FIELD_IS_ERROR) {
        return tn_record_location_fail(in->place, in->line, from, err, "no slot takes index %.*s",
                                       (int)(in->at - from), from);
    }
    return tn_pairs_ignore(in, err);
}

static tn_status take_pairs(tn_pairs *in, tn_error *err)
{
    if (tn_pairs_more(in) && !in->begun && at_qid(in)) {
        TN_TRY(take_qid(in, err));
    }
    while (tn_pairs_more(in)) {
        TN_TRY(take_pair(in, err));
    }
    return TN_OK;
}

static tn_status libsvm_parse(tn_bytes record, const tn_schema *schema,
                              const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    tn_pairs in = {.line = record, .place = place, .schema = schema, .rows = rows};
    if (!tn_pairs_begin_fast(&in, false)) {
        TN_TRY(tn_pairs_begin(&in, err));
    }
    tn_status status = take_pairs(&in, err);
    if (status != TN_OK) {
        tn_rows_rollback(rows);
        return status;
    }
    return tn_pairs_end(&in, err);
}

static const char *const data_options[] = {"index_base", "unknown_field", NULL};
static const char *const slot_options[] = {"range", NULL};

extern const tn_format tn_format_libsvm;
const tn_format tn_format_libsvm = {
    .name = "libsvm",
    .help = "label[:weight] [qid:id] index[:value] ..; one slot, or one per range of indices",
    .data_options = data_options,
    .slot_options = slot_options,
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = libsvm_parse,
};
