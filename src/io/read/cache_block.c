/* cache_block.c - a parsed block of rows as the bytes of a block of a .tnb file, and back.
 *
 * Numbers are little-endian. Columns begin at multiples of 8, in the order of `layout`; one that
 * has nothing to say is left out (flags).
 *
 * A block that passes its checksum, which the reader of its bytes has checked, was written by TNet;
 * still, no count in it is believed before it has been checked, so that bytes made by somebody else
 * do no harm either.
 */
#include "base/core/number.h"
#include "base/math/crc32c.h"
#include "io/read/cache.h"
#include "io/rows/rows_parsing.h"

#include <stdio.h>

enum {
    HAS_WEIGHTS = 1, /* some row does not weigh 1 */
    HAS_GROUPS = 2,  /* some row has a group */
    HAS_VALUES = 4,  /* some x_j is not 1 */
    HAS_IDS = 8,     /* some row has an id */
    FLAGS = 15,
};

/* The header of a block, byte for byte. */
typedef struct counts {
    uint32_t crc, size; /* of all behind the crc; of all */
    uint32_t rows, entries;
    uint32_t flags;
    uint32_t width; /* entries of each row, whose slots are the same in every row; 0: they differ */
    uint64_t records, blank, bytes, taken, passed, duplicate_key;
    uint64_t first_at; /* of the rows' places in the source */
    uint32_t bad, messages, message_bytes, id_bytes;
    uint32_t zero[2];
} counts;

_Static_assert(sizeof(counts) == TN_CACHE_BLOCK, "without gaps");

/* Places of the columns. */
typedef struct layout {
    uint64_t key;     /* u64[entries] */
    uint64_t slot;    /* u16[entries], or u16[width] */
    uint64_t value;   /* f32[entries], or nothing */
    uint64_t end;     /* u32[rows]: behind the last entry of each; not with width */
    uint64_t label;   /* f32[rows] */
    uint64_t weight;  /* f32[rows], or nothing */
    uint64_t numeric; /* f32[rows * n_numeric] */
    uint64_t group;   /* u64[rows], or nothing */
    uint64_t at;      /* u32[rows], from first_at */
    uint64_t id_end;  /* u32[rows]: behind the id of each, or nothing */
    uint64_t id;      /* bytes */
    uint64_t message; /* bytes, each ended by NUL */
    uint64_t size;    /* of all */
} layout;

#define ONE UINT32_C(0x3f800000) /* 1.0f */

/* One block while it is unpacked. */
typedef struct unpacking {
    const char *from;
    counts n;
    layout lay;
    tn_rows *rows;
    bool ids, signs; /* are wanted */
    bool bare;       /* keys stay as they lie */
} unpacking;

static inline uint64_t take(uint64_t *at, uint64_t n, uint64_t size)
{
    uint64_t here = *at;
    *at += (n * size + 7) / 8 * 8;
    return here;
}

/* Counts are below 2^32 and n_numeric is small: nothing overflows. */
static inline layout lay_out(const counts *n, uint32_t n_numeric)
{
    layout to;
    uint64_t at = TN_CACHE_BLOCK;
    uint64_t rows = n->rows;
    uint64_t weights = (n->flags & HAS_WEIGHTS) != 0 ? rows : 0;
    uint64_t groups = (n->flags & HAS_GROUPS) != 0 ? rows : 0;
    uint64_t values = (n->flags & HAS_VALUES) != 0 ? n->entries : 0;
    uint64_t ids = (n->flags & HAS_IDS) != 0 ? rows : 0;
    to.key = take(&at, n->entries, sizeof(uint64_t));
    to.slot = take(&at, n->width > 0 ? n->width : n->entries, sizeof(uint16_t));
    to.value = take(&at, values, sizeof(float));
    to.end = take(&at, n->width > 0 ? 0 : rows, sizeof(uint32_t));
    to.label = take(&at, rows, sizeof(float));
    to.weight = take(&at, weights, sizeof(float));
    to.numeric = take(&at, rows * n_numeric, sizeof(float));
    to.group = take(&at, groups, sizeof(uint64_t));
    to.at = take(&at, rows, sizeof(uint32_t));
    to.id_end = take(&at, ids, sizeof(uint32_t));
    to.id = take(&at, n->id_bytes, 1);
    to.message = take(&at, n->message_bytes, 1);
    to.size = at;
    return to;
}

/* Entries of each row when all rows have the same slots in the same order; 0: they have not. */
static uint32_t width_of(const tn_rows *rows)
{
    uint32_t width = rows->n > 0 ? tn_rows_end_of(rows, 0) : 0;
    if (width == 0 || (uint64_t)width * rows->n != rows->n_entries) {
        return 0;
    }
    for (uint32_t r = 1; r < rows->n; r++) {
        const tn_entry *entry = &rows->entry[rows->row[r].first];
        if (rows->row[r].first != r * width) {
            return 0;
        }
        for (uint32_t i = 0; i < width; i++) {
            if (entry[i].slot != rows->entry[i].slot) {
                return 0;
            }
        }
    }
    return width;
}

static uint32_t flags_of(const tn_rows *rows, uint64_t *id_bytes)
{
    uint32_t flags = 0;
    *id_bytes = 0;
    for (uint32_t r = 0; r < rows->n; r++) {
        const tn_parsed_row *row = &rows->row[r];
        flags |= row->weight != 1 ? HAS_WEIGHTS : 0U;
        flags |= row->group != TN_NO_GROUP ? HAS_GROUPS : 0U;
        flags |= row->id.size > 0 ? HAS_IDS : 0U;
        *id_bytes += row->id.size;
    }
    uint32_t odd = 0;
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        odd |= tn_load_u32(&rows->entry[i].value) ^ ONE;
    }
    return flags | (odd != 0 ? HAS_VALUES : 0U);
}

static void pack_entries(char *to, const layout *lay, const counts *n, const tn_rows *rows)
{
    uint32_t slots = n->width > 0 ? n->width : n->entries;
    bool values = (n->flags & HAS_VALUES) != 0;
    for (uint32_t i = 0; i < n->entries; i++) {
        tn_store_u64(to + lay->key + sizeof(uint64_t) * i, rows->entry[i].key);
    }
    for (uint32_t i = 0; i < slots; i++) {
        tn_store_u16(to + lay->slot + sizeof(uint16_t) * i, (uint16_t)rows->entry[i].slot);
    }
    for (uint32_t i = 0; values && i < n->entries; i++) {
        tn_store_f32(to + lay->value + sizeof(float) * i, rows->entry[i].value);
    }
}

static void pack_ids(char *to, const layout *lay, const tn_rows *rows)
{
    uint32_t end = 0;
    for (uint32_t r = 0; r < rows->n; r++) {
        tn_token id = rows->row[r].id;
        if (id.size > 0) {
            memcpy(to + lay->id + end, rows->text + id.at, id.size);
        }
        end += id.size;
        tn_store_u32(to + lay->id_end + sizeof(uint32_t) * r, end);
    }
}

static void pack_rows(char *to, const layout *lay, const counts *n, const tn_rows *rows)
{
    for (uint32_t r = 0; r < n->rows; r++) {
        const tn_parsed_row *row = &rows->row[r];
        size_t four = sizeof(uint32_t) * r;
        if (n->width == 0) {
            tn_store_u32(to + lay->end + four, tn_rows_end_of(rows, r));
        }
        tn_store_f32(to + lay->label + four, row->label);
        if ((n->flags & HAS_WEIGHTS) != 0) {
            tn_store_f32(to + lay->weight + four, row->weight);
        }
        if ((n->flags & HAS_GROUPS) != 0) {
            tn_store_u64(to + lay->group + 2 * four, row->group);
        }
        TN_ASSERT(row->at - n->first_at <= UINT32_MAX);
        tn_store_u32(to + lay->at + four, (uint32_t)(row->at - n->first_at));
    }
    size_t numeric = (size_t)n->rows * rows->schema->n_numeric;
    if (numeric > 0) {
        memcpy(to + lay->numeric, rows->numeric, numeric * sizeof(float));
    }
    if ((n->flags & HAS_IDS) != 0) {
        pack_ids(to, lay, rows);
    }
}

void tn_cache_pack(const tn_parsed *parsed, tn_text *out)
{
    const tn_rows *rows = parsed->rows;
    uint64_t id_bytes = 0;
    uint32_t flags = flags_of(rows, &id_bytes);
    TN_ASSERT(id_bytes <= UINT32_MAX && parsed->messages.size <= UINT32_MAX);
    counts n = {
        .rows = rows->n,
        .entries = rows->n_entries,
        .flags = flags,
        .width = width_of(rows),
        .records = parsed->records,
        .blank = parsed->blank,
        .bytes = parsed->bytes,
        .taken = parsed->taken,
        .passed = parsed->passed,
        .duplicate_key = rows->duplicate_key,
        .first_at = rows->n > 0 ? rows->row[0].at : 0,
        .bad = parsed->n_bad,
        .messages = parsed->n_messages,
        .message_bytes = (uint32_t)parsed->messages.size,
        .id_bytes = (uint32_t)id_bytes,
    };
    layout lay = lay_out(&n, rows->schema->n_numeric);
    n.size = (uint32_t)lay.size;
    tn_text_clear(out);
    char *to = tn_text_grow(out, lay.size);
    if (to == NULL) { /* no memory, or beyond TN_TEXT_MAX */
        return;
    }
    memset(to, 0, lay.size);
    memcpy(to, &n, sizeof n);
    pack_entries(to, &lay, &n, rows);
    pack_rows(to, &lay, &n, rows);
    if (n.message_bytes > 0) {
        memcpy(to + lay.message, parsed->messages.data, n.message_bytes);
    }
    tn_store_u32(to, tn_crc32c(0, to + sizeof(uint32_t), lay.size - sizeof(uint32_t)));
}

static const char damaged[] = "damaged block";

static tn_status read_counts(tn_bytes block, counts *n, tn_error *err)
{
    *n = (counts){0};
    if (block.size >= sizeof *n) {
        memcpy(n, block.data, sizeof *n);
    }
    return n->size == block.size && n->size > 0
               ? TN_OK
               : tn_fail(err, TN_E_DATA, "%s (%u bytes by itself, %zu by the index)", damaged,
                         n->size, block.size);
}

static bool are_counts(const unpacking *u, uint64_t size)
{
    const counts *n = &u->n;
    return n->rows <= TN_ROWS_ITEMS_MAX && n->entries <= TN_ROWS_ITEMS_MAX && n->flags <= FLAGS &&
           (n->width == 0 || (uint64_t)n->width * n->rows == n->entries) && n->messages <= n->bad &&
           u->lay.size == size;
}

/* Every slot exists. */
static bool are_slots(const unpacking *u)
{
    uint32_t n = u->n.width > 0 ? u->n.width : u->n.entries;
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = tn_load_u16(u->from + u->lay.slot + sizeof(uint16_t) * i);
        most = slot > most ? slot : most;
    }
    return n == 0 || most < u->rows->schema->n_slots;
}

/* A column of ends ascends, and its last is `total`. */
static bool are_ends(const char *column, uint32_t n, uint32_t total)
{
    uint32_t before = 0;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t end = tn_load_u32(column + sizeof(uint32_t) * r);
        if (end < before) {
            return false;
        }
        before = end;
    }
    return before == total;
}

static bool are_messages(const unpacking *u)
{
    const char *at = u->from + u->lay.message;
    uint32_t n = 0;
    for (uint32_t i = 0; i < u->n.message_bytes; i++) {
        n += at[i] == '\0';
    }
    return n == u->n.messages && (u->n.message_bytes == 0 || at[u->n.message_bytes - 1] == '\0');
}

static tn_status check(const unpacking *u, uint64_t size, tn_error *err)
{
    const counts *n = &u->n;
    bool good = are_counts(u, size) && are_slots(u) && are_messages(u);
    if (good && n->width == 0) {
        good = are_ends(u->from + u->lay.end, n->rows, n->entries);
    }
    if (good) {
        good = (n->flags & HAS_IDS) != 0 ? are_ends(u->from + u->lay.id_end, n->rows, n->id_bytes)
                                         : n->id_bytes == 0;
    }
    return good ? TN_OK : tn_fail(err, TN_E_DATA, "%s (its counts contradict each other)", damaged);
}

static bool ascend(const char *slot, uint32_t from, uint32_t to)
{
    uint32_t before = 0;
    for (uint32_t i = from; i < to; i++) {
        uint32_t here = tn_load_u16(slot + sizeof(uint16_t) * i);
        if (here < before) {
            return false;
        }
        before = here;
    }
    return true;
}

/* The slots of every row ascend, and x_j are 1: see tn_bare. */
static bool are_bare(const unpacking *u)
{
    const char *slot = u->from + u->lay.slot;
    if ((u->n.flags & HAS_VALUES) != 0 || u->n.width > 0) {
        return (u->n.flags & HAS_VALUES) == 0 && ascend(slot, 0, u->n.width);
    }
    bool bare = true;
    for (uint32_t r = 0, from = 0; bare && r < u->n.rows; r++) {
        uint32_t to = tn_load_u32(u->from + u->lay.end + sizeof(uint32_t) * r);
        bare = ascend(slot, from, to);
        from = to;
    }
    return bare;
}

/* Rows differ in their slots, and have keys of most: a grid pays (see tn_bare). */
static bool is_dense(const unpacking *u)
{
    const counts *n = &u->n;
    return n->width == 0 && (n->flags & HAS_VALUES) == 0 && u->rows->schema->n_slots > 1 &&
           2 * (uint64_t)n->entries >= (uint64_t)n->rows * u->rows->schema->n_slots;
}

/* Keys as they lie, or as a grid; *good: there was memory. */
static bool put_keys(const unpacking *u, bool *good)
{
    const char *from = u->from;
    if (is_dense(u) && tn_rows_put_as_grid(u->rows, from + u->lay.key, from + u->lay.slot,
                                           from + u->lay.end, u->n.rows)) {
        return true;
    }
    if (!are_bare(u)) {
        return false;
    }
    *good =
        tn_rows_put_bare(u->rows, from + u->lay.key, u->n.entries, from + u->lay.slot, u->n.width);
    return true;
}

/* Room for all of the block in rows that hold nothing. */
static bool make_room(tn_rows *rows, const unpacking *u)
{
    struct rows_private *p = rows->private;
    const counts *n = &u->n;
    uint32_t n_numeric = rows->schema->n_numeric;
    uint32_t entries_max = p->entries_max;
    uint32_t numeric_max = p->numeric_max;
    bool good = true;
    if (u->signs) {
        good = tn_rows_grow(&rows->token, 0, n->entries, sizeof(tn_token), &entries_max) &&
               (n_numeric == 0 || tn_rows_grow(&rows->numeric_token, 0, n->rows,
                                               n_numeric * sizeof(tn_token), &numeric_max));
    }
    uint32_t entries = u->bare ? 0 : n->entries;
    return good && tn_rows_grow(&rows->entry, 0, entries, sizeof(tn_entry), &p->entries_max) &&
           tn_rows_grow(&rows->row, 0, n->rows, sizeof(tn_parsed_row), &p->rows_max) &&
           (n_numeric == 0 ||
            tn_rows_grow(&rows->numeric, 0, n->rows, n_numeric * sizeof(float), &p->numeric_max));
}

static void put_entries(const unpacking *u)
{
    const counts *n = &u->n;
    const char *key = u->from + u->lay.key;
    const char *slot = u->from + u->lay.slot;
    const char *value = (n->flags & HAS_VALUES) != 0 ? u->from + u->lay.value : NULL;
    uint32_t width = n->width > 0 ? n->width : n->entries;
    tn_entry *to = u->rows->entry;
    for (uint32_t first = 0; first < n->entries; first += width) {
        for (uint32_t i = 0; i < width; i++) {
            to[first + i] = (tn_entry){tn_load_u64(key + sizeof(uint64_t) * (first + i)),
                                       tn_load_u16(slot + sizeof(uint16_t) * i), 1.0F};
        }
    }
    for (uint32_t i = 0; value != NULL && i < n->entries; i++) {
        to[i].value = tn_load_f32(value + sizeof(float) * i);
    }
}

static void put_rows(const unpacking *u)
{
    const counts *n = &u->n;
    bool weights = (n->flags & HAS_WEIGHTS) != 0;
    bool groups = (n->flags & HAS_GROUPS) != 0;
    uint32_t first = 0;
    for (uint32_t r = 0; r < n->rows; r++) {
        size_t four = sizeof(uint32_t) * r;
        u->rows->row[r] = (tn_parsed_row){
            .label = tn_load_f32(u->from + u->lay.label + four),
            .weight = weights ? tn_load_f32(u->from + u->lay.weight + four) : 1,
            .first = first,
            .group = groups ? tn_load_u64(u->from + u->lay.group + 2 * four) : TN_NO_GROUP,
            .at = n->first_at + tn_load_u32(u->from + u->lay.at + four),
        };
        first = n->width > 0 ? first + n->width : tn_load_u32(u->from + u->lay.end + four);
    }
    size_t numeric = (size_t)n->rows * u->rows->schema->n_numeric;
    if (numeric > 0) {
        memcpy(u->rows->numeric, u->from + u->lay.numeric, numeric * sizeof(float));
    }
}

static bool put_ids(const unpacking *u)
{
    tn_token all;
    if (!u->ids || (u->n.flags & HAS_IDS) == 0) {
        return true;
    }
    if (!tn_rows_add_text(u->rows, u->from + u->lay.id, u->n.id_bytes, &all)) {
        return false;
    }
    uint32_t before = 0;
    for (uint32_t r = 0; r < u->n.rows; r++) {
        uint32_t end = tn_load_u32(u->from + u->lay.id_end + sizeof(uint32_t) * r);
        u->rows->row[r].id = (tn_token){all.at + before, end - before};
        before = end;
    }
    return true;
}

/* Writes a key's text as a cache knows it: its sign, or its factor where that is all it has. */
static size_t text_of(const tn_slot_spec *spec, const tn_entry *e, char text[TN_NUMBER_TEXT_MAX])
{
    uint64_t sign = tn_sign_of(e->key, spec->salt);
    if (spec->as == TN_AS_WEIGHTED) {
        return tn_write_f32(text, e->value);
    }
    bool hex = spec->type == TN_SIGN_HEX || spec->type == TN_SIGN_STR;
    bool below = spec->type == TN_SIGN_INT && !tn_spec_is_number(spec) && sign >> 63 != 0;
    sign = below ? 0 - sign : sign;
    int n = snprintf(text + below, (size_t)TN_NUMBER_TEXT_MAX - 1, hex ? "%llx" : "%llu",
                     (unsigned long long)sign);
    TN_ASSERT(n > 0 && n < TN_NUMBER_TEXT_MAX - 1);
    if (below) {
        text[0] = '-';
    }
    return (size_t)n + below;
}

static bool put_signs(const unpacking *u)
{
    char text[TN_NUMBER_TEXT_MAX];
    tn_rows *rows = u->rows;
    for (uint32_t i = 0; i < u->n.entries; i++) {
        const tn_slot_spec *spec = rows->schema->slot[rows->entry[i].slot];
        size_t size = text_of(spec, &rows->entry[i], text);
        if (!tn_rows_add_text(rows, text, size, &rows->token[i])) {
            return false;
        }
    }
    size_t numbers = (size_t)u->n.rows * rows->schema->n_numeric;
    for (size_t i = 0; i < numbers; i++) {
        size_t size = tn_write_f32(text, rows->numeric[i]);
        if (!tn_rows_add_text(rows, text, size, &rows->numeric_token[i])) {
            return false;
        }
    }
    return true;
}

static void put_counts(const unpacking *u, tn_parsed *out)
{
    const counts *n = &u->n;
    out->records = n->records;
    out->blank = n->blank;
    out->bytes = n->bytes;
    out->taken = n->taken;
    out->passed = n->passed;
    out->n_bad = n->bad;
    out->n_messages = n->messages;
    u->rows->duplicate_key = n->duplicate_key;
    u->rows->n = n->rows;
    u->rows->n_entries = n->entries;
    tn_text_clear(&out->messages);
    tn_text_add(&out->messages, u->from + u->lay.message, n->message_bytes);
}

tn_status tn_cache_unpack(tn_bytes block, tn_parsed *out, tn_error *err)
{
    tn_rows *rows = out->rows;
    unpacking u = {.from = block.data,
                   .rows = rows,
                   .ids = (rows->private->keep & (TN_ROWS_IDS | TN_ROWS_SIGNS)) != 0,
                   .signs = (rows->private->keep & TN_ROWS_SIGNS) != 0};
    tn_rows_clear(rows);
    TN_TRY(read_counts(block, &u.n, err));
    u.lay = lay_out(&u.n, rows->schema->n_numeric);
    TN_TRY(check(&u, block.size, err));
    bool good = true;
    u.bare = (rows->private->keep & TN_ROWS_BARE) != 0 && put_keys(&u, &good);
    good = good && make_room(rows, &u);
    if (good) {
        if (!u.bare) {
            put_entries(&u);
        }
        put_rows(&u);
        put_counts(&u, out);
        good = put_ids(&u) && (!u.signs || put_signs(&u)) && !out->messages.failed;
    }
    if (!good) {
        tn_rows_clear(rows);
        return tn_fail(err, TN_E_MEMORY, "no memory for the rows of a cache");
    }
    return TN_OK;
}
