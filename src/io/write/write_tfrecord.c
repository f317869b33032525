/* write_tfrecord.c - tf.Example in TFRecord framing: every list packed, in one piece, features in
 * the order of the schema.
 *
 *     u64 n   u32 mask(crc of n)   data[n]   u32 mask(crc of data)
 *
 * id and int go into int64 lists (ids by reinterpretation), words and hex digits into bytes lists,
 * numbers, labels and weights into float lists. A slot without values has no entry. A record id is
 * a bytes list, unless a slot reads its column, too.
 */
#include "io/write/write_kind.h"

#include "base/codec/proto.h"
#include "base/core/number.h"
#include "base/math/crc32c.h"
#include "io/schema/schema.h"

enum { FRAME_HEAD = 12 };

/* Field numbers. */
enum { EXAMPLE_FEATURES = 1, FEATURES_ENTRY = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2, LIST_VALUE = 1 };
enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

/* The messages around the items of one feature. */
typedef struct feature {
    size_t entry, value, list, packed;
    bool bytes;
} feature;

static feature begin_feature(tn_text *out, const tn_write_column *column, uint32_t kind)
{
    feature f = {.bytes = kind == BYTES_LIST};
    f.entry = tn_proto_begin(out, FEATURES_ENTRY);
    tn_proto_add_bytes(out, ENTRY_KEY, column->name, column->name_size);
    f.value = tn_proto_begin(out, ENTRY_VALUE);
    f.list = tn_proto_begin(out, kind);
    f.packed = f.bytes ? 0 : tn_proto_begin(out, LIST_VALUE);
    return f;
}

static void end_feature(tn_text *out, const feature *f)
{
    if (!f->bytes) {
        tn_proto_end(out, f->packed);
    }
    tn_proto_end(out, f->list);
    tn_proto_end(out, f->value);
    tn_proto_end(out, f->entry);
}

static void add_float(tn_text *out, const tn_write_column *column, float value)
{
    feature f = begin_feature(out, column, FLOAT_LIST);
    tn_text_add_f32le(out, value);
    end_feature(out, &f);
}

static tn_status read_integer(const tn_writer *w, const tn_slot_spec *spec, const tn_bytes *token,
                              uint64_t *out, tn_error *err)
{
    int64_t value = 0;
    tn_numeral read = TN_NUM_OK;
    if (spec->type == TN_SIGN_ID || w->signs) {
        read = tn_read_u64(token->data, token->size, out);
    } else {
        read = tn_read_i64(token->data, token->size, &value);
        *out = (uint64_t)value;
    }
    if (read != TN_NUM_OK) {
        return tn_fail(err, TN_E_DATA, "'%.*s' of slot '%s' is not a 64-bit integer",
                       (int)(token->size < 80 ? token->size : 80), token->data, spec->name);
    }
    return TN_OK;
}

/* The kind of list that a slot's values go into. */
static uint32_t kind_of(const tn_writer *w, const tn_write_column *column)
{
    const tn_slot_spec *spec = column->spec;
    bool signs = w->signs && spec->as == TN_AS_KEY;
    if (column->source == WRITE_VALUES || (spec->type == TN_SIGN_FLOAT && !signs)) {
        return FLOAT_LIST;
    }
    bool text = spec->type == TN_SIGN_STR || spec->type == TN_SIGN_HEX;
    return text && !signs ? BYTES_LIST : INT64_LIST;
}

static tn_status add_item(const tn_writer *w, const tn_write_column *column, uint32_t kind,
                          const tn_bytes *token, tn_text *out, tn_error *err)
{
    float real = 0;
    uint64_t integer = 0;
    switch (kind) {
    case BYTES_LIST:
        tn_proto_add_bytes(out, LIST_VALUE, token->data, token->size);
        return TN_OK;
    case FLOAT_LIST:
        TN_TRY(tn_write_real(column->spec, token, &real, err));
        tn_text_add_f32le(out, real);
        return TN_OK;
    default:
        TN_TRY(read_integer(w, column->spec, token, &integer, err));
        tn_proto_add_varint(out, integer);
        return TN_OK;
    }
}

/* Returns whether the list of a slot keeps the text of each value. `from` is the slot as it was
 * read, which separates words from their signs. */
static bool keeps_text(const tn_writer *w, const tn_slot_spec *from)
{
    bool text = from->type == TN_SIGN_STR || from->type == TN_SIGN_HEX;
    return from->slot != TN_NOWHERE && from->type != TN_SIGN_FLOAT && !(w->signs && text);
}

/* As the slot that reads the column has it, if one does. */
static tn_status write_id(const tn_writer *w, const tn_write_column *column, const tn_rows *rows,
                          const tn_parsed_row *row, tn_text *out, tn_error *err)
{
    uint32_t kind = BYTES_LIST;
    const tn_bytes id = {.data = rows->text + row->id.at, .size = row->id.size};
    if (id.size == 0) {
        return TN_OK;
    }
    if (column->spec != NULL) {
        kind = kind_of(w, column);
        if (!keeps_text(w, &rows->schema->spec[column->spec - w->schema->spec])) {
            return tn_fail(err, TN_E_CONFIG,
                           "column '%s' is record_id and slot '%s', whose %s do not keep its "
                           "text\nhint: 'record_id=~' leaves the ids out",
                           column->name, column->spec->name, w->signs ? "signs" : "floats");
        }
    }
    feature f = begin_feature(out, column, kind);
    TN_TRY(add_item(w, column, kind, &id, out, err));
    end_feature(out, &f);
    return TN_OK;
}

/* A slot without values leaves no trace. */
static tn_status write_slot(const tn_writer *w, const tn_write_column *column, tn_write_walk *walk,
                            tn_text *out, tn_error *err)
{
    const tn_slot_spec *spec = column->spec;
    uint32_t kind = kind_of(w, column);
    size_t before = out->size;
    uint32_t n = 0;
    feature f = begin_feature(out, column, kind);
    uint32_t i = tn_write_first(walk, spec->slot);
    for (; i < walk->to; i = tn_write_next(walk, spec->slot, i)) {
        char buffer[TN_WRITE_TOKEN_MAX];
        tn_bytes token = {0};
        if (!tn_write_token(w, walk->rows, i, buffer, &token)) {
            continue;
        }
        n++;
        if (column->source == WRITE_VALUES) {
            tn_text_add_f32le(out, walk->rows->entry[i].value);
            continue;
        }
        TN_TRY(tn_write_check_x(spec, walk->rows->entry[i].value, err));
        TN_TRY(add_item(w, column, kind, &token, out, err));
    }
    if (n == 0 && !out->failed) {
        out->size = before;
    } else {
        end_feature(out, &f);
    }
    return TN_OK;
}

/* A number, or those of a vector. */
static tn_status write_numbers(const tn_write_column *column, const tn_rows *rows, uint32_t row,
                               tn_text *out, tn_error *err)
{
    tn_bytes token = {0};
    float value = 0;
    if (!tn_write_numeric(rows, row, column->spec->numeric, &token)) {
        return TN_OK;
    }
    feature f = begin_feature(out, column, FLOAT_LIST);
    for (uint32_t k = 0; k < tn_spec_cols(column->spec); k++) {
        (void)tn_write_numeric(rows, row, column->spec->numeric + k, &token);
        TN_TRY(tn_write_real(column->spec, &token, &value, err));
        tn_text_add_f32le(out, value);
    }
    end_feature(out, &f);
    return TN_OK;
}

static tn_status write_column(const tn_writer *w, const tn_write_column *column, uint32_t row,
                              tn_write_walk *walk, tn_text *out, tn_error *err)
{
    const tn_rows *rows = walk->rows;
    const tn_parsed_row *r = &rows->row[row];
    feature f;
    switch (column->source) {
    case WRITE_LABEL:
        add_float(out, column, r->label);
        return TN_OK;
    case WRITE_WEIGHT:
        add_float(out, column, r->weight);
        return TN_OK;
    case WRITE_ID:
        return write_id(w, column, rows, r, out, err);
    case WRITE_GROUP:
        if (r->group != TN_NO_GROUP) {
            f = begin_feature(out, column, INT64_LIST);
            tn_proto_add_varint(out, r->group);
            end_feature(out, &f);
        }
        return TN_OK;
    case WRITE_NUMERIC:
        return write_numbers(column, rows, row, out, err);
    case WRITE_SLOT:
    case WRITE_VALUES:
        return write_slot(w, column, walk, out, err);
    case WRITE_NOTHING:
        return TN_OK;
    }
    return TN_OK;
}

/* Begins with room for the head at `begin`. */
static void end_frame(tn_text *out, size_t begin)
{
    if (out->failed) {
        return; /* the caller asks the text once, at the end */
    }
    char *head = out->data + begin;
    const uint64_t size = out->size - begin - FRAME_HEAD;
    tn_store_u64(head, size);
    tn_store_u32(head + sizeof size, tn_crc_mask(tn_crc32c(0, head, sizeof size)));
    tn_text_add_u32le(out, tn_crc_mask(tn_crc32c(0, head + FRAME_HEAD, size)));
}

static void copy_tfrecord(tn_bytes record, tn_text *out)
{
    const size_t begin = out->size;
    (void)tn_text_grow(out, FRAME_HEAD);
    tn_text_add(out, record.data, record.size);
    end_frame(out, begin);
}

static tn_status write_tfrecord(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                                tn_error *err)
{
    TN_TRY(tn_write_check_row(w, &rows->row[row], err));
    size_t begin = out->size;
    (void)tn_text_grow(out, FRAME_HEAD);
    size_t features = tn_proto_begin(out, EXAMPLE_FEATURES);
    tn_write_walk walk = tn_write_walk_row(rows, row);
    for (uint32_t i = 0; i < w->n_columns; i++) {
        TN_TRY(write_column(w, &w->column[i], row, &walk, out, err));
    }
    tn_proto_end(out, features);
    end_frame(out, begin);
    return TN_OK;
}

extern const tn_write_kind tn_write_kind_tfrecord;
const tn_write_kind tn_write_kind_tfrecord = {.name = "tfrecord",
                                              .plan = tn_write_plan_columns,
                                              .row = write_tfrecord,
                                              .copy = copy_tfrecord};
