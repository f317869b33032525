/* format_libsvm.c - libsvm, libffm and libfm: label[:weight] [qid:id] index[:value] .. [# comment],
 * the dialects in use united, and label[:weight] field:index[:value] .. [# comment].
 *
 * In libsvm one slot takes all indices, or each of several takes a range of them.
 *
 *     1:2.5 qid:7  0:12:0.5 1:3   # note
 *     begin_line   has_more / take_index / add_pair
 *
 *     1 0:12:1 1:5:1 ...        marks of libffm: ' ' ':' ':' ' ' ':' ':' ' ' .., of libsvm ' ' ':'
 *
 * The fast path finds all blanks and colons first; as long as they alternate as they should, the
 * indices are laid side by side (io/text/token_vectors.h) and become keys at once. The first pair
 * that is unusual ends the fast path, as does the last of the line, which no blank ends.
 */
#include "base/core/number.h"
#include "io/format/format.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "io/text/digits.h"

#include <math.h>
#include <string.h>

/* A walk over one line, with its position `at`. Faults name the place. */
typedef struct pairs {
    const char *at;
    const char *end;
    tn_bytes line;
    const tn_record_location *place;
    const tn_schema *schema;
    tn_rows *rows;
    bool begun; /* something after the label was taken */
} pairs;

/* ---- the fast path ---- */

/* A line whose marks have been found. */
typedef struct marked {
    const char *line;
    const uint16_t *mark;
    uint32_t n_marks;
    uint32_t step;  /* marks of a pair, the blank in front of it included */
    uint32_t first; /* the mark in front of the first pair */
    const tn_schema *schema;
    const tn_token_vectors *lanes;
    tn_token_vectors_text text;
} marked;

/* The marks of pair k, from its blank to that of the next. */
static inline const uint16_t *marks_of(const marked *m, uint32_t k)
{
    return m->mark + m->first + (size_t)k * m->step;
}

static bool fast_label(const pairs *in, size_t size)
{
    float *out = &in->rows->row[in->rows->n].label;
    return (size == 1 && tn_label_of_bit(in->schema->label, in->line.data[0], out)) ||
           tn_rows_label(in->rows, in->line.data, size) == TN_FAULT_NONE;
}

/* Takes a qid after the label. False: there is one, and it is not plain. */
static bool fast_qid(marked *m, pairs *in)
{
    enum { DIGITS_MAX = 19 };
    const char *from = m->line + m->mark[0] + 1;
    uint64_t id;
    if (m->step != 2 || m->n_marks < 3 || *from != 'q') {
        return true;
    }
    const char *to = m->line + m->mark[2];
    if (m->mark[1] - m->mark[0] != 4 || memcmp(from, "qid:", 4) != 0 || *to != ' ' ||
        to - from - 5 >= DIGITS_MAX || to - from == 4 || tn_take_digits(from + 4, to, &id) != to) {
        return false;
    }
    tn_rows_group(in->rows, id);
    m->first = 2;
    in->begun = true;
    return true;
}

/* The spec of a field; NULL: left to the slow path. */
static inline const tn_slot_spec *spec_of_field(const marked *m, const char *from, const char *to)
{
    enum { DIGITS_MAX = 5 };
    const tn_columns *columns = m->schema->columns;
    uint32_t field = 0;
    if (to - from > DIGITS_MAX || to == from) {
        return NULL;
    }
    for (; from < to; from++) {
        uint32_t digit = (uint32_t)(unsigned char)*from - '0';
        if (digit > 9) {
            return NULL;
        }
        field = field * 10 + digit;
    }
    uint32_t i = field < columns->n_fields ? columns->spec_of_field[field] : TN_NOWHERE;
    return i != TN_NOWHERE ? &m->schema->spec[i] : NULL;
}

static inline bool is_plain(const tn_slot_spec *spec)
{
    return spec != NULL && spec->plain_key && spec->type == TN_SIGN_ID;
}

/* Returns whether pair `at` has its marks in place, without looking at values. */
static inline bool is_pair(const char *line, const uint16_t *at, bool fields)
{
    bool good = line[at[1]] == ':' && line[at[2]] == (fields ? ':' : ' ');
    return good && (!fields || line[at[3]] == ' ');
}

/* Lays the indices side by side; returns how many pairs have their marks in place. */
static inline uint32_t lay_pairs(const marked *m, uint32_t n, bool fields, uint64_t *size_max)
{
    const uint32_t step = fields ? 3 : 2;
    const char *line = m->line;
    const uint16_t *restrict at = marks_of(m, 0);
    const tn_token_vectors_text *text = &m->text;
    uint64_t *restrict size = m->lanes->size;
    uint64_t *restrict low = m->lanes->low;
    uint64_t *restrict tag = m->lanes->tag;
    uint64_t *restrict salt = m->lanes->salt;
    uint64_t longest = 0;
    uint32_t k = 0;
    for (; k < n && is_pair(line, at, fields); k++, at += step) {
        if (fields) {
            const tn_slot_spec *spec = spec_of_field(m, line + at[0] + 1, line + at[1]);
            if (!is_plain(spec)) {
                break;
            }
            tag[k] = spec->slot;
            salt[k] = spec->salt;
        }
        size_t end = at[step - 1];
        uint64_t digits = end - at[step - 2] - 1;
        size[k] = digits;
        low[k] = tn_token_vectors_digits_at(tn_token_vectors_end(text, end), digits);
        longest = digits > longest ? digits : longest;
    }
    *size_max = longest;
    return k;
}

/* From indices to signs; how many are good. */
static uint32_t make_signs(const marked *m, uint32_t n, uint64_t size_max)
{
    const tn_token_vectors *l = m->lanes;
    uint64_t base = m->schema->index_base;
    if (size_max <= TN_TOKEN_VECTORS_WORD) {
        tn_token_vectors_short(l, 0, n);
    } else {
        for (uint32_t k = 0; k < n; k++) {
            const uint16_t *from = marks_of(m, k) + m->step - 2;
            tn_token_vectors_set_high(l, k, tn_token_vectors_end(&m->text, from[1]));
        }
        tn_token_vectors_long(l, 0, n);
    }
    const uint64_t *restrict bad = l->bad;
    uint64_t *restrict sign = l->sign;
    for (uint32_t k = 0; k < n; k++) {
        if ((bad[k] != 0) | (sign[k] < base)) {
            return k;
        }
        sign[k] -= base;
    }
    return n;
}

static bool takes_all(const tn_slot_spec *spec)
{
    return spec->range_to == UINT64_MAX && spec->range_from == 0;
}

/* libsvm: the slots that take the indices, and their keys; how many are taken. */
static uint32_t find_slots(const marked *m, uint32_t n)
{
    const tn_schema *schema = m->schema;
    const tn_token_vectors *l = m->lanes;
    const tn_slot_spec *only = &schema->spec[0];
    if (schema->n_specs == 1 && takes_all(only)) {
        n = is_plain(only) ? n : 0;
        memset(l->tag, 0, n * sizeof *l->tag); /* the only slot is the first */
        tn_token_vectors_keys(l, n, only->salt);
        return n;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = tn_columns_of_index(schema->columns, schema, l->sign[k]);
        if (i == TN_NOWHERE || !is_plain(&schema->spec[i])) {
            n = k;
            break;
        }
        l->tag[k] = schema->spec[i].slot;
        l->salt[k] = schema->spec[i].salt;
    }
    tn_token_vectors_keys_each(l, n, l->salt);
    return n;
}

/* Entries of pairs whose values can be read; how many. */
static uint32_t put_pairs(const marked *m, tn_rows *rows, uint32_t n)
{
    const uint32_t step = m->step;
    const char *line = m->line;
    const uint16_t *restrict colon = marks_of(m, 0) + step - 1;
    const uint64_t *restrict key = m->lanes->sign;
    const uint64_t *restrict slot = m->lanes->tag;
    tn_entry *to = rows->entry + rows->n_entries;
    uint32_t k = 0;
    for (; k < n; k++, colon += step) {
        const char *from = line + colon[0] + 1;
        size_t size = (size_t)colon[1] - colon[0] - 1;
        int digit = *from - '0';
        to[k] = (tn_entry){key[k], (uint32_t)slot[k], (float)digit};
        if (((size != 1) | ((unsigned)digit > 9)) &&
            (tn_read_f32(from, size, &to[k].value) != TN_NUM_OK || fabsf(to[k].value) > TN_X_MAX)) {
            break;
        }
    }
    rows->n_entries += k;
    return k;
}

static bool begin_row(const pairs *in, tn_bytes line, size_t label_size)
{
    if (tn_rows_begin(in->rows, line.size, NULL) != TN_OK) {
        return false;
    }
    if (!fast_label(in, label_size)) {
        tn_rows_rollback(in->rows);
        return false;
    }
    return true;
}

/* Finds the marks; false: no line for the fast path. */
static bool look(marked *m, const pairs *in, tn_bytes line)
{
    struct rows_private *p = in->rows->private;
    bool odd = true;
    if ((p->keep & TN_ROWS_SIGNS) != 0 || line.size > TN_DELIMITER_MASKS_LINE_MAX ||
        in->schema->label->none) {
        return false;
    }
    const uint16_t *place = tn_rows_places(in->rows, line.size);
    if (place == NULL) {
        return false;
    }
    m->mark = place + 1;
    m->n_marks = p->marks->find(line.data, line.size, 0, p->place + 1, &odd);
    m->lanes = &p->lanes;
    return !odd && m->n_marks > 0 && m->mark[0] > 0 && line.data[m->mark[0]] == ' ' &&
           tn_token_vectors_reserve(&p->lanes, m->n_marks);
}

/* The fast path, in place of begin_line: takes label, qid and pairs as most are, as far as it goes;
 * the slow path goes on from there and finds what is wrong. `fields`: libffm. False: nothing was
 * taken, not even the label. */
static bool begin_fast(pairs *in, bool fields)
{
    tn_bytes line = in->line;
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    marked m = {.line = line.data, .schema = in->schema, .step = fields ? 3 : 2};
    if (!look(&m, in, line) || !begin_row(in, line, m.mark[0])) {
        return false;
    }
    in->line = line;
    uint64_t size_max = 0;
    uint32_t n = 0;
    if (fast_qid(&m, in)) {
        tn_token_vectors_begin(&m.text, line.data, line.size);
        n = (m.n_marks - 1 - m.first) / m.step;
        n = fields ? lay_pairs(&m, n, true, &size_max) : lay_pairs(&m, n, false, &size_max);
        n = make_signs(&m, n, size_max);
        if (fields) {
            tn_token_vectors_keys_each(m.lanes, n, m.lanes->salt);
        } else {
            n = find_slots(&m, n);
        }
        n = put_pairs(&m, in->rows, n);
    }
    in->begun = in->begun || n > 0;
    in->at = line.data + *marks_of(&m, n);
    in->end = line.data + line.size;
    return true;
}

/* ---- the slow path ---- */

/* Skips blanks. False: the line ends here, or a comment begins. */
static inline bool has_more(pairs *in)
{
    while (in->at < in->end && tn_is_blank(*in->at)) {
        in->at++;
    }
    return in->at < in->end && *in->at != '#';
}

/* Takes 1 to 20 digits; false: there is none, or they are too large (then *at is after them). */
static inline bool take_digits(pairs *in, uint64_t *out)
{
    const char *p = tn_take_digits(in->at, in->end, out);
    size_t size = (size_t)(p - in->at);
    in->at = p;
    return size > 0 && (size < 20 || tn_read_u64(p - size, size, out) == TN_NUM_OK);
}

static tn_status fault_at(const pairs *in, const char *from, const char *to, tn_fault fault,
                          tn_error *err)
{
    tn_bytes token = {from, (size_t)(to - from), false};
    tn_status status = tn_record_location_fault(in->place, in->line, token, fault, err);
    tn_record_location_hint(in->schema, NULL, token, fault, err);
    return status;
}

/* Returns the end of the token that begins at `from`: a blank, or `stop` if that is not 0. */
static const char *token_end(const pairs *in, const char *from, char stop)
{
    const char *p = from;
    while (p < in->end && !tn_is_blank(*p) && (*p != stop || stop == 0)) {
        p++;
    }
    return p;
}

static bool is_number_char(char c)
{
    char lower = (char)(c | 0x20);
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '+' || c == '-' ||
           c == '.';
}

/* As a message may show it. */
static char shown(char c)
{
    return (char)(c >= ' ' && c < 0x7f ? c : '?');
}

static tn_status take_weight(pairs *in, tn_error *err)
{
    const char *from = ++in->at;
    in->at = token_end(in, from, ':');
    tn_fault fault = tn_rows_weight(in->rows, from, (size_t)(in->at - from));
    if (fault != TN_FAULT_NONE) {
        return fault_at(in, from, in->at, fault, err);
    }
    if (in->at < in->end && *in->at == ':') {
        return tn_record_location_fail(in->place, in->line, in->at, err,
                                       "expected a blank after the weight, found ':'");
    }
    return TN_OK;
}

static tn_status take_label(pairs *in, tn_error *err)
{
    const char *from = in->at;
    const char *to = token_end(in, from, ':');
    if (in->schema->label->n_values == 0) {
        for (const char *p = from; p < to; p++) {
            if (!is_number_char(*p) && p > from) {
                return tn_record_location_fail(
                    in->place, in->line, p, err,
                    "expected a blank or ':' after the label, found '%c'", shown(*p));
            }
        }
    }
    tn_fault fault = tn_rows_label(in->rows, from, (size_t)(to - from));
    if (fault != TN_FAULT_NONE) {
        return fault_at(in, from, to, fault, err);
    }
    in->at = to;
    return to < in->end && *to == ':' ? take_weight(in, err) : TN_OK;
}

/* Begins the row. TN_END: blank or a comment. */
static tn_status begin_line(pairs *in, tn_error *err)
{
    TN_TRY(tn_line_clean(&in->line, in->place, err));
    in->at = in->line.data;
    in->end = in->line.data + in->line.size;
    return has_more(in) ? tn_rows_begin(in->rows, in->line.size, err) : TN_END;
}

/* The fault of a number that could not be taken: no digits, or a number too large that begins at
 * `from`. */
static tn_status no_digits(const pairs *in, const char *from, const char *what, tn_error *err)
{
    if (in->at > from) {
        return tn_record_location_fail(in->place, in->line, from, err,
                                       "%s too large, found \"%.*s\"", what,
                                       (int)(in->at - from < 40 ? in->at - from : 40), from);
    }
    if (in->at == in->end) {
        return tn_record_location_fail(in->place, in->line, in->at, err,
                                       "expected %s %s at the end of the line",
                                       strchr("aeiou", what[0]) != NULL ? "an" : "a", what);
    }
    return tn_record_location_fail(in->place, in->line, in->at, err, "expected %s %s, found '%c'",
                                   strchr("aeiou", what[0]) != NULL ? "an" : "a", what,
                                   shown(*in->at));
}

/* Takes an index, with the base off it. */
static inline tn_status take_index(pairs *in, uint64_t *out, tn_error *err)
{
    const char *from = in->at;
    if (!take_digits(in, out)) {
        return no_digits(in, from, "index", err);
    }
    if (*out < in->schema->index_base) {
        return fault_at(in, from, in->at, TN_FAULT_BASE, err);
    }
    *out -= in->schema->index_base;
    return TN_OK;
}

/* Takes a value after an index, or nothing (*size 0). */
static tn_status take_value(pairs *in, const char **from, size_t *size, tn_error *err)
{
    *size = 0;
    if (in->at == in->end || tn_is_blank(*in->at)) {
        return TN_OK;
    }
    if (*in->at != ':') {
        return tn_record_location_fail(in->place, in->line, in->at, err,
                                       "expected a blank or ':' after the index, found '%c'",
                                       shown(*in->at));
    }
    *from = in->at + 1;
    const char *p = *from;
    while (p < in->end && !tn_is_blank(*p)) {
        if (*p == ':') {
            const tn_status fault = tn_record_location_fail(
                in->place, in->line, p, err, "expected a blank after the value, found ':'");
            const bool triple = strcmp(in->schema->data->format, "libsvm") == 0;
            return tn_record_advise(
                fault, triple ? "'data.format: libffm' reads FIELD:INDEX:VALUE" : NULL, err);
        }
        p++;
    }
    *size = (size_t)(p - *from);
    in->at = p;
    if (*size == 0) {
        return tn_record_location_fail(in->place, in->line, p, err, "expected a value after ':'");
    }
    return TN_OK;
}

/* The general case of add_pair. */
static tn_status add_any_pair(pairs *in, const tn_slot_spec *spec, const char *index, uint64_t sign,
                              tn_error *err)
{
    const char *index_end = in->at;
    const char *from = "1";
    size_t size = 0;
    TN_TRY(take_value(in, &from, &size, err));
    tn_fault fault = TN_FAULT_NONE;
    if (tn_spec_is_number(spec)) {
        fault = tn_rows_token(in->rows, spec, from, size > 0 ? size : 1, 1);
        if (fault != TN_FAULT_NONE && size == 0) {
            return fault_at(in, index, index_end, fault, err);
        }
        return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, from, from + size, fault, err);
    }
    float x;
    fault = tn_rows_read_x(spec, from, size > 0 ? size : 1, &x);
    if (fault != TN_FAULT_NONE) {
        return fault_at(in, from, from + size, fault, err);
    }
    if (!isfinite(x)) {
        return TN_OK;
    }
    bool rebased = spec->type == TN_SIGN_INT && in->schema->index_base > 0 && sign <= INT64_MAX;
    fault = spec->type == TN_SIGN_ID || rebased
                ? tn_rows_integer(in->rows, spec, (int64_t)sign, x)
                : tn_rows_token(in->rows, spec, index, (size_t)(index_end - index), x);
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, index, index_end, fault, err);
}

/* Adds the pair whose sign is the text from `index` to `at`, and takes its value: none, or ':' and
 * a number; nearly all have none, or one digit. `sign` is the number, with the base taken off. */
static inline tn_status add_pair(pairs *in, const tn_slot_spec *spec, const char *index,
                                 uint64_t sign, tn_error *err)
{
    const char *p = in->at;
    size_t left = (size_t)(in->end - p);
    bool none = left == 0 || tn_is_blank(p[0]);
    bool digit =
        left >= 2 && p[0] == ':' && (unsigned)(p[1] - '0') <= 9 && (left == 2 || tn_is_blank(p[2]));
    if ((none || digit) && is_plain(spec) && in->rows->token == NULL &&
        tn_rows_put(in->rows, spec, sign, none ? 1 : (float)(p[1] - '0'))) {
        in->at = none ? p : p + 2;
        return TN_OK;
    }
    return add_any_pair(in, spec, index, sign, err);
}

/* Passes over a value that no slot takes; it must read well all the same. */
static tn_status ignore_pair(pairs *in, tn_error *err)
{
    static const tn_slot_spec any = {.non_finite_absent = true};
    const char *from = NULL;
    size_t size = 0;
    float x;
    TN_TRY(take_value(in, &from, &size, err));
    tn_fault fault = size > 0 ? tn_rows_read_x(&any, from, size, &x) : TN_FAULT_NONE;
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, from, from + size, fault, err);
}

/* ---- libsvm ---- */

static tn_status take_qid(pairs *in, tn_error *err)
{
    in->at += 4;
    const char *from = in->at;
    uint64_t id;
    if (!take_digits(in, &id) || (in->at < in->end && !tn_is_blank(*in->at))) {
        return tn_record_location_fail(in->place, in->line, from, err,
                                       "expected a decimal integer after qid:");
    }
    tn_rows_group(in->rows, id);
    return TN_OK;
}

static tn_status take_pair(pairs *in, tn_error *err)
{
    const char *from = in->at;
    uint64_t index;
    TN_TRY(take_index(in, &index, err));
    uint32_t i = tn_columns_of_index(in->schema->columns, in->schema, index);
    if (i != TN_NOWHERE) {
        return add_pair(in, &in->schema->spec[i], from, index, err);
    }
    if (in->schema->data->unknown_field == TN_FIELD_IS_ERROR) {
        return tn_record_location_fail(in->place, in->line, from, err, "no slot takes index %.*s",
                                       (int)(in->at - from), from);
    }
    return ignore_pair(in, err);
}

/* ---- libffm ---- */

/* The slot of a field; NULL: none takes it and it is to be ignored. */
static tn_status slot_of_field(const pairs *in, const char *from, uint64_t field,
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

static tn_status take_field(pairs *in, tn_error *err)
{
    const char *from = in->at;
    const tn_slot_spec *spec;
    uint64_t field;
    uint64_t index;
    if (!take_digits(in, &field)) {
        return no_digits(in, from, "field", err);
    }
    if (in->at == in->end || *in->at != ':') {
        return tn_record_location_fail(in->place, in->line, in->at, err,
                                       "expected ':' after the field");
    }
    TN_TRY(slot_of_field(in, from, field, &spec, err));
    from = ++in->at;
    TN_TRY(take_index(in, &index, err));
    return spec != NULL ? add_pair(in, spec, from, index, err) : ignore_pair(in, err);
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

/* ---- both ---- */

/* `fields`: libffm. */
static tn_status parse_line(tn_bytes record, const tn_schema *schema,
                            const tn_record_location *place, bool fields, tn_rows *rows,
                            tn_error *err)
{
    pairs in = {.line = record, .place = place, .schema = schema, .rows = rows};
    tn_status status = TN_OK;
    if (!begin_fast(&in, fields)) {
        TN_TRY(begin_line(&in, err));
        status = schema->label->none ? TN_OK : take_label(&in, err);
    }
    if (status == TN_OK && !fields && has_more(&in) && !in.begun && in.end - in.at >= 4 &&
        memcmp(in.at, "qid:", 4) == 0) {
        status = take_qid(&in, err);
    }
    while (status == TN_OK && has_more(&in)) {
        status = fields ? take_field(&in, err) : take_pair(&in, err);
    }
    if (status == TN_OK && schema->data->row_norm) {
        normalise(rows);
    }
    return tn_record_end(in.line, place, status, rows, err);
}

static tn_status libsvm_parse(tn_bytes record, const tn_schema *schema,
                              const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    return parse_line(record, schema, place, false, rows, err);
}

static tn_status libffm_parse(tn_bytes record, const tn_schema *schema,
                              const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    return parse_line(record, schema, place, true, rows, err);
}

/* Parses a row. libFM itself reads rows of libsvm, the dialect of dmlc has fields; slots decide. */
static tn_status libfm_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    return parse_line(record, schema, place, schema->columns->n_fields > 0, rows, err);
}

static const char *const libsvm_data[] = {"index_base", "unknown_field", "group", NULL};
static const char *const libsvm_slot[] = {"range", NULL};

extern const tn_format tn_format_libsvm;
const tn_format tn_format_libsvm = {
    .name = "libsvm",
    .help = "label[:weight] [qid:id] index[:value] ..; one slot, or one per range of indices",
    .pairs = true,
    .data_options = libsvm_data,
    .slot_options = libsvm_slot,
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = libsvm_parse,
};

static const char *const libffm_data[] = {"index_base", "unknown_field", "row_norm", "group", NULL};
static const char *const libffm_slot[] = {"field", NULL};

extern const tn_format tn_format_libffm;
const tn_format tn_format_libffm = {
    .name = "libffm",
    .help = "label[:weight] field:index[:value] ..; a slot per field",
    .pairs = true,
    .data_options = libffm_data,
    .slot_options = libffm_slot,
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = libffm_parse,
};

static const char *const libfm_slot[] = {"field", "range", NULL};

extern const tn_format tn_format_libfm;
const tn_format tn_format_libfm = {
    .name = "libfm",
    .help = "libsvm's rows, or label[:weight] field:index[:value] .. where slots have fields",
    .pairs = true,
    .data_options = libsvm_data,
    .slot_options = libfm_slot,
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = libfm_parse,
};
