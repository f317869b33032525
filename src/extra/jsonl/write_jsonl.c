/* write_jsonl.c - one JSON object a line, members in the order of the columns.
 *
 *     {"label":1,"user":7,"tags":["a","b"],"price":19.5}
 *
 * A slot without a value has no member, one value is written alone, several are a list. Numbers are
 * written as they were read, as texts where JSON has no such number ("007").
 */
#include "io/write/write_kind.h"

#include "base/codec/json.h"
#include "base/codec/utf8.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <string.h>

static size_t digits_of(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n] >= '0' && text[n] <= '9') {
        n++;
    }
    return n;
}

/* Whether the text is a number of JSON. */
static bool is_number(const char *text, size_t size)
{
    const size_t sign = size > 0 && text[0] == '-';
    const size_t whole = digits_of(text + sign, size - sign);
    size_t at = sign + whole;
    bool good = whole > 0 && (whole == 1 || text[sign] != '0');
    if (at < size && text[at] == '.') {
        const size_t part = digits_of(text + at + 1, size - at - 1);
        at += 1 + part;
        good = good && part > 0;
    }
    if (at < size && (text[at] | 0x20) == 'e') {
        at++;
        at += at < size && (text[at] == '-' || text[at] == '+');
        const size_t power = digits_of(text + at, size - at);
        at += power;
        good = good && power > 0;
    }
    return good && at == size;
}

static tn_status check_utf8(const tn_write_column *column, const tn_bytes *token, tn_error *err)
{
    for (size_t at = 0, size = 0; at < token->size; at += size) {
        size = tn_utf8_size(token->data + at, token->size - at);
        if (size == 0) {
            return tn_fail(err, TN_E_DATA,
                           "a value of column '%s' is not UTF-8, which JSON wants all texts to be",
                           column->name);
        }
    }
    return TN_OK;
}

static tn_status put_token(const tn_writer *w, const tn_write_column *column, const char *key,
                           const tn_bytes *token, tn_text *out, tn_error *err)
{
    const tn_slot_spec *spec = column->spec;
    const bool text = spec == NULL || spec->type == TN_SIGN_STR || spec->type == TN_SIGN_HEX;
    if ((!text || w->signs) && is_number(token->data, token->size)) {
        tn_json_number(out, key, token->data, token->size);
        return TN_OK;
    }
    TN_TRY(check_utf8(column, token, err));
    tn_json_bytes(out, key, token->data, token->size);
    return TN_OK;
}

static bool is_null_word(const tn_writer *w, const tn_bytes *token)
{
    const tn_strs *words = &w->schema->data->null;
    uint32_t i = 0;
    while (i < words->n && (strlen(words->item[i]) != token->size ||
                            memcmp(words->item[i], token->data, token->size) != 0)) {
        i++;
    }
    return i < words->n;
}

/* How many values a slot has that are written, and whether one of them alone would read back as no
 * value. */
static uint32_t count_values(const tn_writer *w, const tn_write_column *column, tn_write_walk *walk,
                             bool *null_word)
{
    uint32_t n = 0;
    uint32_t i = tn_write_first(walk, column->spec->slot);
    for (; i < walk->to; i = tn_write_next(walk, column->spec->slot, i)) {
        char buffer[TN_WRITE_TOKEN_MAX];
        tn_bytes token = {0};
        if (tn_write_token(w, walk->rows, i, buffer, &token)) {
            n++;
            *null_word = is_null_word(w, &token);
        }
    }
    return n;
}

static tn_status write_slot(const tn_writer *w, const tn_write_column *column, tn_write_walk *walk,
                            tn_text *out, tn_error *err)
{
    bool null_word = false;
    const uint32_t n = count_values(w, column, walk, &null_word);
    const bool list = n > 1 || (n == 1 && null_word);
    const char *key = list ? NULL : column->name;
    if (list) {
        tn_json_open_key(out, column->name, '[');
    }
    uint32_t i = tn_write_first(walk, column->spec->slot);
    for (; i < walk->to; i = tn_write_next(walk, column->spec->slot, i)) {
        char buffer[TN_WRITE_TOKEN_MAX];
        tn_bytes token = {0};
        const float x = walk->rows->entry[i].value;
        if (!tn_write_token(w, walk->rows, i, buffer, &token)) {
            continue;
        }
        if (column->source == WRITE_VALUES) {
            tn_json_f32(out, key, x);
            continue;
        }
        TN_TRY(tn_write_check_x(column->spec, x, err));
        TN_TRY(put_token(w, column, key, &token, out, err));
    }
    if (list) {
        tn_json_close(out, ']');
    }
    return TN_OK;
}

/* A number, or the list of a vector. */
static tn_status write_numbers(const tn_writer *w, const tn_write_column *column,
                               const tn_rows *rows, uint32_t row, tn_text *out, tn_error *err)
{
    const tn_slot_spec *spec = column->spec;
    tn_bytes token = {0};
    if (!tn_write_numeric(rows, row, spec->numeric, &token)) {
        return TN_OK;
    }
    if (spec->width == 0) {
        return put_token(w, column, column->name, &token, out, err);
    }
    tn_json_open_key(out, column->name, '[');
    for (uint32_t k = 0; k < spec->width; k++) {
        (void)tn_write_numeric(rows, row, spec->numeric + k, &token);
        TN_TRY(put_token(w, column, NULL, &token, out, err));
    }
    tn_json_close(out, ']');
    return TN_OK;
}

static tn_status write_column(const tn_writer *w, const tn_write_column *column, uint32_t row,
                              tn_write_walk *walk, tn_text *out, tn_error *err)
{
    const tn_rows *rows = walk->rows;
    const tn_parsed_row *r = &rows->row[row];
    const tn_bytes id = {r->id.size > 0 ? rows->text + r->id.at : "", r->id.size, false};
    switch (column->source) {
    case WRITE_LABEL:
        tn_json_f32(out, column->name, r->label);
        return TN_OK;
    case WRITE_WEIGHT:
        tn_json_f32(out, column->name, r->weight);
        return TN_OK;
    case WRITE_GROUP:
        if (r->group != TN_NO_GROUP) {
            tn_json_u64(out, column->name, r->group);
        }
        return TN_OK;
    case WRITE_ID:
        return id.size > 0 ? put_token(w, column, column->name, &id, out, err) : TN_OK;
    case WRITE_NUMERIC:
        return write_numbers(w, column, rows, row, out, err);
    case WRITE_SLOT:
    case WRITE_VALUES:
        return write_slot(w, column, walk, out, err);
    case WRITE_NOTHING:
        return TN_OK;
    }
    return TN_OK;
}

static tn_status write_jsonl(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                             tn_error *err)
{
    TN_TRY(tn_write_check_row(w, &rows->row[row], err));
    tn_write_walk walk = tn_write_walk_row(rows, row);
    tn_json_open(out, '{');
    for (uint32_t i = 0; i < w->n_columns; i++) {
        TN_TRY(write_column(w, &w->column[i], row, &walk, out, err));
    }
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
    return TN_OK;
}

extern const tn_write_kind tn_write_kind_jsonl;
const tn_write_kind tn_write_kind_jsonl = {
    .name = "jsonl", .plan = tn_write_plan_columns, .row = write_jsonl};
