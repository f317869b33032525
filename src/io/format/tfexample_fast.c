/* tfexample_fast.c - the fast path for messages of features that hold one int64 each.
 *
 *     Example    0a size [entry ..]
 *     entry      0a n 0a k name 12 v 1a l 0a p varint       v = l + 2, l = p + 2, n = k + v + 4
 *
 * Names have the same order in record after record, so an entry is first compared with the last one
 * in its place: all its bytes but the value follow from the name and from p.
 * Varints are laid side by side (io/text/token_vectors.h) and become keys at once. A message of any
 * other kind is left to the slow path, which also finds what is wrong.
 */
#include "base/codec/proto.h"
#include "io/format/tfexample.h"
#include "io/rows/rows_parsing.h"

#include <string.h>

enum {
    NEAR_END = 96,   /* last bytes of a message, which are read in words in a copy alone */
    SHAPED_MAX = 32, /* the same for an entry of a known shape */
    SLACK = 32,
    AROUND_BYTES = 6, /* 12 v 1a l 0a p */
    SHAPED_NAME = 12, /* bytes of names in shapes, at most */
    NAME_MAX_SIZE = 64,
    ONE_BYTE = 128, /* lengths below are one byte */
};

/* The tags around the one value of a feature: 12 v 1a l 0a p, and 12 v 12 l 0a p. */
#define AROUND UINT64_C(0x000000ff00ff00ff)
#define INT64 UINT64_C(0x0000000a001a0012)
#define FLOAT UINT64_C(0x0000000a00120012)

/* An int64 of p bytes: 12 p+4 1a p+2 0a p in the top of a word. */
#define SHAPED UINT64_C(0x000a021a04120000)
#define EACH_P UINT64_C(0x0100010001000000)

/* One message on its way. */
typedef struct walk {
    const unsigned char *at, *end;
    size_t size; /* bytes of all entries */
    const tn_columns *columns;
    const tn_schema *schema;
    tn_rows *rows;
    const tn_token_vectors *lanes;
    tn_tf_shape *shape;
    uint32_t n_shapes;
    uint32_t n; /* features so far */
    bool labelled;
    bool copied;                          /* `at` is in `copy` */
    unsigned char copy[NEAR_END + SLACK]; /* the end of the message */
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
    w->size = rest.size;
    return !rest.failed && size == rest.size;
}

static inline bool is_name(const tn_columns *columns, uint32_t name, const unsigned char *text,
                           size_t size)
{
    uint64_t mask = size < 8 ? ~(~UINT64_C(0) << (8 * size)) : ~UINT64_C(0);
    return columns->name_size[name] == size && (tn_load_u64(text) & mask) == columns->word[name] &&
           (size <= 8 || memcmp(columns->name[name] + 8, text + 8, size - 8) == 0);
}

/* The entries of a slot that begin like this one, whatever p is. */
static void keep_shape(tn_tf_shape *shape, uint32_t spec, const unsigned char *text, uint32_t size)
{
    enum { NAME_AT = 4, WORD = 8 };
    unsigned char bytes[2 * WORD] = {TN_PROTO_TAG(1, TN_WIRE_BYTES), (unsigned char)(size + 8),
                                     TN_PROTO_TAG(1, TN_WIRE_BYTES), (unsigned char)size};
    unsigned char mask[2 * WORD] = {0};
    memcpy(bytes + NAME_AT, text, size);
    memset(mask, 0xff, NAME_AT + size);
    *shape = (tn_tf_shape){.name = shape->name,
                           .head = tn_load_u64(bytes),
                           .head_mask = tn_load_u64(mask),
                           .more = tn_load_u64(bytes + WORD),
                           .more_mask = tn_load_u64(mask + WORD),
                           .value_at = NAME_AT + size + AROUND_BYTES,
                           .spec = spec};
}

static uint32_t find_name(walk *w, const unsigned char *text, size_t size)
{
    uint32_t place = w->n++;
    if (place >= w->n_shapes) {
        return tn_columns_find(w->columns, (const char *)text, size);
    }
    tn_tf_shape *shape = &w->shape[place];
    uint32_t name = shape->name;
    if (!is_name(w->columns, name, text, size)) {
        name = tn_columns_find(w->columns, (const char *)text, size);
    }
    if (name == TN_NOWHERE) {
        return name;
    }
    uint32_t spec = w->columns->only[name];
    shape->name = name;
    if (size <= SHAPED_NAME && spec != TN_NOWHERE &&
        (shape->spec != spec || shape->value_at == 0)) {
        keep_shape(shape, spec, text, (uint32_t)size);
    }
    return name;
}

/* The words of a varint of `size` bytes, at least 1; false: it is not one of that many. */
static inline bool read_varint(const unsigned char *p, size_t size, uint64_t *low, uint64_t *high)
{
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t word = tn_load_u64(p);
    *high = 0;
    if (size <= 8) {
        uint64_t mask = ~UINT64_C(0) >> (64 - 8 * size);
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
    const tn_token_vectors *l = w->lanes;
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

/* Takes the entries from here on that have the shapes of last time. */
static void take_shaped(walk *w)
{
    const unsigned char *at = w->at;
    const unsigned char *end = w->end;
    const size_t least = w->copied ? 1 : SHAPED_MAX;
    const tn_tf_shape *s = w->shape + w->n;
    const tn_tf_shape *last = w->shape + w->n_shapes;
    uint64_t *restrict lows = w->lanes->low;
    uint64_t *restrict highs = w->lanes->high;
    uint64_t *restrict there = w->lanes->size;
    for (; s < last && (size_t)(end - at) >= least; s++) {
        const unsigned char *value = at + s->value_at;
        uint64_t around = tn_load_u64(value - sizeof around);
        uint64_t size = around >> 56;
        bool same = (tn_load_u64(at) & s->head_mask) == s->head + (size << 8) &&
                    (tn_load_u64(at + 8) & s->more_mask) == s->more &&
                    (around & ~UINT64_C(0xffff)) == SHAPED + size * EACH_P && size - 1 < 10;
        uint64_t low;
        uint64_t high;
        if (!same || end - value < (ptrdiff_t)size || !read_varint(value, size, &low, &high) ||
            there[s->spec] != 0) {
            break;
        }
        lows[s->spec] = low;
        highs[s->spec] = high;
        there[s->spec] = 1;
        at = value + size;
    }
    w->n = (uint32_t)(s - w->shape);
    w->at = at;
}

/* Copies the last bytes to where room follows them. */
static void copy_end(walk *w)
{
    size_t left = (size_t)(w->end - w->at);
    if (w->size >= NEAR_END) { /* as most are: no call for so few bytes */
        memcpy(w->copy, w->end - NEAR_END, NEAR_END);
        w->at = w->copy + NEAR_END - left;
        w->end = w->copy + NEAR_END;
    } else {
        memcpy(w->copy, w->at, left);
        w->at = w->copy;
        w->end = w->copy + left;
    }
    w->copied = true;
}

static bool take_entries(walk *w)
{
    for (;;) {
        if (w->n < w->n_shapes) {
            take_shaped(w);
        }
        size_t left = (size_t)(w->end - w->at);
        if (left == 0) {
            return true;
        }
        if (left < NEAR_END && !w->copied) {
            copy_end(w);
        } else if (!take_entry(w)) {
            return false;
        }
    }
}

static bool take_features(walk *w)
{
    memset(w->lanes->size, 0, w->schema->n_specs * sizeof *w->lanes->size);
    if (!take_entries(w) || (w->columns->label != TN_NOWHERE && !w->labelled)) {
        return false;
    }
    tn_token_vectors_varints(w->lanes, w->schema->n_specs);
    return true;
}

static bool put_grid(const walk *w)
{
    uint64_t bad; /* none is */
    return tn_rows_end_grid(w->rows, tn_token_vectors_there(w->lanes, w->schema->n_specs, &bad));
}

static bool put_row(const walk *w)
{
    const tn_slot_spec *spec = NULL;
    tn_token_vectors_keys_each(w->lanes, w->schema->n_specs, w->columns->salt);
    tn_rows_put_lanes(w->rows);
    return tn_rows_end(w->rows, &spec) == TN_FAULT_NONE;
}

bool tn_tfexample_parse_fast(tn_bytes record, const tn_schema *schema, tn_rows *rows)
{
    const tn_columns *columns = schema->columns;
    struct rows_private *p = rows->private;
    walk w = {.columns = columns, .schema = schema, .rows = rows, .lanes = &p->lanes};
    if (!schema->quick_features || !columns->alone || (p->keep & TN_ROWS_SIGNS) != 0 ||
        !enter(&w, record)) {
        return false;
    }
    w.n_shapes = columns->n + TN_TF_SHAPES_MORE;
    if (!tn_rows_grow(&p->shape, 0, w.n_shapes, sizeof *p->shape, &p->shapes_max) ||
        !tn_token_vectors_reserve(&p->lanes, schema->n_specs)) {
        return false;
    }
    w.shape = p->shape;
    bool grid = tn_rows_begin_grid(rows);
    if (!grid && tn_rows_begin(rows, record.size, NULL) != TN_OK) {
        return false;
    }
    bool good = take_features(&w) && (grid ? put_grid(&w) : put_row(&w));
    if (!good) {
        tn_rows_rollback(rows);
    }
    return good;
}
