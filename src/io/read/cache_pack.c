/* cache_pack.c - a parsed block of rows to the bytes of a block of a .tnb file. */
#include "base/math/crc32c.h"
#include "io/read/cache_layout.h"

#define ONE UINT32_C(0x3f800000) /* 1.0f */

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
        flags |= row->weight != 1 ? TN_TNB_WEIGHTS : 0U;
        flags |= row->group != TN_NO_GROUP ? TN_TNB_GROUPS : 0U;
        flags |= row->id.size > 0 ? TN_TNB_IDS : 0U;
        *id_bytes += row->id.size;
    }
    uint32_t odd = 0;
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        odd |= tn_load_u32(&rows->entry[i].value) ^ ONE;
    }
    return flags | (odd != 0 ? TN_TNB_VALUES : 0U);
}

static void add_header(tn_text *out, const tn_tnb_counts *n, uint64_t size)
{
    tn_text_add_u32le(out, 0); /* the crc, when all is there */
    tn_text_add_u32le(out, (uint32_t)size);
    const uint32_t first[] = {n->rows, n->entries, n->flags, n->width};
    const uint64_t wide[] = {n->records, n->blank,         n->bytes,   n->taken,
                             n->passed,  n->duplicate_key, n->first_at};
    const uint32_t last[] = {n->bad, n->messages, n->message_bytes, n->id_bytes, 0, 0};
    tn_text_add(out, first, sizeof first);
    tn_text_add(out, wide, sizeof wide);
    tn_text_add(out, last, sizeof last);
}

static void put_entries(char *to, const tn_tnb_layout *lay, const tn_tnb_counts *n,
                        const tn_rows *rows)
{
    uint32_t slots = n->width > 0 ? n->width : n->entries;
    bool values = (n->flags & TN_TNB_VALUES) != 0;
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

static void put_ids(char *to, const tn_tnb_layout *lay, const tn_rows *rows)
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

static void put_rows(char *to, const tn_tnb_layout *lay, const tn_tnb_counts *n,
                     const tn_rows *rows)
{
    for (uint32_t r = 0; r < n->rows; r++) {
        const tn_parsed_row *row = &rows->row[r];
        size_t four = sizeof(uint32_t) * r;
        if (n->width == 0) {
            tn_store_u32(to + lay->end + four, tn_rows_end_of(rows, r));
        }
        tn_store_f32(to + lay->label + four, row->label);
        if ((n->flags & TN_TNB_WEIGHTS) != 0) {
            tn_store_f32(to + lay->weight + four, row->weight);
        }
        if ((n->flags & TN_TNB_GROUPS) != 0) {
            tn_store_u64(to + lay->group + 2 * four, row->group);
        }
        TN_ASSERT(row->at - n->first_at <= UINT32_MAX);
        tn_store_u32(to + lay->at + four, (uint32_t)(row->at - n->first_at));
    }
    size_t numeric = (size_t)n->rows * rows->schema->n_numeric;
    if (numeric > 0) {
        memcpy(to + lay->numeric, rows->numeric, numeric * sizeof(float));
    }
    if ((n->flags & TN_TNB_IDS) != 0) {
        put_ids(to, lay, rows);
    }
}

void tn_tnb_pack(const tn_parsed *parsed, const tn_tnb_note *note, tn_text *out)
{
    const tn_rows *rows = parsed->rows;
    uint64_t id_bytes = 0;
    uint32_t flags = flags_of(rows, &id_bytes);
    TN_ASSERT(id_bytes <= UINT32_MAX && parsed->messages.size <= UINT32_MAX);
    const tn_tnb_counts n = {
        .rows = rows->n,
        .entries = rows->n_entries,
        .flags = flags,
        .width = width_of(rows),
        .records = parsed->records,
        .blank = parsed->blank,
        .bytes = parsed->bytes,
        .taken = note->taken,
        .passed = note->passed,
        .duplicate_key = rows->duplicate_key,
        .first_at = rows->n > 0 ? rows->row[0].at : 0,
        .bad = parsed->n_bad,
        .messages = parsed->n_messages,
        .message_bytes = (uint32_t)parsed->messages.size,
        .id_bytes = (uint32_t)id_bytes,
    };
    tn_tnb_layout lay = tn_tnb_lay_out(&n, rows->schema->n_numeric);
    tn_text_clear(out);
    char *to = tn_text_grow(out, lay.size);
    if (to == NULL) { /* no memory, or beyond TN_TEXT_MAX */
        return;
    }
    memset(to, 0, lay.size);
    out->size = 0;
    add_header(out, &n, lay.size);
    TN_ASSERT(out->size == TN_TNB_BLOCK && out->data == to);
    out->size = lay.size;
    put_entries(to, &lay, &n, rows);
    put_rows(to, &lay, &n, rows);
    if (n.message_bytes > 0) {
        memcpy(to + lay.message, parsed->messages.data, n.message_bytes);
    }
    tn_store_u32(to, tn_crc32c(0, to + sizeof(uint32_t), lay.size - sizeof(uint32_t)));
}
