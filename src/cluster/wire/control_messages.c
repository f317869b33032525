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

enum { FIELDS_MAX = 24, GROUPS = 4 };

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
    uint32_t number; /* of base/codec/proto.h; never reused */
    note_kind kind;
    size_t offset;  /* in the struct */
    uint64_t below; /* of a number with names: how many there are; 0: any */
    uint32_t group; /* from 1: lists of a group are equally long; 0: any */
} note_field;

typedef struct note_table {
    size_t size; /* of the struct; 0: the type carries no note */
    uint32_t n;
    const note_field *field;
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
#define MEMBER(type, number, member, names, group)                                                 \
    {                                                                                              \
        (number), KIND(type, member), offsetof(type, member), (names), (group)                     \
    }
#define FIELD(type, number, member) MEMBER(type, number, member, 0, 0)
#define NAMED(type, number, member, names) MEMBER(type, number, member, names, 0)
#define LIST(type, number, member, group) MEMBER(type, number, member, 0, group)

static const note_field hello[] = {
    FIELD(tn_hello_note, 1, version),
    FIELD(tn_hello_note, 2, host),
    FIELD(tn_hello_note, 3, pid),
    FIELD(tn_hello_note, 4, address),
    FIELD(tn_hello_note, 5, config_hash),
    FIELD(tn_hello_note, 6, structure),
    FIELD(tn_hello_note, 7, cpu),
    FIELD(tn_hello_note, 8, peers),
    FIELD(tn_hello_note, 9, threads),
    FIELD(tn_hello_note, 10, started),
    NAMED(tn_hello_note, 11, status, TN_E_STOPPED + 1),
    FIELD(tn_hello_note, 12, text),
};

static const note_field welcome[] = {
    FIELD(tn_welcome_note, 1, checkpoint), LIST(tn_welcome_note, 2, address, 1),
    LIST(tn_welcome_note, 3, host, 1),     LIST(tn_welcome_note, 4, incarnation, 1),
    FIELD(tn_welcome_note, 5, owned_from),
};

static const note_field part[] = {
    NAMED(tn_part_note, 1, answer, TN_PART_ANSWERS),
    FIELD(tn_part_note, 2, epoch),
    FIELD(tn_part_note, 3, part),
    FIELD(tn_part_note, 4, source),
    FIELD(tn_part_note, 5, begin),
    FIELD(tn_part_note, 6, end),
    FIELD(tn_part_note, 7, attempt),
    FIELD(tn_part_note, 8, position),
    FIELD(tn_part_note, 9, id),
    FIELD(tn_part_note, 10, number),
};

static const note_field beat[] = {
    NAMED(tn_beat_note, 1, state, TN_PEER_STATES),
    FIELD(tn_beat_note, 2, records),
    FIELD(tn_beat_note, 3, in_flight),
    FIELD(tn_beat_note, 4, rss_bytes),
    FIELD(tn_beat_note, 5, bytes_out),
    FIELD(tn_beat_note, 6, bytes_in),
    FIELD(tn_beat_note, 7, waits_for),
    FIELD(tn_beat_note, 8, rows_per_s),
    FIELD(tn_beat_note, 9, waiting),
    LIST(tn_beat_note, 10, held.part, 1),
    LIST(tn_beat_note, 11, held.attempt, 1),
    LIST(tn_beat_note, 12, held.position, 1),
    NAMED(tn_beat_note, 13, asks, TN_PEER_ASKS),
};

static const note_field done[] = {
    NAMED(tn_done_note, 1, what, TN_ORDERS),
    FIELD(tn_done_note, 2, number),
    NAMED(tn_done_note, 3, status, TN_E_STOPPED + 1),
    FIELD(tn_done_note, 4, text),
    LIST(tn_done_note, 5, file, 1),
    LIST(tn_done_note, 6, file_bytes, 1),
    LIST(tn_done_note, 7, file_crc, 1),
    LIST(tn_done_note, 8, file_rows, 1),
    LIST(tn_done_note, 9, file_first, 1),
    LIST(tn_done_note, 10, file_last, 1),
    FIELD(tn_done_note, 11, sent),
    LIST(tn_done_note, 12, low, 2),
    LIST(tn_done_note, 13, incarnation, 2),
    LIST(tn_done_note, 14, parts.part, 3),
    LIST(tn_done_note, 15, parts.attempt, 3),
    LIST(tn_done_note, 16, parts.position, 3),
    FIELD(tn_done_note, 17, records),
    FIELD(tn_done_note, 18, samples),
    FIELD(tn_done_note, 19, bad),
    FIELD(tn_done_note, 20, metrics),
    FIELD(tn_done_note, 21, clicks),
    FIELD(tn_done_note, 22, weight),
    FIELD(tn_done_note, 23, figures),
};

static const note_field ask[] = {
    FIELD(tn_ask_note, 1, epoch),
    LIST(tn_ask_note, 2, done.part, 1),
    LIST(tn_ask_note, 3, done.attempt, 1),
    LIST(tn_ask_note, 4, done.position, 1),
    FIELD(tn_ask_note, 5, id),
    FIELD(tn_ask_note, 6, number),
};

static const note_field report[] = {
    FIELD(tn_report_note, 1, number),     FIELD(tn_report_note, 2, epoch),
    FIELD(tn_report_note, 3, records),    FIELD(tn_report_note, 4, samples),
    FIELD(tn_report_note, 5, bad),        FIELD(tn_report_note, 6, loss_sum),
    FIELD(tn_report_note, 7, weight_sum), FIELD(tn_report_note, 8, metrics),
};

static const note_field order[] = {
    NAMED(tn_order_note, 1, what, TN_ORDERS),
    FIELD(tn_order_note, 2, number),
    FIELD(tn_order_note, 3, step),
    FIELD(tn_order_note, 4, text),
    FIELD(tn_order_note, 5, more),
};

static const note_field refused[] = {
    FIELD(tn_refused_note, 1, text),
    NAMED(tn_refused_note, 2, status, TN_E_STOPPED + 1),
    FIELD(tn_refused_note, 3, teller),
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

/* Never NULL; asserts that the type carries a note. */
static const note_table *table_of(tn_frame_type type)
{
    TN_ASSERT((size_t)type < sizeof tables / sizeof tables[0] && tables[type].size > 0);
    TN_ASSERT(tables[type].n <= FIELDS_MAX);
    return &tables[type];
}

/* ---- writing ---- */

/* `size` bytes of UTF-8 at most TN_NOTE_TEXT_MAX long, made of any text. */
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
    if (list->n == 0) {
        return;
    }
    size_t begin = tn_proto_begin(out, number);
    for (size_t i = 0; i < list->n; i++) {
        tn_proto_add_varint(out, list->at[i]);
    }
    tn_proto_end(out, begin);
}

static void add_texts(tn_text *out, uint32_t number, const tn_note_texts *list)
{
    TN_ASSERT(list->n <= TN_NOTE_LIST_MAX);
    for (size_t i = 0; i < list->n; i++) {
        add_text(out, number, list->at[i]);
    }
}

/* -0 is written, since it is not 0 bit for bit. */
static void add_f64(tn_text *out, uint32_t number, double value)
{
    TN_ASSERT(isfinite(value));
    if (tn_load_u64(&value) != 0) {
        tn_proto_add_f64(out, number, value);
    }
}

static void add_u64(tn_text *out, const note_field *f, uint64_t value)
{
    TN_ASSERT(f->below == 0 || value < f->below);
    if (value != 0) {
        tn_proto_add_u64(out, f->number, value);
    }
}

static void add_field(tn_text *out, const note_field *f, const char *at)
{
    const char *text = NULL;
    tn_note_bytes bytes = {0};
    switch (f->kind) {
    case KIND_U64:
    case KIND_I64:
        add_u64(out, f, tn_load_u64(at));
        break;
    case KIND_F64:
        add_f64(out, f->number, tn_load_f64(at));
        break;
    case KIND_TEXT:
        memcpy(&text, at, sizeof text);
        if (text != NULL && text[0] != 0) {
            add_text(out, f->number, text);
        }
        break;
    case KIND_NUMBERS:
        add_numbers(out, f->number, (const tn_note_numbers *)(const void *)at);
        break;
    case KIND_TEXTS:
        add_texts(out, f->number, (const tn_note_texts *)(const void *)at);
        break;
    case KIND_BYTES:
        memcpy(&bytes, at, sizeof bytes);
        if (bytes.n > 0) {
            tn_proto_add_bytes(out, f->number, bytes.at, bytes.n);
        }
        break;
    default:
        TN_ASSERT(false);
    }
}

/* Whether lists that belong together are equally long; n: of each field. */
static bool lists_agree(const note_table *table, const uint64_t n[FIELDS_MAX])
{
    uint64_t length[GROUPS] = {0};
    bool known[GROUPS] = {false};
    for (uint32_t i = 0; i < table->n; i++) {
        const uint32_t group = table->field[i].group;
        TN_ASSERT(group < GROUPS);
        if (group != 0 && known[group] && length[group] != n[i]) {
            return false;
        }
        known[group] = true;
        length[group] = n[i];
    }
    return true;
}

void tn_note_write(tn_frame_type type, const void *note, tn_text *out)
{
    const note_table *table = table_of(type);
    uint64_t n[FIELDS_MAX] = {0};
    for (uint32_t i = 0; i < table->n; i++) {
        const note_field *f = &table->field[i];
        const char *at = (const char *)note + f->offset;
        tn_note_numbers list; /* lists of texts have their length at the same place */
        if (f->group != 0) {
            memcpy(&list, at, sizeof list);
            n[i] = list.n;
        }
        add_field(out, f, at);
    }
    TN_ASSERT(lists_agree(table, n));
}

/* ---- reading ---- */

/* Each field after the first walk, and how many items of a list the second walk has copied.
 */
typedef struct tally {
    uint64_t n; /* items, or 1 for what is there once */
    uint64_t filled;
    uint64_t bytes; /* of texts with their NUL */
    void *list;
    tn_bytes text; /* of what is there once; of several the last */
} tally;

typedef struct reading {
    const note_table *table;
    tn_arena *arena;
    char *note;
    tally tally[FIELDS_MAX];
} reading;

static uint32_t wire_of(note_kind kind)
{
    if (kind == KIND_U64 || kind == KIND_I64) {
        return TN_WIRE_VARINT;
    }
    return kind == KIND_F64 ? TN_WIRE_FIXED64 : TN_WIRE_BYTES;
}

static bool is_list(note_kind kind)
{
    return kind == KIND_NUMBERS || kind == KIND_TEXTS;
}

/* The table's index of a field; n: not known. */
static uint32_t index_of(const note_table *table, uint32_t number)
{
    uint32_t i = 0;
    while (i < table->n && table->field[i].number != number) {
        i++;
    }
    return i;
}

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

static tn_drop count_numbers(tn_bytes packed, tally *t)
{
    while (packed.size > 0 && !packed.failed) {
        (void)tn_proto_varint(&packed);
        t->n++;
    }
    return packed.failed ? TN_DROP_NOTE : TN_DROP_NONE;
}

static tn_drop check_field(const note_field *f, const tn_proto_field *p, tally *t)
{
    tn_drop why = TN_DROP_NONE;
    double value;
    if ((p->tag & 7) != wire_of(f->kind)) {
        return TN_DROP_NOTE;
    }
    switch (f->kind) {
    case KIND_F64:
        memcpy(&value, &p->value, sizeof value);
        why = isfinite(value) ? TN_DROP_NONE : TN_DROP_NOTE;
        break;
    case KIND_NUMBERS:
        why = count_numbers(p->bytes, t);
        break;
    case KIND_TEXT:
        why = check_text(p->bytes);
        t->text = p->bytes;
        t->bytes = p->bytes.size + 1;
        t->n = 1;
        break;
    case KIND_TEXTS:
        why = check_text(p->bytes);
        t->bytes += p->bytes.size + 1;
        t->n++;
        break;
    case KIND_U64:
        why = f->below != 0 && p->value >= f->below ? TN_DROP_NOTE : TN_DROP_NONE;
        break;
    case KIND_I64:
    case KIND_BYTES:
    default:
        break;
    }
    return is_list(f->kind) && t->n > TN_NOTE_LIST_MAX ? TN_DROP_NOTE_LIMIT : why;
}

static tn_drop check(reading *r, tn_bytes in)
{
    uint64_t n[FIELDS_MAX] = {0};
    tn_proto_field p;
    while (tn_proto_next(&in, &p)) {
        uint32_t i = index_of(r->table, p.tag >> 3);
        tn_drop why =
            i < r->table->n ? check_field(&r->table->field[i], &p, &r->tally[i]) : TN_DROP_NONE;
        if (why != TN_DROP_NONE) {
            return why;
        }
    }
    for (uint32_t i = 0; i < r->table->n; i++) {
        n[i] = r->tally[i].n;
    }
    return in.failed || !lists_agree(r->table, n) ? TN_DROP_NOTE : TN_DROP_NONE;
}

/* Room for lists and texts. */
static tn_drop reserve(reading *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->table->n; i++) {
        const tally *t = &r->tally[i];
        bytes += t->n * sizeof(uint64_t) + t->bytes + sizeof(uint64_t);
    }
    if (tn_arena_reserve(r->arena, bytes, "a note of a peer", NULL) != TN_OK) {
        return TN_DROP_MEMORY;
    }
    for (uint32_t i = 0; i < r->table->n; i++) {
        tally *t = &r->tally[i];
        if (t->n == 0) {
            continue;
        }
        if (r->table->field[i].kind == KIND_NUMBERS) {
            t->list = TN_NEW_ARRAY(r->arena, uint64_t, t->n);
        } else if (r->table->field[i].kind == KIND_TEXTS) {
            t->list = (void *)TN_NEW_ARRAY(r->arena, const char *, t->n);
        }
    }
    return TN_DROP_NONE;
}

static const char *copy_text(tn_arena *arena, tn_bytes text)
{
    char *copy = TN_NEW_ARRAY(arena, char, text.size + 1);
    memcpy(copy, text.size > 0 ? text.data : "", text.size);
    return copy;
}

static void copy_field(reading *r, uint32_t i, const tn_proto_field *p)
{
    const note_field *f = &r->table->field[i];
    tally *t = &r->tally[i];
    char *at = r->note + f->offset;
    tn_bytes packed = p->bytes;
    tn_note_bytes lent = {p->bytes.data, p->bytes.size};
    if (f->kind == KIND_NUMBERS) {
        while (packed.size > 0) {
            TN_ASSERT(t->list != NULL && t->filled < t->n);
            ((uint64_t *)t->list)[t->filled++] = tn_proto_varint(&packed);
        }
    } else if (f->kind == KIND_TEXTS) {
        TN_ASSERT(t->list != NULL && t->filled < t->n);
        ((const char **)t->list)[t->filled++] = copy_text(r->arena, p->bytes);
    } else if (f->kind == KIND_BYTES) {
        memcpy(at, &lent, sizeof lent);
    } else if (f->kind != KIND_TEXT) {
        memcpy(at, &p->value, sizeof p->value);
    }
}

/* Lists, and texts; one that is not there is empty. */
static void finish(const reading *r)
{
    for (uint32_t i = 0; i < r->table->n; i++) {
        const tally *t = &r->tally[i];
        char *at = r->note + r->table->field[i].offset;
        tn_note_numbers numbers = {t->list, t->filled};
        tn_note_texts texts = {t->list, t->filled};
        if (r->table->field[i].kind == KIND_NUMBERS) {
            memcpy(at, &numbers, sizeof numbers);
        } else if (r->table->field[i].kind == KIND_TEXTS) {
            memcpy(at, &texts, sizeof texts);
        } else if (r->table->field[i].kind == KIND_TEXT) {
            *(const char **)(void *)at = t->n > 0 ? copy_text(r->arena, t->text) : "";
        }
        TN_ASSERT(!is_list(r->table->field[i].kind) || t->filled == t->n);
    }
}

tn_drop tn_note_read(void *note, tn_frame_type type, const char *bytes, size_t size,
                     tn_arena *arena)
{
    reading r = {.table = table_of(type), .arena = arena, .note = note};
    tn_bytes in = {bytes, size, false};
    tn_drop why = check(&r, in);
    if (why == TN_DROP_NONE) {
        why = reserve(&r);
    }
    if (why != TN_DROP_NONE) {
        return why;
    }
    memset(note, 0, r.table->size);
    tn_proto_field p;
    while (tn_proto_next(&in, &p)) {
        uint32_t i = index_of(r.table, p.tag >> 3);
        if (i < r.table->n) {
            copy_field(&r, i, &p);
        }
    }
    finish(&r);
    return TN_DROP_NONE;
}
