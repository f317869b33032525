/* svm_pairs_fast.c - the short road for lines of libsvm and libffm.
 *
 *     1 0:12:1 1:5:1 ...        marks of libffm: ' ' ':' ':' ' ' ':' ':' ' ' .., of libsvm ' ' ':'
 *
 * All blanks and colons are found first; as long as they alternate as they should, the indices are
 * laid side by side (io/text/token_vectors.h) and become keys at once. The first pair that is
 * unusual ends the road, as does the last of the line, which no blank ends.
 */
#include "base/core/number.h"
#include "io/format/svm_pairs.h"
#include "io/schema/columns.h"

/* A line whose marks have been found. */
typedef struct marked {
    const char *line;
    const uint16_t *mark;
    uint32_t n_marks;
    uint32_t step;  /* marks of a pair, the blank in front of it included */
    uint32_t first; /* the mark in front of the first pair */
    const tn_schema *schema;
    const tn_lanes *lanes;
    tn_lanes_text text;
} marked;

/* The marks of pair k, from its blank to that of the next. */
static inline const uint16_t *marks_of(const marked *m, uint32_t k)
{
    return m->mark + m->first + (size_t)k * m->step;
}

static bool take_label(const tn_pairs *in, size_t size)
{
    float *out = &in->rows->row[in->rows->n].label;
    return (size == 1 && tn_label_of_bit(in->schema->label, in->line.data[0], out)) ||
           tn_rows_label(in->rows, in->line.data, size) == TN_FAULT_NONE;
}

/* Behind the label: a qid. False: there is one, and it is not plain. */
static bool take_qid(marked *m, tn_pairs *in)
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

/* The spec of a field; NULL: left to the long road. */
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
    const tn_lanes_text *text = &m->text;
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
        low[k] = tn_lanes_digits_at(tn_lanes_end(text, end), digits);
        longest = digits > longest ? digits : longest;
    }
    *size_max = longest;
    return k;
}

/* From indices to signs; how many are good. */
static uint32_t make_signs(const marked *m, uint32_t n, uint64_t size_max)
{
    const tn_lanes *l = m->lanes;
    uint64_t base = m->schema->index_base;
    if (size_max <= TN_LANES_WORD) {
        tn_lanes_short(l, 0, n);
    } else {
        for (uint32_t k = 0; k < n; k++) {
            const uint16_t *from = marks_of(m, k) + m->step - 2;
            tn_lanes_set_high(l, k, tn_lanes_end(&m->text, from[1]));
        }
        tn_lanes_long(l, 0, n);
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
    const tn_lanes *l = m->lanes;
    const tn_slot_spec *only = &schema->spec[0];
    if (schema->n_specs == 1 && takes_all(only)) {
        n = is_plain(only) ? n : 0;
        memset(l->tag, 0, n * sizeof *l->tag); /* the only slot is the first */
        tn_lanes_keys(l, n, only->salt);
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
    tn_lanes_keys_each(l, n, l->salt);
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

static bool begin(tn_pairs *in, size_t label_size)
{
    if (tn_rows_begin(in->rows, in->line.size, NULL) != TN_OK) {
        return false;
    }
    if (!take_label(in, label_size)) {
        tn_rows_rollback(in->rows);
        return false;
    }
    return true;
}

/* Finds the marks; false: no line for the short road. */
static bool look(marked *m, const tn_pairs *in, tn_bytes line)
{
    struct rows_private *p = in->rows->private;
    bool odd = true;
    if ((p->keep & TN_ROWS_SIGNS) != 0 || line.size > TN_MARKS_LINE_MAX ||
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
           tn_lanes_reserve(&p->lanes, m->n_marks);
}

bool tn_pairs_quick(tn_pairs *in, bool fields)
{
    tn_bytes line = in->line;
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    marked m = {.line = line.data, .schema = in->schema, .step = fields ? 3 : 2};
    if (!look(&m, in, line)) {
        return false;
    }
    tn_bytes whole = in->line;
    in->line = line;
    if (!begin(in, m.mark[0])) {
        in->line = whole;
        return false;
    }
    uint64_t size_max = 0;
    uint32_t n = 0;
    if (take_qid(&m, in)) {
        tn_lanes_begin(&m.text, line.data, line.size);
        n = (m.n_marks - 1 - m.first) / m.step;
        n = fields ? lay_pairs(&m, n, true, &size_max) : lay_pairs(&m, n, false, &size_max);
        n = make_signs(&m, n, size_max);
        if (fields) {
            tn_lanes_keys_each(m.lanes, n, m.lanes->salt);
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
