/* write_vw.c - Vowpal Wabbit's text: label [weight] ['id] |slot value[:x] .. |number :value ..
 *
 * A label that is no click is -1, as VW's logistic loss wants it. Slots that read the same column
 * are written once.
 */
#include "io/write/write_kind.h"

#include "base/core/number.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <string.h>

/* Whether the reader takes these bytes as one piece. */
static bool is_piece(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (memchr(" \t\r\n:|", text[i], 7) != NULL) { /* its 0 included */
            return false;
        }
    }
    return size > 0;
}

static tn_status plan_vw(tn_writer *w, tn_error *err)
{
    const tn_schema *s = w->schema;
    if (s->data->group != NULL && s->group_spec == NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "format 'vw' has no groups\nhint: 'group=~' leaves them out");
    }
    for (uint32_t i = 0; i < s->n_specs; i++) {
        const char *column = s->spec[i].column;
        if (!is_piece(column, strlen(column))) {
            return tn_fail(err, TN_E_CONFIG,
                           "column '%s' of slot '%s' cannot be the name of a namespace of "
                           "format 'vw'",
                           column, s->spec[i].name);
        }
    }
    return tn_write_plan_columns(w, err);
}

static tn_status not_a_piece(const tn_slot_spec *spec, const tn_bytes *token, tn_error *err)
{
    return tn_fail(err, TN_E_DATA,
                   "the value '%.*s' of %s%s%s is empty or holds a blank, ':' or '|', which end a "
                   "name of format 'vw'",
                   (int)(token->size < 80 ? token->size : 80), token->data,
                   spec != NULL ? "slot '" : "", spec != NULL ? spec->name : "the record id",
                   spec != NULL ? "'" : "");
}

static tn_status write_head(const tn_writer *w, const tn_rows *rows, const tn_parsed_row *row,
                            tn_text *out, tn_error *err)
{
    const tn_label_rule *label = w->schema->label;
    const tn_bytes id = {row->id.size > 0 ? rows->text + row->id.at : "", row->id.size, false};
    if (label->none && row->weight != 1) {
        return tn_fail(err, TN_E_DATA, "format 'vw' has no weight without a label");
    }
    if (!label->none) {
        const bool is_none = row->label == 0 && label->target <= TN_TARGET_SIDE;
        tn_write_float(out, is_none ? -1 : row->label);
    }
    if (row->weight != 1) {
        tn_text_addc(out, ' ');
        tn_write_float(out, row->weight);
    }
    if (id.size > 0) {
        if (!is_piece(id.data, id.size)) {
            return not_a_piece(NULL, &id, err);
        }
        tn_text_adds(out, label->none ? "'" : " '");
        tn_text_add(out, id.data, id.size);
    }
    return TN_OK;
}

/* In front of the first value of a column. */
static void begin_namespace(const tn_write_column *column, uint32_t *n, size_t begin, tn_text *out)
{
    if ((*n)++ > 0) {
        return;
    }
    tn_text_adds(out, out->size > begin ? " |" : "|");
    if (column->name_size != 1 || column->name[0] != '_') {
        tn_text_add(out, column->name, column->name_size);
    }
}

static tn_status write_slot(const tn_writer *w, const tn_write_column *column, tn_write_walk *walk,
                            size_t begin, tn_text *out, tn_error *err)
{
    const tn_slot_spec *spec = column->spec;
    const bool number = tn_spec_is_number(spec) && !(w->signs && spec->as == TN_AS_KEY);
    uint32_t n = 0;
    uint32_t i = tn_write_first(walk, spec->slot);
    for (; i < walk->to; i = tn_write_next(walk, spec->slot, i)) {
        char buffer[TN_WRITE_TOKEN_MAX];
        tn_bytes token = {0};
        if (!tn_write_token(w, walk->rows, i, buffer, &token)) {
            continue;
        }
        if (!is_piece(token.data, token.size)) {
            return not_a_piece(spec, &token, err);
        }
        begin_namespace(column, &n, begin, out);
        tn_text_adds(out, number ? " :" : " ");
        tn_text_add(out, token.data, token.size);
        if (!number && walk->rows->entry[i].value != 1) {
            tn_text_addc(out, ':');
            tn_write_float(out, walk->rows->entry[i].value);
        }
    }
    return TN_OK;
}

static tn_status write_vw(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                          tn_error *err)
{
    const tn_parsed_row *r = &rows->row[row];
    const size_t begin = out->size;
    TN_TRY(tn_write_check_label(w, r, err));
    if (r->group != TN_NO_GROUP && w->schema->group_spec == NULL) {
        return tn_fail(err, TN_E_DATA, "format 'vw' has no groups, the row is of group %llu",
                       (unsigned long long)r->group);
    }
    TN_TRY(write_head(w, rows, r, out, err));
    tn_write_walk walk = tn_write_walk_row(rows, row);
    for (uint32_t i = 0; i < w->n_columns; i++) {
        const tn_write_column *column = &w->column[i];
        tn_bytes token = {0};
        uint32_t n = 0;
        if (column->source == WRITE_SLOT) {
            TN_TRY(write_slot(w, column, &walk, begin, out, err));
        } else if (column->source == WRITE_NUMERIC &&
                   tn_write_numeric(rows, row, column->spec->numeric, &token)) {
            begin_namespace(column, &n, begin, out);
            tn_text_adds(out, " :");
            tn_text_add(out, token.data, token.size);
        }
    }
    if (out->size == begin && !out->failed) {
        return tn_fail(err, TN_E_DATA, "format 'vw' cannot say a row without label and values");
    }
    tn_text_addc(out, '\n');
    return TN_OK;
}

extern const tn_write_kind tn_write_kind_vw;
const tn_write_kind tn_write_kind_vw = {.name = "vw", .plan = plan_vw, .row = write_vw};
