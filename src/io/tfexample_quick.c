/* tfexample_quick.c - the short road for messages of features that hold one int64 each.
 *
 *     Example    0a size [entry ..]
 *     entry      0a n 0a k name 12 v 1a l 0a p varint       v = l + 2, l = p + 2, n = k + v + 4
 *
 * Names stand in the same order in record after record, so the name that stood there last time is
 * tried first. Varints are laid side by side (io/lanes.h) and become keys at once. A message of any
 * other kind is left to the long road, which also finds what is wrong.
 */
#include "io/columns.h"
#include "io/tfexample.h"
#include "io/tfslot.h"

#include <string.h>

enum {
    NEAR_END = 96, /* bytes of a message that may not be looked at in words where they stand */
    SLACK = 32,
    NAME_MAX_SIZE = 64,
    ONE_BYTE = 128, /* lengths below are one byte */
};

/* The tags around the one value of a feature: 12 v 1a l 0a p, and 12 v 12 l 0a p. */
#define AROUND UINT64_C(0x000000ff00ff00ff)
#define INT64 UINT64_C(0x0000000a001a0012)
#define FLOAT UINT64_C(0x0000000a00120012)

/* One message on its way. */
typedef struct walk {
    const unsigned char *at, *end;
    const tn_columns *columns;
    const tn_schema *schema;
    tn_rows *rows;
    const tn_lanes *lanes;
    uint32_t *guess;
    uint32_t n_guesses;
    uint32_t n; /* features so far */
    bool labelled;
    unsigned char copy[NEAR_END + SLACK]; /* of the end of the message */
} walk;

/* To the entries; false: not the only field of the message. */
static bool enter(walk *w, tn_bytes record)
{
    if (record.size < 2 || record.data[0] != TN_PROTO_TAG(1, TN_WIRE_BYTES)) {
        return false;
    }
    tn_bytes rest = {record.data + 1, record.size - 1, false};
    uint64_t size = tn_proto_varint(&rest);
    w->at = (const unsigned char *)rest.data;
    w->end = w->at + rest.size;
    return !rest.failed && size == rest.size;
}

static inline bool is_name(const tn_columns *columns, uint32_t name, const unsigned char *text,
                           size_t size)
{
    uint64_t mask = size < 8 ? ~(~UINT64_C(0) << (8 * size)) : ~UINT64_C(0);
    return columns->name_size[name] == size && (tn_load_u64(text) & mask) == columns->word[name] &&
           (size <= 8 || memcmp(columns->name[name] + 8, text + 8, size - 8) == 0);
}

static inline uint32_t find_name(walk *w, const unsigned char *text, size_t size)
{
    uint32_t place = w->n++;
    if (place < w->n_guesses && is_name(w->columns, w->guess[place], text, size)) {
        return w->guess[place];
    }
    uint32_t name = tn_columns_find(w->columns, (const char *)text, size);
    if (place < w->n_guesses && name != TN_NOWHERE) {
        w->guess[place] = name;
    }
    return name;
}

/* The words of a varint of `size` bytes; false: it is not one of that many. */
static inline bool read_varint(const unsigned char *p, size_t size, uint64_t *low, uint64_t *high)
{
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t word = tn_load_u64(p);
    *high = 0;
    if (size <= 8) {
        uint64_t mask = ~UINT64_C(0) >> (8 * (8 - size));
        *low = word & mask;
        return (word & tops & mask) == (tops & (mask >> 8));
    }
    *low = word;
    *high = (uint64_t)(p[8] & 0x7f) << 56 | (size > 9 ? (uint64_t)p[9] << 63 : 0);
    bool tenth = size == 10 && p[8] >= 0x80 && p[9] <= 1;
    return (word & tops) == tops && (tenth || (size == 9 && p[8] < 0x80));
}

static bool take_label(walk *w, double y)
{
    bool once = !w->labelled;
    w->labelled = true;
    return once && tn_rows_label_number(w->rows, y) == TN_FAULT_NONE;
}

/* A feature of a name that something reads. */
static inline bool take_value(walk *w, uint32_t name, uint64_t low, uint64_t high)
{
    uint32_t i = w->columns->only[name];
    if (i == TN_NOWHERE) {
        return name == w->columns->label && low < ONE_BYTE && high == 0 &&
               take_label(w, (double)low);
    }
    const tn_lanes *l = w->lanes;
    bool first = l->size[i] == 0;
    l->low[i] = low;
    l->high[i] = high;
    l->size[i] = 1;
    return first;
}

/* A feature of a name that nothing reads: any well-formed value. */
static bool is_framed(const unsigned char *value, size_t rest)
{
    return rest >= 2 && value[0] == TN_PROTO_TAG(2, TN_WIRE_BYTES) && value[1] < ONE_BYTE &&
           value[1] == rest - 2;
}

static inline bool take_entry(walk *w)
{
    const unsigned char *p = w->at;
    size_t left = (size_t)(w->end - p);
    if (left < 8 || p[0] != TN_PROTO_TAG(1, TN_WIRE_BYTES) || p[1] >= ONE_BYTE ||
        p[2] != TN_PROTO_TAG(1, TN_WIRE_BYTES) || p[3] > NAME_MAX_SIZE || p[3] + 4U > p[1] ||
        p[1] + 2U > left) {
        return false;
    }
    const unsigned char *value = p + 4 + p[3];
    uint64_t head = tn_load_u64(value);
    uint64_t v = (head >> 8) & 0xff;
    uint64_t l = (head >> 24) & 0xff;
    uint64_t size = (head >> 40) & 0xff;
    uint32_t name = find_name(w, p + 4, p[3]);
    w->at = p + 2 + p[1];
    if (name == TN_NOWHERE) {
        return is_framed(value, p[1] - 2U - p[3]);
    }
    bool framed = p[1] == p[3] + 4 + v && v == l + 2 && l == size + 2;
    if (name == w->columns->label && (head & AROUND) == FLOAT && size == 4 && framed) {
        return take_label(w, (double)tn_load_f32(value + 6));
    }
    uint64_t low;
    uint64_t high;
    bool shape = (head & AROUND) == INT64 && framed && size - 1 < 10;
    return shape && read_varint(value + 6, size, &low, &high) && take_value(w, name, low, high);
}

/* The last bytes are looked at in a copy, which has room behind them. */
static bool take_entries(walk *w)
{
    while (w->end - w->at >= NEAR_END) {
        if (!take_entry(w)) {
            return false;
        }
    }
    size_t left = (size_t)(w->end - w->at);
    if (left > 0) {
        memcpy(w->copy, w->at, left);
    }
    w->at = w->copy;
    w->end = w->copy + left;
    while (w->at < w->end) {
        if (!take_entry(w)) {
            return false;
        }
    }
    return true;
}

static bool take_row(walk *w)
{
    uint32_t n = w->schema->n_specs;
    const tn_slot_spec *spec = NULL;
    memset(w->lanes->size, 0, n * sizeof *w->lanes->size);
    if (!take_entries(w) || (w->columns->label != TN_NOWHERE && !w->labelled)) {
        return false;
    }
    tn_lanes_varints(w->lanes, n);
    tn_lanes_keys_each(w->lanes, n, w->columns->salt);
    tn_rows_put_lanes(w->rows);
    return tn_rows_end(w->rows, &spec) == TN_FAULT_NONE;
}

bool tn_tfexample_quick(tn_bytes record, const tn_schema *schema, tn_rows *rows)
{
    const tn_columns *columns = schema->columns;
    struct rows_private *p = rows->private;
    walk w = {.columns = columns, .schema = schema, .rows = rows, .lanes = &p->lanes};
    if (!schema->quick_features || !columns->alone || (p->keep & TN_ROWS_SIGNS) != 0 ||
        !enter(&w, record)) {
        return false;
    }
    w.n_guesses = columns->n + TN_TF_GUESSES_MORE;
    w.guess = tn_rows_guesses(rows, w.n_guesses);
    if (w.guess == NULL || !tn_lanes_reserve(&p->lanes, schema->n_specs) ||
        tn_rows_begin(rows, record.size, NULL) != TN_OK) {
        return false;
    }
    bool good = take_row(&w);
    if (!good) {
        tn_rows_rollback(rows);
    }
    return good;
}
