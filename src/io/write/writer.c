/* writer.c - rows to records: what the writers of all formats share. */
#include "io/write/writer.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/math/key.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "io/write/write_kind.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TN_WRITE_KIND(name) extern const tn_write_kind tn_write_kind_##name;
#include "io/write/write_kinds.def"
#undef TN_WRITE_KIND

static const tn_write_kind *const kinds[] = {
#define TN_WRITE_KIND(name) &tn_write_kind_##name,
#include "io/write/write_kinds.def"
#undef TN_WRITE_KIND
    NULL,
};

const tn_write_kind *tn_write_kind_find(const char *format)
{
    uint32_t i = 0;
    while (kinds[i] != NULL && strcmp(kinds[i]->name, format) != 0) {
        i++;
    }
    return kinds[i];
}

tn_status tn_writer_new(tn_writer **out, const char *format, const tn_schema *schema,
                        uint32_t flags, tn_error *err)
{
    *out = NULL;
    const tn_write_kind *kind = tn_write_kind_find(format);
    if (kind == NULL) {
        return tn_fail(err, TN_E_CONFIG, "format '%s' is not written here", format);
    }
    for (uint32_t i = 0; i < schema->n_numbers && tn_format_find(format)->pairs; i++) {
        if (schema->numeric[i]->width > 0) {
            return tn_fail(err, TN_E_CONFIG,
                           "slot '%s' is a vector, and records of format '%s' have none",
                           schema->numeric[i]->name, format);
        }
    }
    tn_writer *w = tn_alloc(1, sizeof *w, "a writer");
    w->kind = kind;
    w->schema = schema;
    w->signs = (flags & TN_WRITE_SIGNS) != 0;
    w->arena = tn_arena_new(1 << 14);
    tn_status status = w->kind->plan(w, err);
    if (status != TN_OK) {
        tn_writer_free(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

void tn_writer_free(tn_writer *w)
{
    if (w != NULL) {
        tn_arena_free(w->arena);
        tn_free(w);
    }
}

void tn_writer_columns(const tn_writer *w, tn_text *out)
{
    for (uint32_t i = 0; i < w->n_columns; i++) {
        tn_text_adds(out, i > 0 ? ", " : "");
        tn_tree_print_scalar(out, w->column[i].name);
    }
}

void tn_writer_head(const tn_writer *w, tn_text *out)
{
    if (w->kind->head != NULL) {
        w->kind->head(w, out);
    }
}

/* Checks that signs have texts: that of a word is its hash, but an anonymous feature of a
 * namespace has a number, of which no text is known. */
static tn_status check_anonymous(const tn_writer *w, const tn_rows *rows, uint32_t row,
                                 tn_error *err)
{
    const uint32_t end = tn_rows_end_of(rows, row);
    const bool named = w->signs || !rows->schema->namespaces;
    for (uint32_t i = rows->row[row].first; !named && i < end; i++) {
        const tn_slot_spec *spec = rows->schema->slot[rows->entry[i].slot];
        const tn_token token = rows->token[i];
        if (spec->type == TN_SIGN_STR && token.size != TN_TOKEN_NONE &&
            tn_sign_of(rows->entry[i].key, spec->salt) !=
                tn_xxh64(rows->text + token.at, token.size, 0)) {
            return tn_fail(err, TN_E_DATA,
                           "feature %.*s of slot '%s' is anonymous, and format '%s' has no words "
                           "for it\nhint: '--signs' writes its keys as numbers",
                           (int)token.size, rows->text + token.at, spec->name, w->kind->name);
        }
    }
    return TN_OK;
}

tn_status tn_writer_row(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                        tn_error *err)
{
    TN_ASSERT(row < rows->n && rows->schema->n_slots == w->schema->n_slots);
    TN_ASSERT(rows->schema->n_numeric == w->schema->n_numeric);
    TN_ASSERT(rows->token != NULL || rows->n_entries == 0);
    TN_TRY(check_anonymous(w, rows, row, err));
    return w->kind->row(w, rows, row, out, err);
}

tn_status tn_writer_pack(const tn_writer *w, tn_text *text, tn_error *err)
{
    return tn_write_pack(w->kind, text, err);
}

void tn_write_copy(const tn_write_kind *kind, tn_bytes record, tn_text *out)
{
    if (kind != NULL && kind->copy != NULL) {
        kind->copy(record, out);
    } else {
        tn_text_add(out, record.data, record.size);
        tn_text_addc(out, '\n');
    }
}

tn_status tn_write_pack(const tn_write_kind *kind, tn_text *rows, tn_error *err)
{
    TN_TRY(tn_text_check(rows, "written rows", err));
    return kind != NULL && kind->pack != NULL && rows->size > 0 ? kind->pack(rows, err) : TN_OK;
}

static void add_column(tn_writer *w, tn_write_source source, const char *name,
                       const tn_slot_spec *spec)
{
    for (uint32_t i = 0; i < w->n_columns; i++) {
        if (strcmp(w->column[i].name, name) == 0) {
            return; /* a second reader of the same column */
        }
    }
    w->column[w->n_columns++] = (tn_write_column){source, name, (uint32_t)strlen(name), spec};
}

/* The first slot or number that reads a column; NULL: none does. */
static const tn_slot_spec *reader_of(const tn_schema *s, const char *column)
{
    for (uint32_t i = 0; i < s->n_specs; i++) {
        if (strcmp(s->spec[i].column, column) == 0) {
            return &s->spec[i];
        }
    }
    return NULL;
}

tn_status tn_write_plan_columns(tn_writer *w, tn_error *err)
{
    (void)err;
    const tn_schema *s = w->schema;
    w->column = TN_NEW_ARRAY(w->arena, tn_write_column, 4 + 2 * (size_t)s->n_specs);
    if (!s->label->none) {
        add_column(w, WRITE_LABEL, s->label->column, NULL);
    }
    if (s->data->weight != NULL) {
        add_column(w, WRITE_WEIGHT, s->data->weight, NULL);
    }
    if (s->data->record_id != NULL) {
        add_column(w, WRITE_ID, s->data->record_id, reader_of(s, s->data->record_id));
    }
    if (s->data->group != NULL && s->group_spec == NULL) {
        add_column(w, WRITE_GROUP, s->data->group, NULL);
    }
    for (uint32_t i = 0; i < s->n_specs; i++) {
        const tn_slot_spec *spec = &s->spec[i];
        add_column(w, spec->slot != TN_NOWHERE ? WRITE_SLOT : WRITE_NUMERIC, spec->column, spec);
        if (spec->values != NULL) {
            add_column(w, WRITE_VALUES, spec->values, spec);
        }
    }
    return TN_OK;
}

tn_write_walk tn_write_walk_row(const tn_rows *rows, uint32_t row)
{
    tn_write_walk walk = {.rows = rows, .from = rows->row[row].first, .ascending = true};
    walk.to = tn_rows_end_of(rows, row);
    walk.at = walk.from;
    for (uint32_t i = walk.from + 1; i < walk.to; i++) {
        walk.ascending = walk.ascending && rows->entry[i - 1].slot <= rows->entry[i].slot;
    }
    return walk;
}

/* From entry `at` on, the first of the slot; walk->to: none. */
static uint32_t seek(tn_write_walk *walk, uint32_t slot, uint32_t at)
{
    const tn_entry *entry = walk->rows->entry;
    for (; at < walk->to && entry[at].slot != slot; at++) {
        if (walk->ascending && entry[at].slot > slot) {
            return walk->to;
        }
    }
    if (at < walk->to) {
        walk->at = at;
    }
    return at;
}

uint32_t tn_write_first(tn_write_walk *walk, uint32_t slot)
{
    bool behind = walk->ascending && walk->at < walk->to && walk->rows->entry[walk->at].slot < slot;
    return seek(walk, slot, behind ? walk->at : walk->from);
}

uint32_t tn_write_next(tn_write_walk *walk, uint32_t slot, uint32_t i)
{
    return seek(walk, slot, i + 1);
}

bool tn_write_token(const tn_writer *w, const tn_rows *rows, uint32_t i, char *buffer,
                    tn_bytes *out)
{
    const tn_entry *entry = &rows->entry[i];
    if (rows->token[i].size == TN_TOKEN_NONE) {
        return false;
    }
    const tn_slot_spec *spec = rows->schema->slot[entry->slot];
    bool shifted =
        rows->schema->index_base != 0 && spec->type == TN_SIGN_ID && !tn_spec_is_number(spec);
    if (spec->as == TN_AS_KEY && (w->signs || shifted)) {
        int size = snprintf(buffer, TN_WRITE_TOKEN_MAX, "%llu",
                            (unsigned long long)tn_sign_of(entry->key, spec->salt));
        *out = (tn_bytes){.data = buffer, .size = (size_t)size};
    } else {
        *out = (tn_bytes){.data = rows->text + rows->token[i].at, .size = rows->token[i].size};
    }
    return true;
}

tn_status tn_write_check_x(const tn_slot_spec *spec, float x, tn_error *err)
{
    if (x == 1 || spec->values != NULL || tn_spec_is_number(spec)) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_DATA,
                   "a value of slot '%s' has x = %g and the slot no column 'values' to keep it in",
                   spec->name, (double)x);
}

tn_status tn_write_check_label(const tn_writer *w, const tn_parsed_row *row, tn_error *err)
{
    return isnan(row->label) && !w->schema->label->none
               ? tn_fail(err, TN_E_DATA, "the row has no label\nhint: 'label=none' leaves it out")
               : TN_OK;
}

tn_status tn_write_check_group(const tn_writer *w, const tn_parsed_row *row, tn_error *err)
{
    return row->group != TN_NO_GROUP && w->schema->group_spec == NULL
               ? tn_fail(err, TN_E_DATA, "format '%s' has no groups, the row is of group %llu",
                         w->kind->name, (unsigned long long)row->group)
               : TN_OK;
}

tn_status tn_write_check_row(const tn_writer *w, const tn_parsed_row *row, tn_error *err)
{
    const tn_schema *s = w->schema;
    TN_TRY(tn_write_check_label(w, row, err));
    if (row->weight != 1 && s->data->weight == NULL) {
        return tn_fail(err, TN_E_DATA, "the row weighs %g and no column 'weight' can keep it",
                       (double)row->weight);
    }
    if (row->group != TN_NO_GROUP && s->data->group == NULL) {
        return tn_fail(err, TN_E_DATA,
                       "the row belongs to group %llu and no column 'group' can keep it",
                       (unsigned long long)row->group);
    }
    return TN_OK;
}

tn_status tn_write_real(const tn_slot_spec *spec, const tn_bytes *token, float *out, tn_error *err)
{
    tn_numeral read = tn_read_f32(token->data, token->size, out);
    if (read != TN_NUM_OK && read != TN_NUM_NOT_FINITE) {
        return tn_fail(err, TN_E_DATA, "'%.*s' of slot '%s' is not a number that a float holds",
                       (int)(token->size < 80 ? token->size : 80), token->data, spec->name);
    }
    return TN_OK;
}

void tn_write_float(tn_text *out, float value)
{
    if (value >= 0 && value < 1e6F && value == truncf(value) && !signbit(value)) {
        tn_text_add_u64(out, (uint64_t)value);
        return;
    }
    char text[TN_NUMBER_TEXT_MAX];
    tn_text_add(out, text, tn_write_f32(text, value));
}

bool tn_write_numeric(const tn_rows *rows, uint32_t row, uint32_t column, tn_bytes *out)
{
    const tn_token *token =
        &rows->numeric_token[(size_t)row * tn_schema_numbers(rows->schema) + column];
    if (token->size == TN_TOKEN_NONE) {
        return false;
    }
    *out = (tn_bytes){.data = rows->text + token->at, .size = token->size};
    return true;
}
