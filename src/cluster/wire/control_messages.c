/* control_messages.c - the fields of every control message, and how a message is written and read.
 *
 * Nobody trusts the bytes that are read. They are walked twice: the first walk checks them and
 * counts what they hold, the second copies it into memory of just that size.
 */
#include "cluster/wire/control_messages.h"

#include "base/codec/proto.h"
#include "base/codec/utf8.h"
#include "base/core/bytes.h"
#include "base/core/error.h"

#include <math.h>

enum { FIELDS_MAX = 24 };

typedef enum note_kind {
    KIND_U64,
    KIND_I64,
    KIND_F64,
    KIND_TEXT,
    KIND_NUMBERS,
    KIND_TEXTS,
    KIND_BYTES
} note_kind;

typedef struct note_field {
    note_kind kind;
    uint32_t group; /* from 1: lists of a group, side by side, are equally long; 0: any */
    size_t offset;  /* in the struct */
    uint64_t below; /* number of names, for a number that has names; 0: any */
} note_field;

typedef struct note_table {
    size_t size; /* bytes of the struct; 0: the type carries no note */
    uint32_t n;
    const note_field *field; /* by their numbers on the wire, from 1: append only */
} note_table;

/* The kind of a member is that of its type: another type does not compile. */
#define KIND(type, member)                                                                         \
    _Generic(((type *)NULL)->member, uint64_t                                                      \
             : KIND_U64, int64_t                                                                \
             : KIND_I64, double                                                                 \
             : KIND_F64, const char *                                                           \
             : KIND_TEXT, tn_note_numbers                                                       \
             : KIND_NUMBERS, tn_note_texts                                                      \
             : KIND_TEXTS, tn_note_bytes                                                        \
             : KIND_BYTES)
#define MEMBER(type, member, names, group)                                                         \
    {                                                                                              \
        KIND(type, member), (group), offsetof(type, member), (names)                               \
    }
#define FIELD(type, member) MEMBER(type, member, 0, 0)
#define NAMED(type, member, names) MEMBER(type, member, names, 0)
#define LIST(type, member, group) MEMBER(type, member, 0, group)

static const note_field hello[] = {
    FIELD(tn_hello_note, version),
    FIELD(tn_hello_note, host),
    FIELD(tn_hello_note, pid),
    FIELD(tn_hello_note, address),
    FIELD(tn_hello_note, config_hash),
    FIELD(tn_hello_note, structure),
    FIELD(tn_hello_note, cpu),
    FIELD(tn_hello_note, peers),
    FIELD(tn_hello_note, threads),
    FIELD(tn_hello_note, started),
    NAMED(tn_hello_note, status, TN_E_STOPPED + 1),
    FIELD(tn_hello_note, text),
};

static const note_field welcome[] = {
    FIELD(tn_welcome_note, checkpoint), LIST(tn_welcome_note, address, 1),
    LIST(tn_welcome_note, host, 1),     LIST(tn_welcome_note, incarnation, 1),
    FIELD(tn_welcome_note, owned_from),
};

static const note_field part[] = {
    NAMED(tn_part_note, answer, TN_PART_ANSWERS),
    FIELD(tn_part_note, epoch),
    FIELD(tn_part_note, part),
    FIELD(tn_part_note, source),
    FIELD(tn_part_note, begin),
    FIELD(tn_part_note, end),
    FIELD(tn_part_note, attempt),
    FIELD(tn_part_note, position),
    FIELD(tn_part_note, id),
    FIELD(tn_part_note, number),
};

static const note_field beat[] = {
    NAMED(tn_beat_note, state, TN_PEER_STATES),
    FIELD(tn_beat_note, records),
    FIELD(tn_beat_note, in_flight),
    FIELD(tn_beat_note, rss_bytes),
    FIELD(tn_beat_note, bytes_out),
    FIELD(tn_beat_note, bytes_in),
    FIELD(tn_beat_note, waits_for),
    FIELD(tn_beat_note, rows_per_s),
    FIELD(tn_beat_note, waiting),
    LIST(tn_beat_note, held.part, 1),
    LIST(tn_beat_note, held.attempt, 1),
    LIST(tn_beat_note, held.position, 1),
    NAMED(tn_beat_note, asks, TN_PEER_ASKS),
};

static const note_field done[] = {
    NAMED(tn_done_note, what, TN_ORDERS),
    FIELD(tn_done_note, number),
    NAMED(tn_done_note, status, TN_E_STOPPED + 1),
    FIELD(tn_done_note, text),
    LIST(tn_done_note, file, 1),
    LIST(tn_done_note, file_bytes, 1),
    LIST(tn_done_note, file_crc, 1),
    LIST(tn_done_note, file_rows, 1),
    LIST(tn_done_note, file_first, 1),
    LIST(tn_done_note, file_last, 1),
    FIELD(tn_done_note, sent),
    LIST(tn_done_note, low, 2),
    LIST(tn_done_note, incarnation, 2),
    LIST(tn_done_note, parts.part, 3),
    LIST(tn_done_note, parts.attempt, 3),
    LIST(tn_done_note, parts.position, 3),
    FIELD(tn_done_note, records),
    FIELD(tn_done_note, samples),
    FIELD(tn_done_note, bad),
    FIELD(tn_done_note, metrics),
    FIELD(tn_done_note, clicks),
    FIELD(tn_done_note, weight),
    FIELD(tn_done_note, figures),
};

static const note_field ask[] = {
    FIELD(tn_ask_note, epoch),
    LIST(tn_ask_note, done.part, 1),
    LIST(tn_ask_note, done.attempt, 1),
    LIST(tn_ask_note, done.position, 1),
    FIELD(tn_ask_note, id),
    FIELD(tn_ask_note, number),
};

static const note_field report[] = {
    FIELD(tn_report_note, number),     FIELD(tn_report_note, epoch),
    FIELD(tn_report_note, records),    FIELD(tn_report_note, samples),
    FIELD(tn_report_note, bad),        FIELD(tn_report_note, loss_sum),
    FIELD(tn_report_note, weight_sum), FIELD(tn_report_note, metrics),
};

static const note_field order[] = {
    NAMED(tn_order_note, what, TN_ORDERS),
    FIELD(tn_order_note, number),
    FIELD(tn_order_note, step),
    FIELD(tn_order_note, text),
    FIELD(tn_order_note, more),
};

static const note_field refused[] = {
    FIELD(tn_refused_note, text),
    NAMED(tn_refused_note, status, TN_E_STOPPED + 1),
    FIELD(tn_refused_note, teller),
};

#define TABLE(type, fields)                                                                        \
    {                                                                                              \
        sizeof(type), sizeof(fields) / sizeof(fields)[0], (fields)                                 \
    }

static const note_table tables[] = {
    [TN_FRAME_HELLO] = TABLE(tn_hello_note, hello),
    [TN_FRAME_WELCOME] = TABLE(tn_welcome_note, welcome),
    [TN_FRAME_BEAT] = TABLE(tn_beat_note, beat),
    [TN_FRAME_ASK] = TABLE(tn_ask_note, ask),
    [TN_FRAME_PART] = TABLE(tn_part_note, part),
    [TN_FRAME_REPORT] = TABLE(tn_report_note, report),
    [TN_FRAME_ORDER] = TABLE(tn_order_note, order),
    [TN_FRAME_DONE] = TABLE(tn_done_note, done),
    [TN_FRAME_REFUSED] = TABLE(tn_refused_note, refused),
};

/* Returns the table of a type, never NULL; asserts that the type carries a note. */
static const note_table *table_of(tn_frame_type type)
{
    TN_ASSERT((size_t)type < sizeof tables / sizeof tables[0] && tables[type].size > 0);
    TN_ASSERT(tables[type].n <= FIELDS_MAX);
    return &tables[type];
}

/* ---- writing ---- */

/* Makes UTF-8 of any text, at most TN_NOTE_TEXT_MAX bytes; returns how many. */
static size_t make_proper(const char *text, char proper[TN_NOTE_TEXT_MAX])
{
    size_t left = strlen(text);
    size_t size = 0;
    while (left > 0) {
        size_t here = tn_utf8_size(text, left);
        size_t bytes = here > 0 ? here : 1;
        if (size + bytes > TN_NOTE_TEXT_MAX) {
            break;
        }
        memcpy(proper + size, here > 0 ? text : "?", bytes);
        text += bytes;
        left -= bytes;
        size += bytes;
    }
    return size;
}

static void add_text(tn_text *out, uint32_t number, const char *text)
{
    char proper[TN_NOTE_TEXT_MAX];
    tn_proto_add_bytes(out, number, proper, make_proper(text, proper));
}

static void add_numbers(tn_text *out, uint32_t number, const tn_note_numbers *list)
{
    TN_ASSERT(list->n <= TN_NOTE_LIST_MAX);
    if (list->n > 0) {
        size_t begin = tn_proto_begin(out, number);
        for (size_t i = 0; i < list->n; i++) {
            tn_proto_add_varint(out, list->at[i]);
        }
        tn_proto_end(out, begin);
    }
}

static void add_texts(tn_text *out, uint32_t number, const tn_note_texts *list)
{
    TN_ASSERT(list->n <= TN_NOTE_LIST_MAX);
    for (size_t i = 0; i < list->n; i++) {
        add_text(out, number, list->at[i]);
    }
}

static void add_field(tn_text *out, uint32_t number, const note_field *f, const void *at)
{
    const char *const *text = at;
    const tn_note_bytes *bytes = at;
    if (f->kind == KIND_NUMBERS) {
        add_numbers(out, number, at);
    } else if (f->kind == KIND_TEXTS) {
        add_texts(out, number, at);
    } else if (f->kind == KIND_TEXT && *text != NULL && (*text)[0] != '\0') {
        add_text(out, number, *text);
    } else if (f->kind == KIND_BYTES && bytes->n > 0) {
        tn_proto_add_bytes(out, number, bytes->at, bytes->n);
    } else if (f->kind <= KIND_F64 && tn_load_u64(at) != 0) { /* -0 is not, bit for bit */
        TN_ASSERT(f->below == 0 || tn_load_u64(at) < f->below);
        if (f->kind == KIND_F64) {
            TN_ASSERT(isfinite(tn_load_f64(at)));
            tn_proto_add_f64(out, number, tn_load_f64(at));
        } else {
            tn_proto_add_u64(out, number, tn_load_u64(at));
        }
    }
}

/* Returns whether lists that belong together are equally long; n: of each field. */
static bool lists_agree(const note_table *table, const uint64_t n[FIELDS_MAX])
{
    bool agree = true;
    for (uint32_t i = 1; i < table->n; i++) {
        const note_field *f = &table->field[i];
        agree = agree && (f->group == 0 || f->group != f[-1].group || n[i] == n[i - 1]);
    }
    return agree;
}

void tn_note_write(tn_frame_type type, const void *note, tn_text *out)
{
    const note_table *table = table_of(type);
    uint64_t n[FIELDS_MAX] = {0};
    for (uint32_t i = 0; i < table->n; i++) {
        const note_field *f = &table->field[i];
        const void *at = (const char *)note + f->offset;
        tn_note_numbers list; /* lists of texts have their length at the same place */
        if (f->group != 0) {
            memcpy(&list, at, sizeof list);
            n[i] = list.n;
        }
        add_field(out, i + 1, f, at);
    }
    TN_ASSERT(lists_agree(table, n));
}

/* ---- reading ---- */

/* Each array is by field. */
typedef struct reading {
    const note_table *table;
    tn_arena *arena;
    uint64_t text_bytes;    /* bytes of texts in lists, with their NULs */
    uint64_t n[FIELDS_MAX]; /* items of a list in this walk, so far */
    void *list[FIELDS_MAX]; /* NULL in the first walk */
    /* last field of this number, if it is no list; zeros: none came */
    tn_proto_field last[FIELDS_MAX];
} reading;

static tn_drop check_text(tn_bytes text)
{
    if (text.size > TN_NOTE_TEXT_MAX) {
        return TN_DROP_NOTE_LIMIT;
    }
    while (text.size > 0) {
        size_t here = *text.data != 0 ? tn_utf8_size(text.data, text.size) : 0;
        if (here == 0) {
            return TN_DROP_NOTE;
        }
        (void)tn_get(&text, here);
    }
    return TN_DROP_NONE;
}

static const char *copy_text(tn_arena *arena, tn_bytes text)
{
    char *copy = TN_NEW_ARRAY(arena, char, text.size + 1);
    memcpy(copy, text.size > 0 ? text.data : "", text.size);
    return copy;
}

static tn_drop take_numbers(reading *r, uint32_t i, tn_bytes packed)
{
    uint64_t *list = r->list[i];
    for (; packed.size > 0 && !packed.failed; r->n[i]++) {
        uint64_t value = tn_proto_varint(&packed);
        if (list != NULL) {
            list[r->n[i]] = value;
        }
    }
    return packed.failed ? TN_DROP_NOTE : TN_DROP_NONE;
}

static tn_drop take_text(reading *r, uint32_t i, tn_bytes text)
{
    const char **list = r->list[i];
    tn_drop why = check_text(text);
    if (list != NULL) {
        list[r->n[i]] = copy_text(r->arena, text);
    }
    r->text_bytes += text.size + 1;
    r->n[i]++;
    return why;
}

static const uint32_t wire_of[] = {
    [KIND_U64] = TN_WIRE_VARINT, [KIND_I64] = TN_WIRE_VARINT,    [KIND_F64] = TN_WIRE_FIXED64,
    [KIND_TEXT] = TN_WIRE_BYTES, [KIND_NUMBERS] = TN_WIRE_BYTES, [KIND_TEXTS] = TN_WIRE_BYTES,
    [KIND_BYTES] = TN_WIRE_BYTES};

static tn_drop take_field(reading *r, uint32_t i, const tn_proto_field *p)
{
    const note_field *f = &r->table->field[i];
    if ((p->tag & 7) != wire_of[f->kind]) {
        return TN_DROP_NOTE;
    }
    tn_drop why = TN_DROP_NONE;
    r->last[i] = *p;
    if (f->kind == KIND_NUMBERS) {
        why = take_numbers(r, i, p->bytes);
    } else if (f->kind == KIND_TEXTS) {
        why = take_text(r, i, p->bytes);
    } else if (f->kind == KIND_TEXT) {
        why = check_text(p->bytes);
    } else if ((f->kind == KIND_F64 && !isfinite(tn_load_f64(&p->value))) ||
               (f->below != 0 && p->value >= f->below)) {
        why = TN_DROP_NOTE;
    }
    return r->n[i] > TN_NOTE_LIST_MAX ? TN_DROP_NOTE_LIMIT : why;
}

static tn_drop walk(reading *r, tn_bytes in)
{
    tn_proto_field p;
    while (tn_proto_next(&in, &p)) {
        const uint32_t i = (p.tag >> 3) - 1; /* tn_proto_next refuses field 0 */
        tn_drop why = i < r->table->n ? take_field(r, i, &p) : TN_DROP_NONE;
        if (why != TN_DROP_NONE) {
            return why;
        }
    }
    return in.failed || !lists_agree(r->table, r->n) ? TN_DROP_NOTE : TN_DROP_NONE;
}

/* Makes room for lists and texts, and for none but the last of a text that is there several
 * times. */
static tn_drop reserve(reading *r)
{
    uint64_t bytes = r->text_bytes;
    for (uint32_t i = 0; i < r->table->n; i++) {
        const bool is_text = r->table->field[i].kind == KIND_TEXT;
        bytes += (r->n[i] + 1) * sizeof(uint64_t) + (is_text ? r->last[i].bytes.size + 1 : 0);
    }
    if (tn_arena_reserve(r->arena, bytes, "a note of a peer", NULL) != TN_OK) {
        return TN_DROP_MEMORY;
    }
    for (uint32_t i = 0; i < r->table->n; i++) {
        if (r->n[i] > 0) { /* items of both kinds of lists have 8 bytes */
            r->list[i] = TN_NEW_ARRAY(r->arena, uint64_t, r->n[i]);
            r->n[i] = 0;
        }
    }
    return TN_DROP_NONE;
}

static void set_member(const reading *r, uint32_t i, void *at)
{
    const tn_bytes bytes = r->last[i].bytes;
    switch (r->table->field[i].kind) {
    case KIND_NUMBERS:
        *(tn_note_numbers *)at = (tn_note_numbers){r->list[i], r->n[i]};
        break;
    case KIND_TEXTS:
        *(tn_note_texts *)at = (tn_note_texts){r->list[i], r->n[i]};
        break;
    case KIND_TEXT:
        *(const char **)at = bytes.size > 0 ? copy_text(r->arena, bytes) : "";
        break;
    case KIND_BYTES:
        *(tn_note_bytes *)at = (tn_note_bytes){bytes.data, bytes.size};
        break;
    case KIND_U64:
    case KIND_I64:
    case KIND_F64:
    default:
        memcpy(at, &r->last[i].value, sizeof r->last[i].value);
    }
}

tn_drop tn_note_read(void *note, tn_frame_type type, const char *bytes, size_t size,
                     tn_arena *arena)
{
    reading r = {.table = table_of(type), .arena = arena};
    const tn_bytes in = {bytes, size, false};
    tn_drop why = walk(&r, in);
    if (why == TN_DROP_NONE) {
        why = reserve(&r);
    }
    if (why != TN_DROP_NONE) {
        return why;
    }
    why = walk(&r, in);
    TN_ASSERT(why == TN_DROP_NONE);
    for (uint32_t i = 0; i < r.table->n; i++) {
        set_member(&r, i, (char *)note + r.table->field[i].offset);
    }
    return TN_DROP_NONE;
}
