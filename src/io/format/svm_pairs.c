/* svm_pairs.c - what libsvm and libffm lines share.
 *
 *     1 0:12:1 1:5:1 ...        marks of libffm: ' ' ':' ':' ' ' ':' ':' ' ' .., of libsvm ' ' ':'
 *
 * The fast path finds all blanks and colons first; as long as they alternate as they should, the
 * indices are laid side by side (io/text/token_vectors.h) and become keys at once. The first pair
 * that is unusual ends the fast path, as does the last of the line, which no blank ends.
 */
#include "io/format/svm_pairs.h"

#include "base/core/number.h"
#include "io/schema/columns.h"

#include <math.h>
#include <string.h>

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

static bool fast_label(const tn_pairs *in, size_t size)
{
    float *out = &in->rows->row[in->rows->n].label;
    return (size == 1 && tn_label_of_bit(in->schema->label, in->line.data[0], out)) ||
           tn_rows_label(in->rows, in->line.data, size) == TN_FAULT_NONE;
}

/* Behind the label: a qid. False: there is one, and it is not plain. */
static bool fast_qid(marked *m, tn_pairs *in)
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

/* Whether pair `at` stands as it should, values left aside. */
static inline bool is_pair(const char *line, const uint16_t *at, bool fields)
{
    bool good = line[at[1]] == ':' && line[at[2]] == (fields ? ':' : ' ');
    return good && (!fields || line[at[3]] == ' ');
}

/* Lays the indices side by side; how many pairs stand as they should. */
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
            tn_read_f32(from, size, &to[k].value) != TN_NUM_OK) {
            break;
        }
    }
    rows->n_entries += k;
    return k;
}

static bool fast_begin(tn_pairs *in, size_t label_size)
{
    if (tn_rows_begin(in->rows, in->line.size, NULL) != TN_OK) {
        return false;
    }
    if (!fast_label(in, label_size)) {
        tn_rows_rollback(in->rows);
        return false;
    }
    return true;
}

/* Finds the marks; false: no line for the fast path. */
static bool look(marked *m, const tn_pairs *in, tn_bytes line)
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
    m->n_marks = p->marks->pairs(line.data, line.size, p->place + 1, &odd);
    m->lanes = &p->lanes;
    return !odd && m->n_marks > 0 && m->mark[0] > 0 && line.data[m->mark[0]] == ' ' &&
           tn_token_vectors_reserve(&p->lanes, m->n_marks);
}

bool tn_pairs_begin_fast(tn_pairs *in, bool fields)
{
    tn_bytes line = in->line;
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    marked m = {.line = line.data, .schema = in->schema, .step = fields ? 3 : 2};
    if (!look(&m, in, line)) {
        return false;
    }
    tn_bytes whole = in->line;
    in->line = line;
    if (!fast_begin(in, m.mark[0])) {
        in->line = whole;
        return false;
    }
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

static tn_bytes rest(const char *from, const char *to)
{
    return (tn_bytes){from, (size_t)(to - from), false};
}

static tn_status fault_at(const tn_pairs *in, const char *from, const char *to, tn_fault fault,
                          tn_error *err)
{
    return tn_record_location_fault(in->place, in->line, rest(from, to), fault, err);
}

/* Where the token that begins at `from` ends: at a blank, or at `stop` where it is not 0. */
static const char *token_end(const tn_pairs *in, const char *from, char stop)
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

static tn_status take_weight(tn_pairs *in, tn_error *err)
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

static tn_status take_label(tn_pairs *in, tn_error *err)
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

tn_status tn_pairs_begin(tn_pairs *in, tn_error *err)
{
    TN_TRY(tn_line_clean(&in->line, in->place, err));
    in->at = in->line.data;
    in->end = in->line.data + in->line.size;
    if (!tn_pairs_more(in)) {
        return TN_END;
    }
    TN_TRY(tn_rows_begin(in->rows, in->line.size, err));
    if (in->schema->label->none) {
        return TN_OK;
    }
    tn_status status = take_label(in, err);
    if (status != TN_OK) {
        tn_rows_rollback(in->rows);
    }
    return status;
}

tn_status tn_pairs_no_digits(const tn_pairs *in, const char *from, const char *what, tn_error *err)
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

/* Behind an index: a value, or nothing (*size 0). Stands behind it then. */
static tn_status take_value(tn_pairs *in, const char **from, size_t *size, tn_error *err)
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
            return tn_record_location_fail(in->place, in->line, p, err,
                                           "expected a blank after the value, found ':'");
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

/* An x_j; false in *keep: the pair is left out. */
static tn_fault read_x(const tn_slot_spec *spec, tn_bytes text, float *x, bool *keep)
{
    if (text.size == 1 && (unsigned)(text.data[0] - '0') <= 9) {
        *x = (float)(text.data[0] - '0');
        return TN_FAULT_NONE;
    }
    switch (tn_read_f32(text.data, text.size, x)) {
    case TN_NUM_OK:
        return TN_FAULT_NONE;
    case TN_NUM_RANGE:
        return TN_FAULT_FLOAT_RANGE;
    case TN_NUM_NOT_FINITE:
        *keep = false;
        return spec->non_finite_absent ? TN_FAULT_NONE : TN_FAULT_NOT_FINITE;
    case TN_NUM_NONE:
    default:
        return TN_FAULT_FLOAT;
    }
}

tn_status tn_pairs_add_any(tn_pairs *in, const tn_slot_spec *spec, const char *index, uint64_t sign,
                           tn_error *err)
{
    const char *index_end = in->at;
    const char *from = "1";
    size_t size = 0;
    TN_TRY(take_value(in, &from, &size, err));
    tn_bytes value = {from, size, false};
    tn_fault fault = TN_FAULT_NONE;
    if (tn_spec_is_number(spec)) {
        fault = tn_rows_token(in->rows, spec, from, size > 0 ? size : 1, 1);
        if (fault != TN_FAULT_NONE && size == 0) {
            return fault_at(in, index, index_end, fault, err);
        }
        return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, from, from + size, fault, err);
    }
    float x = 1;
    bool keep = true;
    if (size > 0) {
        fault = read_x(spec, value, &x, &keep);
        if (fault != TN_FAULT_NONE) {
            return fault_at(in, from, from + size, fault, err);
        }
    }
    if (!keep) {
        return TN_OK;
    }
    bool rebased = spec->type == TN_SIGN_INT && in->schema->index_base > 0 && sign <= INT64_MAX;
    fault = spec->type == TN_SIGN_ID || rebased
                ? tn_rows_integer(in->rows, spec, (int64_t)sign, x)
                : tn_rows_token(in->rows, spec, index, (size_t)(index_end - index), x);
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, index, index_end, fault, err);
}

tn_status tn_pairs_ignore(tn_pairs *in, tn_error *err)
{
    static const tn_slot_spec any = {.non_finite_absent = true};
    const char *from = NULL;
    size_t size = 0;
    float x;
    bool keep;
    TN_TRY(take_value(in, &from, &size, err));
    tn_fault fault =
        size > 0 ? read_x(&any, (tn_bytes){from, size, false}, &x, &keep) : TN_FAULT_NONE;
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, from, from + size, fault, err);
}

tn_status tn_pairs_end(tn_pairs *in, tn_error *err)
{
    const tn_slot_spec *spec = NULL;
    tn_fault fault = tn_rows_end(in->rows, &spec);
    if (fault == TN_FAULT_NONE) {
        return TN_OK;
    }
    tn_rows_rollback(in->rows);
    return tn_record_location_rule(in->place, in->line, spec, fault, err);
}
