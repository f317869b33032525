/* format_crb.c - compressed row blocks of dmlc (wormhole, difacto): label, weight, indices, values.
 *
 * extra/crb/crb_blocks.h takes the container off; a record here is a row of the stream that it
 * makes. One slot takes all indices, or each of several takes a range of them, or those whose bits
 * data.slot_bits say its field:
 *
 *     slot_bits: high 10    index ffffffffff......................................................
 *     slot_bits: low 12 ....................................................ffffffffffff
 */
#include "base/core/bytes.h"
#include "extra/crb/crb_blocks.h"
#include "extra/crb/crb_row.h"
#include "io/format/format.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { SIZE_BYTES = 4 };

static tn_status crb_cut(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                         tn_error *err)
{
    tn_bytes rest = *window;
    const uint32_t size = tn_get_u32(&rest);
    if (!rest.failed && size > schema->data->record_bytes_max) {
        return tn_fail(err, TN_E_LIMIT, "record longer than record_bytes_max (%u bytes)", size);
    }
    if (rest.failed || size > rest.size) {
        return last && window->size > 0 ? tn_fail(err, TN_E_DATA, "truncated row") : TN_END;
    }
    *record = (tn_bytes){rest.data, size, false};
    window->data += SIZE_BYTES + (size_t)size;
    window->size -= SIZE_BYTES + (size_t)size;
    return TN_OK;
}

/* The container knows no damage within; after a row that is too long comes the next. */
static size_t crb_resync(tn_bytes window, bool last, const tn_schema *schema, bool *found)
{
    (void)schema;
    *found = last;
    return window.size;
}

/* Words and hex digits are read off the decimal digits, as of libsvm. */
static tn_fault add_index(tn_rows *rows, const tn_slot_spec *spec, uint64_t index, float x)
{
    char text[24];
    if (tn_spec_is_number(spec)) {
        return tn_rows_real(rows, spec, (double)x);
    }
    if (!isfinite(x)) {
        return spec->non_finite_absent ? TN_FAULT_NONE : TN_FAULT_NOT_FINITE;
    }
    if (fabsf(x) > TN_X_MAX) {
        return TN_FAULT_X_RANGE;
    }
    if (spec->type < TN_SIGN_HEX) {
        return tn_rows_integer(rows, spec, (int64_t)index, x);
    }
    const int size = snprintf(text, sizeof text, "%" PRIu64, index);
    return tn_rows_token(rows, spec, text, (size_t)size, x);
}

/* A fault of a value that the record holds in binary: `what` is said of it. */
static tn_status refuse(const tn_record_location *place, tn_bytes record, tn_fault fault,
                        const char *what, tn_error *err)
{
    tn_error why = {0};
    const tn_bytes nothing = {what, 0, false};
    const tn_record_location nowhere = {.source = ""};
    tn_status status = tn_record_location_fault(&nowhere, nothing, nothing, fault, &why);
    tn_bytes reason = tn_record_location_reason(why.text);
    return status == TN_E_MEMORY ? tn_fail(err, TN_E_MEMORY, "%s", why.text)
                                 : tn_record_location_fail(place, record, NULL, err, "%.*s, %s",
                                                           (int)reason.size, reason.data, what);
}

/* The same for the label or the weight. */
static tn_status refuse_number(const tn_record_location *place, tn_bytes record, tn_fault fault,
                               float found, tn_error *err)
{
    char what[40];
    (void)snprintf(what, sizeof what, "found \"%g\"", (double)found);
    return refuse(place, record, fault, what, err);
}

static tn_status refuse_in_slot(const tn_record_location *place, tn_bytes record, tn_fault fault,
                                const char *slot, tn_error *err)
{
    char what[300];
    (void)snprintf(what, sizeof what, "in slot '%s'", slot);
    return refuse(place, record, fault, what, err);
}

static tn_status take_indices(tn_bytes record, uint32_t head, const tn_schema *schema,
                              const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    const uint32_t n = head & (TN_CRB_SHORT - 1);
    const bool values = (head & TN_CRB_VALUES) != 0;
    const size_t wanted =
        n * sizeof(uint64_t) + (values ? n * sizeof(float) : 0) + TN_CRB_HEAD - SIZE_BYTES;
    if (record.size != wanted) {
        return tn_record_location_fail(place, record, NULL, err, "damaged row");
    }
    const char *index = record.data + TN_CRB_HEAD - SIZE_BYTES;
    const char *value = index + n * sizeof(uint64_t);
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t i = tn_load_u64(index + k * sizeof(uint64_t));
        const float x = values ? tn_load_f32(value + k * sizeof(float)) : 1;
        const uint32_t at = tn_crb_spec_of(schema, i, (head & TN_CRB_SHORT) != 0);
        if (at == TN_NOWHERE && schema->data->unknown_field == TN_FIELD_IS_ERROR) {
            return tn_record_location_fail(place, record, NULL, err, "no slot takes index %" PRIu64,
                                           i);
        }
        tn_fault fault =
            at == TN_NOWHERE ? TN_FAULT_NONE : add_index(rows, &schema->spec[at], i, x);
        if (fault != TN_FAULT_NONE) {
            return refuse_in_slot(place, record, fault, schema->spec[at].name, err);
        }
    }
    return TN_OK;
}

static tn_status take_row(tn_bytes record, const tn_schema *schema, const tn_record_location *place,
                          tn_rows *rows, tn_error *err)
{
    tn_bytes rest = record;
    const float label = tn_get_f32(&rest);
    const float weight = tn_get_f32(&rest);
    const uint32_t head = tn_get_u32(&rest);
    tn_fault fault = TN_FAULT_NONE;
    if (rest.failed) {
        return tn_record_location_fail(place, record, NULL, err, "damaged row");
    }
    if (!schema->label->none) {
        fault = isnan(label) ? TN_FAULT_NO_LABEL : tn_rows_label_number(rows, (double)label);
    }
    if (fault != TN_FAULT_NONE) {
        static const tn_bytes number = {"2", 1, false};
        tn_status status = refuse_number(place, record, fault, label, err);
        tn_record_location_hint(schema, NULL, number, fault, err); /* as of any */
        return status;
    }
    fault = tn_rows_weight_number(rows, (double)weight);
    if (fault != TN_FAULT_NONE) {
        return refuse_number(place, record, fault, weight, err);
    }
    return take_indices(record, head, schema, place, rows, err);
}

static tn_status crb_parse(tn_bytes record, const tn_schema *schema,
                           const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    TN_TRY(tn_rows_begin(rows, record.size, err));
    return tn_record_end(record, place, take_row(record, schema, place, rows, err), rows, err);
}

static const char *const crb_data[] = {"unknown_field", "slot_bits", NULL};
static const char *const crb_slot[] = {"field", "range", NULL};

extern const tn_format tn_format_crb;
const tn_format tn_format_crb = {
    .name = "crb",
    .help = "compressed row blocks of dmlc: one slot, or one per range or field of indices",
    .pairs = true,
    .binary = true,
    .container = &tn_container_crb,
    .data_options = crb_data,
    .slot_options = crb_slot,
    .cut = crb_cut,
    .resync = crb_resync,
    .parse = crb_parse,
};
