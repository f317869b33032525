/* write_crb.c - compressed row blocks, as compressed_row_block.h (learn/base of dmlc/wormhole,
 * src/data of dmlc/difacto) and RecordIOWriter of dmlc-core write them; drawn in
 * io/source/crb_blocks.h.
 *
 * Rows are written one behind another, then those of a piece become a block or some:
 *
 *     f32 label   f32 weight   u32 n   n times (u64 index, f32 value)
 *
 * As there, an index has 8 bytes, and values that are all 1 are left out; weights too, and labels
 * where there are none.
 */
#include "base/core/number.h"
#include "base/machine/library.h"
#include "io/schema/crb_row.h"
#include "io/source/crb_blocks.h"
#include "io/write/write_kind.h"

#include <lz4.h>

enum { ROW_HEAD = 12, PAIR = 12 };
enum {
    FULL = 1 << 20
}; /* bytes of rows; with TN_VALUES_MAX in the last one far from what a record may have */

static tn_status plan_crb(tn_writer *w, tn_error *err)
{
    static const tn_library_name name = {"liblz4.so.1", "crb needs the library of lz4, which",
                                         "install liblz4-1"};
    void *library = NULL;
    TN_TRY(tn_write_plan_indices(w, false, w->schema->slot_bits > 0, err));
    TN_TRY(tn_library_load(&library, &name, err));
    return tn_library_find(library, &name, "LZ4_compress_default", &w->lz4, err);
}

/* The reader must give the index to the same slot. */
static tn_status add_pair(const tn_writer *w, const tn_slot_spec *spec, uint64_t index, float value,
                          tn_text *out, tn_error *err)
{
    if (tn_crb_spec_of(w->schema, index, false) != (uint32_t)(spec - w->schema->spec)) {
        return tn_fail(err, TN_E_DATA, "index %llu of slot '%s' is not within its %s",
                       (unsigned long long)index, spec->name,
                       w->schema->slot_bits > 0 ? "field" : "range");
    }
    tn_text_add_u64le(out, index);
    tn_text_add_f32le(out, value);
    return TN_OK;
}

/* At the first index of its slot. A whole number that no float equals would come back as another.
 */
static tn_status add_number(const tn_writer *w, const tn_slot_spec *spec, const tn_bytes *token,
                            tn_text *out, tn_error *err)
{
    const tn_schema *s = w->schema;
    const uint32_t shift = s->slot_bits_high ? 64 - s->slot_bits : 0;
    const uint64_t index = s->slot_bits > 0 ? (uint64_t)spec->field << shift : spec->range_from;
    float value = 0;
    double exact = 0;
    TN_TRY(tn_write_real(spec, token, &value, err));
    if (spec->type != TN_SIGN_FLOAT &&
        (tn_read_f64(token->data, token->size, &exact) != TN_NUM_OK || exact != (double)value)) {
        return tn_fail(err, TN_E_DATA, "'%.*s' of slot '%s' is no float, as numbers of '%s' are",
                       (int)(token->size < 80 ? token->size : 80), token->data, spec->name,
                       w->kind->name);
    }
    return add_pair(w, spec, index, value, out, err);
}

static tn_status add_entry(const tn_writer *w, const tn_rows *rows, uint32_t i, tn_text *out,
                           tn_error *err)
{
    const tn_slot_spec *spec = w->schema->slot[rows->entry[i].slot];
    char buffer[TN_WRITE_TOKEN_MAX];
    tn_bytes token = {0};
    uint64_t index = 0;
    if (!tn_write_token(w, rows, i, buffer, &token)) {
        return TN_OK;
    }
    if (tn_write_is_number(w, spec)) {
        return add_number(w, spec, &token, out, err);
    }
    TN_TRY(tn_write_index(w, spec, &token, &index, err));
    return add_pair(w, spec, index, rows->entry[i].value, out, err);
}

static tn_status write_crb(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                           tn_error *err)
{
    const tn_parsed_row *r = &rows->row[row];
    const size_t begin = out->size;
    const uint32_t end = tn_rows_end_of(rows, row);
    TN_TRY(tn_write_check_label(w, r, err));
    TN_TRY(tn_write_check_group(w, r, err));
    tn_text_add_f32le(out, r->label);
    tn_text_add_f32le(out, r->weight);
    tn_text_add_u32le(out, 0);
    for (uint32_t i = r->first; i < end; i++) {
        TN_TRY(add_entry(w, rows, i, out, err));
    }
    for (uint32_t c = 0; c < w->schema->n_numeric; c++) {
        tn_bytes token = {0};
        if (tn_write_numeric(rows, row, c, &token)) {
            TN_TRY(add_number(w, w->schema->numeric[c], &token, out, err));
        }
    }
    if (!out->failed) {
        const size_t pairs = out->size - begin - ROW_HEAD;
        TN_ASSERT(pairs % PAIR == 0);
        tn_store_u32(out->data + begin + ROW_HEAD - sizeof(uint32_t), (uint32_t)(pairs / PAIR));
    }
    return TN_OK;
}

/* ---- blocks ---- */

/* Rows as arrays, until a block is full: how many. */
static uint32_t split(tn_bytes *rows, tn_text array[TN_CRB_ARRAYS])
{
    const size_t size = rows->size;
    uint32_t n = 0;
    uint64_t offset = 0;
    for (; rows->size > 0 && size - rows->size < FULL; n++) {
        tn_text_add_f32le(&array[TN_CRB_LABEL], tn_get_f32(rows));
        tn_text_add_f32le(&array[TN_CRB_WEIGHT], tn_get_f32(rows));
        tn_text_add_u64le(&array[TN_CRB_OFFSET], offset);
        const uint32_t pairs = tn_get_u32(rows);
        for (uint32_t i = 0; i < pairs; i++) {
            tn_text_add_u64le(&array[TN_CRB_INDEX], tn_get_u64(rows));
            tn_text_add_f32le(&array[TN_CRB_VALUE], tn_get_f32(rows));
        }
        offset += pairs;
    }
    TN_ASSERT(!rows->failed);
    tn_text_add_u64le(&array[TN_CRB_OFFSET], offset);
    return n;
}

static void drop_ones(tn_text *floats)
{
    size_t at = 0;
    while (at < floats->size && tn_load_f32(floats->data + at) == 1) {
        at += sizeof(float);
    }
    floats->size = at == floats->size ? 0 : floats->size;
}

/* One LZ4 block behind its size; of nothing the size alone. */
static tn_status add_array(const tn_writer *w, const tn_text *array, tn_text *out, tn_error *err)
{
    const int size = (int)array->size;
    const int room = LZ4_COMPRESSBOUND(size);
    const size_t begin = out->size;
    TN_TRY(tn_text_check(array, "a block of crb", err));
    tn_text_add_u32le(out, 0);
    if (size == 0) {
        return TN_OK;
    }
    char *to = tn_text_grow(out, (size_t)room);
    TN_TRY(tn_text_check(out, "a block of crb", err));
    const int packed = w->lz4(array->data, to, size, room);
    if (packed <= 0) {
        return tn_fail(err, TN_E_MEMORY, "no memory to compress with");
    }
    out->size -= (size_t)(room - packed);
    tn_store_u32(out->data + begin, (uint32_t)packed);
    return TN_OK;
}

static void add_piece(tn_text *out, uint32_t flag, const char *data, size_t size)
{
    tn_text_add_u32le(out, TN_CRB_PIECE_MAGIC);
    tn_text_add_u32le(out, flag << 29 | (uint32_t)size);
    tn_text_add(out, data, size);
}

/* Cut where an aligned word is the magic, which is left out there. */
static void add_record(const tn_text *record, tn_text *out)
{
    size_t from = 0;
    TN_ASSERT(record->size <= TN_CRB_RECORD_MAX);
    for (size_t at = 0; at + sizeof(uint32_t) <= record->size; at += sizeof(uint32_t)) {
        if (tn_load_u32(record->data + at) == TN_CRB_PIECE_MAGIC) {
            add_piece(out, from == 0 ? TN_CRB_FIRST : TN_CRB_MIDDLE, record->data + from,
                      at - from);
            from = at + sizeof(uint32_t);
        }
    }
    add_piece(out, from == 0 ? TN_CRB_WHOLE : TN_CRB_LAST, record->data + from,
              record->size - from);
    while (out->size % sizeof(uint32_t) != 0 && !out->failed) {
        tn_text_addc(out, 0);
    }
}

/* The next block. */
static tn_status make_record(const tn_writer *w, tn_bytes *rows, tn_text array[TN_CRB_ARRAYS],
                             tn_text *record, tn_error *err)
{
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        tn_text_clear(&array[i]);
    }
    const uint32_t n = split(rows, array);
    drop_ones(&array[TN_CRB_VALUE]);
    drop_ones(&array[TN_CRB_WEIGHT]);
    if (w->schema->label->none) {
        tn_text_clear(&array[TN_CRB_LABEL]);
    }
    tn_text_clear(record);
    tn_text_add_u32le(record, TN_CRB_BLOCK_MAGIC);
    tn_text_add_u32le(record, sizeof(uint64_t));
    tn_text_add_u32le(record, n);
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        TN_TRY(add_array(w, &array[i], record, err));
    }
    return TN_OK;
}

static tn_status pack_crb(const tn_writer *w, tn_text *rows, tn_error *err)
{
    tn_text array[TN_CRB_ARRAYS] = {{0}};
    tn_text record = {0};
    tn_text out = {0};
    tn_bytes rest = {rows->data, rows->size, false};
    tn_status status = TN_OK;
    while (status == TN_OK && rest.size > 0) {
        status = make_record(w, &rest, array, &record, err);
        if (status == TN_OK) {
            add_record(&record, &out);
        }
    }
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        tn_text_done(&array[i]);
    }
    tn_text_done(&record);
    tn_text_done(rows);
    *rows = out;
    return status == TN_OK ? tn_text_check(rows, "a block of crb", err) : status;
}

const tn_write_kind tn_write_crb = {"crb", plan_crb, NULL, write_crb, pack_crb};
