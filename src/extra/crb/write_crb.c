/* write_crb.c - compressed row blocks, as compressed_row_block.h (learn/base of dmlc/wormhole,
 * src/data of dmlc/difacto) and RecordIOWriter of dmlc-core write them; drawn in
 * extra/crb/crb_blocks.h.
 *
 * Rows are written one after another as extra/crb/crb_row.h has them, then those of a piece become
 * a block or some. As there, an index has 8 bytes, and values that are all 1 are left out; weights
 * too, and labels where there are none. Where slot_bits takes the high bits of an index, those of 4
 * bytes have their fields elsewhere than those of 8: a row whose indices are such ones goes into a
 * block of them, and the reader gives each to the same slot.
 */
#include "base/core/number.h"
#include "base/machine/library.h"
#include "extra/crb/crb_blocks.h"
#include "extra/crb/crb_row.h"
#include "io/write/write_kind.h"

#include <lz4.h>
#include <math.h>

#define PAIR (sizeof(uint64_t) + sizeof(float))
/* Bytes of rows: of a block that has enough, and of one whose record has not too many. A row that
 * is written has at most 12 MiB; one that is copied may have more, in slots that nobody reads. */
enum { FULL = 1 << 20, ROWS_MAX = TN_CRB_RECORD_MAX / 2 };

/* Bytes of an index that a row or a block may have. */
enum { LONG = 1, SHORT = 2, EITHER = LONG | SHORT };
#define ROW_EITHER (TN_CRB_SHORT >> 1) /* in the head of a row that may be of both */

/* A row that is being written: room for all indices, then the values. */
typedef struct open_row {
    const tn_writer *writer;
    char *index, *value;
    uint32_t n, sizes;
} open_row;

static tn_status plan_crb(tn_writer *w, tn_error *err)
{
    return tn_write_plan_indices(w, false, w->schema->slot_bits > 0, err);
}

/* Returns the sizes of an index for which the reader takes the slot. */
static uint32_t sizes_of(const tn_writer *w, const tn_slot_spec *spec, uint64_t index)
{
    const uint32_t slot = (uint32_t)(spec - w->schema->spec);
    const bool is_short = index <= UINT32_MAX && tn_crb_spec_of(w->schema, index, true) == slot;
    return (tn_crb_spec_of(w->schema, index, false) == slot ? LONG : 0) | (is_short ? SHORT : 0);
}

static tn_status add_pair(const tn_slot_spec *spec, uint64_t index, uint32_t sizes, float value,
                          open_row *row, tn_error *err)
{
    if (sizes == 0) {
        return tn_fail(err, TN_E_DATA, "index %llu of slot '%s' is not within its %s",
                       (unsigned long long)index, spec->name,
                       row->writer->schema->slot_bits > 0 ? "field" : "range");
    }
    row->sizes &= sizes;
    if (row->sizes == 0) {
        return tn_fail(err, TN_E_DATA,
                       "index %llu of slot '%s' is within its field with %d bytes, others of the "
                       "row with %d",
                       (unsigned long long)index, spec->name, sizes == LONG ? 8 : 4,
                       sizes == LONG ? 4 : 8);
    }
    tn_store_u64(row->index + row->n * sizeof index, index);
    tn_store_f32(row->value + row->n * sizeof value, value);
    row->n++;
    return TN_OK;
}

/* At the first index of its slot, of either size: shorten makes one of 4 bytes of its 8. A whole
 * number that no float equals would come back as another. */
static tn_status add_number(const tn_slot_spec *spec, const tn_bytes *token, open_row *row,
                            tn_error *err)
{
    const tn_writer *w = row->writer;
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
    const uint32_t sizes = (sizes_of(w, spec, index) & LONG) != 0 ? EITHER : 0;
    return add_pair(spec, index, sizes, value, row, err);
}

static tn_status add_entry(const tn_rows *rows, uint32_t i, open_row *row, tn_error *err)
{
    const tn_writer *w = row->writer;
    const tn_slot_spec *spec = w->schema->slot[rows->entry[i].slot];
    char buffer[TN_WRITE_TOKEN_MAX];
    tn_bytes token = {0};
    uint64_t index = 0;
    if (!tn_write_token(w, rows, i, buffer, &token)) {
        return TN_OK;
    }
    if (tn_write_is_number(w, spec)) {
        return add_number(spec, &token, row, err);
    }
    TN_TRY(tn_write_index(w, spec, &token, &index, err));
    return add_pair(spec, index, sizes_of(w, spec, index), rows->entry[i].value, row, err);
}

static tn_status write_crb(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                           tn_error *err)
{
    const tn_parsed_row *r = &rows->row[row];
    const size_t begin = out->size;
    const uint32_t end = tn_rows_end_of(rows, row);
    const size_t most = end - r->first + w->schema->n_numeric;
    TN_TRY(tn_write_check_label(w, r, err));
    TN_TRY(tn_write_check_group(w, r, err));
    char *head = tn_text_grow(out, TN_CRB_HEAD + most * PAIR);
    TN_TRY(tn_text_check(out, "written rows", err));
    open_row to = {.writer = w,
                   .index = head + TN_CRB_HEAD,
                   .value = head + TN_CRB_HEAD + most * sizeof(uint64_t),
                   .sizes = EITHER};
    for (uint32_t i = r->first; i < end; i++) {
        TN_TRY(add_entry(rows, i, &to, err));
    }
    for (uint32_t c = 0; c < w->schema->n_numeric; c++) {
        tn_bytes token = {0};
        if (tn_write_numeric(rows, row, c, &token)) {
            TN_TRY(add_number(w->schema->numeric[c], &token, &to, err));
        }
    }
    TN_ASSERT(to.n <= most && to.n < ROW_EITHER);
    const uint32_t flags = to.sizes == SHORT ? TN_CRB_SHORT : to.sizes == EITHER ? ROW_EITHER : 0;
    memmove(to.index + to.n * sizeof(uint64_t), to.value, to.n * sizeof(float));
    out->size = begin + TN_CRB_HEAD + to.n * PAIR;
    tn_store_u32(head, (uint32_t)(out->size - begin - sizeof(uint32_t)));
    tn_store_f32(head + 4, w->schema->label->none ? NAN : r->label);
    tn_store_f32(head + 8, r->weight);
    tn_store_u32(head + 12, to.n | TN_CRB_VALUES | flags);
    return TN_OK;
}

static void copy_crb(tn_bytes record, tn_text *out)
{
    tn_text_add_u32le(out, (uint32_t)record.size);
    tn_text_add(out, record.data, record.size);
}

/* ---- blocks ---- */

typedef int lz4_compress(const char *from, char *to, int size, int room);

static void add_values(tn_bytes *row, uint32_t n, bool there, tn_text *out)
{
    for (uint32_t i = 0; i < n; i++) {
        tn_text_add_f32le(out, there ? tn_get_f32(row) : 1);
    }
}

/* Only add_number makes indices of more than 4 bytes here: a field and nothing below. */
static void shorten(tn_text *indices)
{
    for (size_t i = 0; i < indices->size / sizeof(uint64_t); i++) {
        const uint64_t index = tn_load_u64(indices->data + i * sizeof index);
        tn_store_u32(indices->data + i * sizeof(uint32_t),
                     (uint32_t)(index > UINT32_MAX ? index >> 32 : index));
    }
    indices->size /= 2;
}

static uint32_t sizes_in(uint32_t head)
{
    if ((head & ROW_EITHER) != 0) {
        return EITHER;
    }
    return (head & TN_CRB_SHORT) != 0 ? SHORT : LONG;
}

/* Rows as arrays, until a block is full or the next has indices of another size: how many. */
static uint32_t split(tn_bytes *rows, tn_text array[TN_CRB_ARRAYS], uint32_t *index_bytes)
{
    const size_t size = rows->size;
    uint32_t n = 0;
    uint32_t sizes = EITHER;
    uint64_t offset = 0;
    for (; rows->size > 0 && size - rows->size < FULL; n++) {
        TN_ASSERT(rows->size >= TN_CRB_HEAD);
        const uint32_t head = tn_load_u32(rows->data + TN_CRB_HEAD - sizeof head);
        const uint32_t pairs = head & (ROW_EITHER - 1);
        const uint32_t fits = sizes_in(head);
        if ((sizes & fits) == 0) {
            break;
        }
        sizes &= fits;
        (void)tn_get_u32(rows);
        tn_text_add_f32le(&array[TN_CRB_LABEL], tn_get_f32(rows));
        tn_text_add_f32le(&array[TN_CRB_WEIGHT], tn_get_f32(rows));
        (void)tn_get_u32(rows);
        tn_text_add_u64le(&array[TN_CRB_OFFSET], offset);
        const size_t bytes = pairs * sizeof(uint64_t);
        tn_text_add(&array[TN_CRB_INDEX], tn_get(rows, bytes), bytes);
        add_values(rows, pairs, (head & TN_CRB_VALUES) != 0, &array[TN_CRB_VALUE]);
        offset += pairs;
    }
    TN_ASSERT(!rows->failed && n > 0);
    tn_text_add_u64le(&array[TN_CRB_OFFSET], offset);
    if (sizes == SHORT) {
        shorten(&array[TN_CRB_INDEX]);
    }
    *index_bytes = sizes == SHORT ? sizeof(uint32_t) : sizeof(uint64_t);
    return n;
}

/* None of nothing but `absent`, which the reader makes of none. */
static void drop_all(tn_text *floats, float absent)
{
    size_t at = 0;
    for (; at < floats->size; at += sizeof absent) {
        const float x = tn_load_f32(floats->data + at);
        if (x != absent && !(isnan(x) && isnan(absent))) {
            break;
        }
    }
    floats->size = at == floats->size ? 0 : floats->size;
}

/* Adds the size of an LZ4 block, and the block unless it is empty. */
static tn_status add_array(lz4_compress *compress, const tn_text *array, tn_text *out,
                           tn_error *err)
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
    const int packed = compress(array->data, to, size, room);
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
static tn_status make_record(lz4_compress *compress, tn_bytes *rows, tn_text array[TN_CRB_ARRAYS],
                             tn_text *record, tn_error *err)
{
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        tn_text_clear(&array[i]);
    }
    uint32_t index_bytes = 0;
    const size_t before = rows->size;
    const uint32_t n = split(rows, array, &index_bytes);
    if (before - rows->size > ROWS_MAX) {
        return tn_fail(
            err, TN_E_LIMIT,
            "a row is too long for a block of crb: %zu bytes with those before it, at most %d",
            before - rows->size, ROWS_MAX);
    }
    drop_all(&array[TN_CRB_LABEL], NAN);
    drop_all(&array[TN_CRB_VALUE], 1);
    drop_all(&array[TN_CRB_WEIGHT], 1);
    tn_text_clear(record);
    tn_text_add_u32le(record, TN_CRB_BLOCK_MAGIC);
    tn_text_add_u32le(record, index_bytes);
    tn_text_add_u32le(record, n);
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        TN_TRY(add_array(compress, &array[i], record, err));
    }
    return TN_OK;
}

static tn_status pack_crb(tn_text *rows, tn_error *err)
{
    static const tn_library_name name = {"liblz4.so.1", "crb needs the library of lz4, which",
                                         "install liblz4-1"};
    void *library = NULL;
    lz4_compress *compress = NULL;
    TN_TRY(tn_library_load(&library, &name, err));
    TN_TRY(tn_library_find(library, &name, "LZ4_compress_default", &compress, err));
    tn_text array[TN_CRB_ARRAYS] = {{0}};
    tn_text record = {0};
    tn_text out = {0};
    tn_bytes rest = {rows->data, rows->size, false};
    tn_status status = TN_OK;
    while (status == TN_OK && rest.size > 0) {
        status = make_record(compress, &rest, array, &record, err);
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

extern const tn_write_kind tn_write_kind_crb;
const tn_write_kind tn_write_kind_crb = {
    .name = "crb", .plan = plan_crb, .row = write_crb, .copy = copy_crb, .pack = pack_crb};
