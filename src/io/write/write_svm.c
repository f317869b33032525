/* write_svm.c - libsvm (label index:value ..), libffm (label field:index:value ..), and libfm,
 * which is either. */
#include "io/write/write_kind.h"

#include "base/core/number.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <math.h>

/* Words and negative numbers are no indices. */
static tn_status check_types(const tn_writer *w, tn_error *err)
{
    const tn_schema *s = w->schema;
    if (s->data->record_id != NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "format '%s' has no record ids\nhint: 'record_id=~' leaves them out",
                       w->kind->name);
    }
    if (s->index_base != 0) {
        return tn_fail(err, TN_E_CONFIG, "indices are written from 0, not from 'index_base' %u",
                       s->index_base);
    }
    for (uint32_t i = 0; i < s->n_slots; i++) {
        const tn_slot_spec *spec = s->slot[i];
        bool text = spec->type == TN_SIGN_STR || spec->type == TN_SIGN_HEX;
        if (text && !w->signs && spec->as == TN_AS_KEY) {
            return tn_fail(err, TN_E_CONFIG,
                           "format '%s' has decimal indices only, slot '%s' holds %s\n"
                           "hint: '--signs' writes its keys as numbers",
                           w->kind->name, spec->name,
                           spec->type == TN_SIGN_STR ? "words" : "hex digits");
        }
    }
    return TN_OK;
}

tn_status tn_write_plan_indices(tn_writer *w, bool groups, bool fields, tn_error *err)
{
    const tn_schema *s = w->schema;
    TN_TRY(check_types(w, err));
    if (!groups && s->data->group != NULL && s->group_spec == NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "format '%s' has no groups\nhint: 'group=~' leaves them out", w->kind->name);
    }
    if (!fields) {
        return TN_OK; /* the schema has compared their ranges */
    }
    w->field = TN_NEW_ARRAY(w->arena, uint32_t, (size_t)s->n_specs + 1);
    for (uint32_t i = 0; i < s->n_specs; i++) {
        if (s->spec[i].field == TN_UNSET_U32) {
            return tn_fail(err, TN_E_CONFIG, "slot '%s' has no 'field', its number in %s",
                           s->spec[i].name, w->kind->name);
        }
        const tn_slot_spec *spec = &s->spec[i];
        uint32_t place = spec->slot != TN_NOWHERE ? spec->slot : s->n_slots + spec->numeric;
        w->field[place] = spec->field;
    }
    return TN_OK;
}

static tn_status plan_libsvm(tn_writer *w, tn_error *err)
{
    return tn_write_plan_indices(w, true, false, err);
}

static tn_status plan_libffm(tn_writer *w, tn_error *err)
{
    return tn_write_plan_indices(w, false, true, err);
}

static tn_status plan_libfm(tn_writer *w, tn_error *err)
{
    return w->schema->columns->n_fields > 0 ? plan_libffm(w, err) : plan_libsvm(w, err);
}

static void write_label(const tn_parsed_row *row, bool none, tn_text *out)
{
    if (none) {
        return;
    }
    tn_write_float(out, row->label);
    if (row->weight != 1) {
        tn_text_addc(out, ':');
        tn_write_float(out, row->weight);
    }
}

static void separate(tn_text *out, size_t begin)
{
    if (out->size > begin) {
        tn_text_addc(out, ' ');
    }
}

static void write_field(const tn_writer *w, uint32_t place, tn_text *out)
{
    if (w->field != NULL) {
        tn_text_add_u64(out, w->field[place]);
        tn_text_addc(out, ':');
    }
}

tn_status tn_write_index(const tn_writer *w, const tn_slot_spec *spec, const tn_bytes *token,
                         uint64_t *out, tn_error *err)
{
    if (tn_read_u64(token->data, token->size, out) != TN_NUM_OK) {
        return tn_fail(err, TN_E_DATA, "'%.*s' of slot '%s' is not an index of format '%s'",
                       (int)(token->size < 80 ? token->size : 80), token->data, spec->name,
                       w->kind->name);
    }
    return TN_OK;
}

bool tn_write_is_number(const tn_writer *w, const tn_slot_spec *spec)
{
    return spec->as != TN_AS_KEY || (tn_spec_is_number(spec) && !w->signs);
}

/* An index must be a decimal number that the reader will give to the same slot. */
static tn_status check_index(const tn_writer *w, const tn_slot_spec *spec, const tn_bytes *token,
                             tn_error *err)
{
    uint64_t index = 0;
    TN_TRY(tn_write_index(w, spec, token, &index, err));
    if (w->field == NULL && (index < spec->range_from || index > spec->range_to)) {
        return tn_fail(err, TN_E_DATA, "index %llu of slot '%s' is not within its range",
                       (unsigned long long)index, spec->name);
    }
    return TN_OK;
}

static tn_status write_entry(const tn_writer *w, const tn_rows *rows, uint32_t i, tn_text *out,
                             tn_error *err)
{
    const tn_slot_spec *spec = w->schema->slot[rows->entry[i].slot];
    char buffer[TN_WRITE_TOKEN_MAX];
    tn_bytes token = {0};
    if (!tn_write_token(w, rows, i, buffer, &token)) {
        return TN_OK;
    }
    write_field(w, spec->slot, out);
    if (tn_write_is_number(w, spec)) {
        tn_text_add_u64(out, w->field == NULL ? spec->range_from : 0);
        tn_text_addc(out, ':');
        tn_text_add(out, token.data, token.size);
        return TN_OK;
    }
    TN_TRY(check_index(w, spec, &token, err));
    tn_text_add(out, token.data, token.size);
    tn_text_addc(out, ':');
    tn_write_float(out, rows->entry[i].value);
    return TN_OK;
}

static void write_numerics(const tn_writer *w, const tn_rows *rows, uint32_t row, size_t begin,
                           tn_text *out)
{
    for (uint32_t c = 0; c < w->schema->n_numeric; c++) {
        tn_bytes token = {0};
        if (!tn_write_numeric(rows, row, c, &token)) {
            continue;
        }
        separate(out, begin);
        write_field(w, w->schema->n_slots + c, out);
        tn_text_add_u64(out, w->field == NULL ? w->schema->numeric[c]->range_from : 0);
        tn_text_addc(out, ':');
        tn_text_add(out, token.data, token.size);
    }
}

static tn_status write_svm(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                           tn_error *err)
{
    const tn_parsed_row *r = &rows->row[row];
    size_t begin = out->size;
    bool none = w->schema->label->none;
    TN_TRY(tn_write_check_label(w, r, err));
    if (none && r->weight != 1) {
        return tn_fail(err, TN_E_DATA, "format '%s' has no weight without a label", w->kind->name);
    }
    write_label(r, none, out);
    if (w->field != NULL) {
        TN_TRY(tn_write_check_group(w, r, err));
    } else if (r->group != TN_NO_GROUP && w->schema->group_spec == NULL) {
        separate(out, begin);
        tn_text_adds(out, "qid:");
        tn_text_add_u64(out, r->group);
    }
    uint32_t end = tn_rows_end_of(rows, row);
    for (uint32_t i = r->first; i < end; i++) {
        separate(out, begin);
        TN_TRY(write_entry(w, rows, i, out, err));
    }
    write_numerics(w, rows, row, begin, out);
    if (out->size == begin && !out->failed) {
        return tn_fail(err, TN_E_DATA, "format '%s' cannot say a row without label and values",
                       w->kind->name);
    }
    tn_text_addc(out, '\n');
    return TN_OK;
}

extern const tn_write_kind tn_write_kind_libsvm;
const tn_write_kind tn_write_kind_libsvm = {
    .name = "libsvm", .plan = plan_libsvm, .row = write_svm};
extern const tn_write_kind tn_write_kind_libfm;
const tn_write_kind tn_write_kind_libfm = {.name = "libfm", .plan = plan_libfm, .row = write_svm};
extern const tn_write_kind tn_write_kind_libffm;
const tn_write_kind tn_write_kind_libffm = {
    .name = "libffm", .plan = plan_libffm, .row = write_svm};
