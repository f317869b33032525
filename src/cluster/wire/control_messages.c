/* control_messages.c - the tables of notes, and how notes are written: control_messages.h. Reading
 * is in control_read.c. */
#include "cluster/wire/control_messages.h"

#include "base/codec/proto.h"
#include "base/codec/utf8.h"
#include "base/core/bytes.h"
#include "base/core/error.h"
#include "cluster/wire/control_tables.h"

#include <math.h>

/* The kind of a member is that of its type: another type does not compile. */
#define KIND(type, member)                                                                         \
    _Generic(((type *)NULL)->member, uint64_t                                                      \
             : TN_NOTE_U64, int64_t                                                                \
             : TN_NOTE_I64, double                                                                 \
             : TN_NOTE_F64, const char *                                                           \
             : TN_NOTE_TEXT, tn_note_numbers                                                       \
             : TN_NOTE_NUMBERS, tn_note_texts                                                      \
             : TN_NOTE_TEXTS, tn_note_bytes                                                        \
             : TN_NOTE_BYTES)

#define FIELD(type, number, member)                                                                \
    {                                                                                              \
        (number), KIND(type, member), offsetof(type, member), 0, 0                                 \
    }
#define NAMED(type, number, member, names)                                                         \
    {                                                                                              \
        (number), KIND(type, member), offsetof(type, member), (names), 0                           \
    }
#define LIST(type, number, member, group)                                                          \
    {                                                                                              \
        (number), KIND(type, member), offsetof(type, member), 0, (group)                           \
    }

static const tn_note_field hello[] = {
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

static const tn_note_field welcome[] = {
    FIELD(tn_welcome_note, 1, checkpoint), LIST(tn_welcome_note, 2, address, 1),
    LIST(tn_welcome_note, 3, host, 1),     LIST(tn_welcome_note, 4, incarnation, 1),
    FIELD(tn_welcome_note, 5, owned_from),
};

static const tn_note_field beat[] = {
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

static const tn_note_field ask[] = {
    FIELD(tn_ask_note, 1, epoch),
    LIST(tn_ask_note, 2, done.part, 1),
    LIST(tn_ask_note, 3, done.attempt, 1),
    LIST(tn_ask_note, 4, done.position, 1),
    FIELD(tn_ask_note, 5, id),
    FIELD(tn_ask_note, 6, number),
};

static const tn_note_field part[] = {
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

static const tn_note_field report[] = {
    FIELD(tn_report_note, 1, number),     FIELD(tn_report_note, 2, epoch),
    FIELD(tn_report_note, 3, records),    FIELD(tn_report_note, 4, samples),
    FIELD(tn_report_note, 5, bad),        FIELD(tn_report_note, 6, loss_sum),
    FIELD(tn_report_note, 7, weight_sum), FIELD(tn_report_note, 8, metrics),
};

static const tn_note_field order[] = {
    NAMED(tn_order_note, 1, what, TN_ORDERS),
    FIELD(tn_order_note, 2, number),
    FIELD(tn_order_note, 3, step),
    FIELD(tn_order_note, 4, text),
    FIELD(tn_order_note, 5, more),
};

static const tn_note_field done[] = {
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

static const tn_note_field refused[] = {
    FIELD(tn_refused_note, 1, text),
    NAMED(tn_refused_note, 2, status, TN_E_STOPPED + 1),
    FIELD(tn_refused_note, 3, teller),
};

#define TABLE(type, fields)                                                                        \
    {                                                                                              \
        sizeof(type), sizeof(fields) / sizeof(fields)[0], (fields)                                 \
    }

static const tn_note_table tables[] = {
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

const tn_note_table *tn_note_table_of(tn_frame_type type)
{
    TN_ASSERT((size_t)type < sizeof tables / sizeof tables[0] && tables[type].size > 0);
    TN_ASSERT(tables[type].n <= TN_NOTE_FIELDS_MAX);
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

static void add_u64(tn_text *out, const tn_note_field *f, uint64_t value)
{
    TN_ASSERT(f->below == 0 || value < f->below);
    if (value != 0) {
        tn_proto_add_u64(out, f->number, value);
    }
}

static void add_field(tn_text *out, const tn_note_field *f, const char *at)
{
    const char *text = NULL;
    tn_note_bytes bytes = {0};
    switch (f->kind) {
    case TN_NOTE_U64:
    case TN_NOTE_I64:
        add_u64(out, f, tn_load_u64(at));
        break;
    case TN_NOTE_F64:
        add_f64(out, f->number, tn_load_f64(at));
        break;
    case TN_NOTE_TEXT:
        memcpy(&text, at, sizeof text);
        if (text != NULL && text[0] != 0) {
            add_text(out, f->number, text);
        }
        break;
    case TN_NOTE_NUMBERS:
        add_numbers(out, f->number, (const tn_note_numbers *)(const void *)at);
        break;
    case TN_NOTE_TEXTS:
        add_texts(out, f->number, (const tn_note_texts *)(const void *)at);
        break;
    case TN_NOTE_BYTES:
        memcpy(&bytes, at, sizeof bytes);
        if (bytes.n > 0) {
            tn_proto_add_bytes(out, f->number, bytes.at, bytes.n);
        }
        break;
    default:
        TN_ASSERT(false);
    }
}

void tn_note_write(tn_frame_type type, const void *note, tn_text *out)
{
    const tn_note_table *table = tn_note_table_of(type);
    for (uint32_t i = 0; i < table->n; i++) {
        const tn_note_field *f = &table->field[i];
        add_field(out, f, (const char *)note + f->offset);
    }
}
