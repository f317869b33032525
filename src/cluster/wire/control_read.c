/* control_read.c - notes from bytes that nobody trusts: control_messages.h.
 *
 * The bytes are walked twice: first they are checked and what they hold is counted, then it is
 * copied into memory of just that size. */
#include "base/codec/proto.h"
#include "base/codec/utf8.h"
#include "base/core/error.h"
#include "cluster/wire/control_tables.h"

#include <math.h>

/* What is known of each field after the first walk; how many of a list were copied in the second.
 */
typedef struct tally {
    uint64_t n; /* items, or 1 for what is there once */
    uint64_t filled;
    uint64_t bytes; /* of texts with their NUL */
    void *list;
    tn_bytes text; /* of what is there once; of several the last */
} tally;

typedef struct reading {
    const tn_note_table *table;
    tn_arena *arena;
    char *note;
    tally tally[TN_NOTE_FIELDS_MAX];
} reading;

static uint32_t wire_of(tn_note_kind kind)
{
    if (kind == TN_NOTE_U64 || kind == TN_NOTE_I64) {
        return TN_WIRE_VARINT;
    }
    return kind == TN_NOTE_F64 ? TN_WIRE_FIXED64 : TN_WIRE_BYTES;
}

static bool is_list(tn_note_kind kind)
{
    return kind == TN_NOTE_NUMBERS || kind == TN_NOTE_TEXTS;
}

/* The table's index of a field; n: not known. */
static uint32_t index_of(const tn_note_table *table, uint32_t number)
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

static tn_drop check_field(const tn_note_field *f, const tn_proto_field *p, tally *t)
{
    tn_drop why = TN_DROP_NONE;
    double value;
    if ((p->tag & 7) != wire_of(f->kind)) {
        return TN_DROP_NOTE;
    }
    switch (f->kind) {
    case TN_NOTE_F64:
        memcpy(&value, &p->value, sizeof value);
        why = isfinite(value) ? TN_DROP_NONE : TN_DROP_NOTE;
        break;
    case TN_NOTE_NUMBERS:
        why = count_numbers(p->bytes, t);
        break;
    case TN_NOTE_TEXT:
        why = check_text(p->bytes);
        t->text = p->bytes;
        t->bytes = p->bytes.size + 1;
        t->n = 1;
        break;
    case TN_NOTE_TEXTS:
        why = check_text(p->bytes);
        t->bytes += p->bytes.size + 1;
        t->n++;
        break;
    case TN_NOTE_U64:
        why = f->below != 0 && p->value >= f->below ? TN_DROP_NOTE : TN_DROP_NONE;
        break;
    case TN_NOTE_I64:
    case TN_NOTE_BYTES:
    default:
        break;
    }
    return is_list(f->kind) && t->n > TN_NOTE_LIST_MAX ? TN_DROP_NOTE_LIMIT : why;
}

/* Lists that belong together are equally long. */
static tn_drop check_lists(const reading *r)
{
    uint64_t length[TN_NOTE_GROUPS] = {0};
    bool known[TN_NOTE_GROUPS] = {false};
    for (uint32_t i = 0; i < r->table->n; i++) {
        uint32_t group = r->table->field[i].group;
        TN_ASSERT(group < TN_NOTE_GROUPS);
        if (group != 0 && known[group] && length[group] != r->tally[i].n) {
            return TN_DROP_NOTE;
        }
        known[group] = true;
        length[group] = r->tally[i].n;
    }
    return TN_DROP_NONE;
}

static tn_drop check(reading *r, tn_bytes in)
{
    tn_proto_field p;
    while (tn_proto_next(&in, &p)) {
        uint32_t i = index_of(r->table, p.tag >> 3);
        tn_drop why =
            i < r->table->n ? check_field(&r->table->field[i], &p, &r->tally[i]) : TN_DROP_NONE;
        if (why != TN_DROP_NONE) {
            return why;
        }
    }
    return in.failed ? TN_DROP_NOTE : check_lists(r);
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
        if (r->table->field[i].kind == TN_NOTE_NUMBERS) {
            t->list = TN_NEW_ARRAY(r->arena, uint64_t, t->n);
        } else if (r->table->field[i].kind == TN_NOTE_TEXTS) {
            t->list = (void *)TN_NEW_ARRAY(r->arena, const char *, t->n);
        }
    }
    return TN_DROP_NONE;
}

static const char *copy_text(tn_arena *arena, tn_bytes text)
{
    char *copy = TN_NEW_ARRAY(arena, char, text.size + 1);
    memcpy(copy, text.data, text.size);
    return copy;
}

static void copy_field(reading *r, uint32_t i, const tn_proto_field *p)
{
    const tn_note_field *f = &r->table->field[i];
    tally *t = &r->tally[i];
    char *at = r->note + f->offset;
    tn_bytes packed = p->bytes;
    tn_note_bytes lent = {p->bytes.data, p->bytes.size};
    if (f->kind == TN_NOTE_NUMBERS) {
        while (packed.size > 0) {
            TN_ASSERT(t->list != NULL && t->filled < t->n);
            ((uint64_t *)t->list)[t->filled++] = tn_proto_varint(&packed);
        }
    } else if (f->kind == TN_NOTE_TEXTS) {
        TN_ASSERT(t->list != NULL && t->filled < t->n);
        ((const char **)t->list)[t->filled++] = copy_text(r->arena, p->bytes);
    } else if (f->kind == TN_NOTE_BYTES) {
        memcpy(at, &lent, sizeof lent);
    } else if (f->kind != TN_NOTE_TEXT) {
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
        if (r->table->field[i].kind == TN_NOTE_NUMBERS) {
            memcpy(at, &numbers, sizeof numbers);
        } else if (r->table->field[i].kind == TN_NOTE_TEXTS) {
            memcpy(at, &texts, sizeof texts);
        } else if (r->table->field[i].kind == TN_NOTE_TEXT) {
            *(const char **)(void *)at = t->n > 0 ? copy_text(r->arena, t->text) : "";
        }
        TN_ASSERT(!is_list(r->table->field[i].kind) || t->filled == t->n);
    }
}

tn_drop tn_note_read(void *note, tn_frame_type type, const char *bytes, size_t size,
                     tn_arena *arena)
{
    reading r = {.table = tn_note_table_of(type), .arena = arena, .note = note};
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
