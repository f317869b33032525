/* resp.c - dict.resp of an export: its dictionary as commands for Redis, in the protocol RESP.
 *
 *     SET tnet:00010203:user:1 <value>     a row: prefix, group, sign in decimal
 *     SET tnet:00010203:<8 bytes> <value>  or prefix and table key, little-endian, whatever bytes
 *     SET tnet:00010203:meta <JSON>        how keys are made, and rows of a table read
 *     SET tnet:current tnet:00010203       last, so that readers switch at once
 *
 * A value is one byte, the number of its table, and the row as it is. A word follows its length:
 * "*3\r\n$3\r\nSET\r\n$20\r\ntnet:00010203:user:1\r\n$13\r\n..\r\n".
 * `redis-cli --pipe` sends the file as it is.
 */
#include "base/codec/json.h"
#include "base/core/arena.h"
#include "base/file/file.h"
#include "base/math/key.h"
#include "dict/dict.h"
#include "dict/dict_deltas.h"
#include "train/config/export_files.h"
#include "train/config/run.h"

#include <stdio.h>
#include <string.h>

/* Three words, of which the first is SET. */
#define COMMAND "*3\r\n$3\r\nSET\r\n"

enum { PREFIX = 5 + 8, TABLES_MAX = 256, PIECE = 1 << 16 };

typedef struct stream {
    const tn_dict *d;
    tn_resp_keys keys;
    tn_file *file;
    char prefix[PREFIX + 1];
    tn_text bytes, key, value;
} stream;

static void add_word(tn_text *out, const char *data, size_t size)
{
    tn_text_addf(out, "$%zu\r\n", size);
    tn_text_add(out, data, size);
    tn_text_adds(out, "\r\n");
}

/* "tnet:" and the first 8 digits of the model's id. */
static void write_prefix(const tn_dict *d, char out[PREFIX + 1])
{
    char hex[TN_MODEL_HEX];
    tn_dict_hex(tn_dict_head(d)->model_id, hex);
    const int size = snprintf(out, PREFIX + 1, "tnet:%.8s", hex);
    TN_ASSERT(size == PREFIX);
}

static tn_status hand_on(stream *s, tn_error *err)
{
    TN_TRY(tn_text_check(&s->bytes, "commands for Redis", err));
    TN_TRY(tn_file_write(s->file, s->bytes.data, s->bytes.size, err));
    tn_text_clear(&s->bytes);
    return TN_OK;
}

static tn_status add(stream *s, tn_error *err)
{
    TN_TRY(tn_text_check(&s->key, "a key for Redis", err));
    TN_TRY(tn_text_check(&s->value, "a value for Redis", err));
    tn_text_adds(&s->bytes, COMMAND);
    add_word(&s->bytes, s->key.data, s->key.size);
    add_word(&s->bytes, s->value.data, s->value.size);
    return s->bytes.size >= PIECE ? hand_on(s, err) : TN_OK;
}

static tn_status add_row(void *arg, const tn_dict_item *item, tn_error *err)
{
    stream *s = arg;
    const bool text = s->keys == TN_RESP_TEXT;
    if (text && item->group == TN_DICT_NO_GROUP) {
        return tn_fail(
            err, TN_E_CONFIG,
            "the dictionary does not store groups, which keys of Redis name\nhint: export "
            "with export.check_groups: true, or export.redis_keys: key8");
    }
    const uint32_t table = tn_dict_table_number(s->d, item->row.table);
    TN_ASSERT(table < TABLES_MAX && item->row.at != NULL);
    tn_text_clear(&s->key);
    tn_text_clear(&s->value);
    tn_text_addf(&s->key, "%s:", s->prefix);
    if (text) {
        tn_text_addf(&s->key, "%s:", tn_dict_group_name(s->d, item->group));
        tn_text_add_u64(&s->key, tn_sign_of(item->key, tn_dict_salt(s->d, item->group)));
    } else {
        tn_text_add_u64le(&s->key, item->key);
    }
    tn_text_addc(&s->value, (char)table);
    tn_text_add(&s->value, item->row.at, tn_dict_table_at(s->d, table)->stride);
    return add(s, err);
}

static void put_table(tn_text *out, const tn_dict_table_head *t)
{
    tn_json_open(out, '{');
    tn_json_u64(out, "stride", t->stride);
    tn_json_open_key(out, "segments", '[');
    for (uint32_t i = 0; i < t->n_segments; i++) {
        const tn_dict_segment_head *s = &t->segment[i];
        tn_json_open(out, '{');
        tn_json_u64(out, "segment", s->segment);
        tn_json_u64(out, "dim", s->dim);
        tn_json_u64(out, "dtype", s->type);
        tn_json_u64(out, "at", s->offset);
        if (s->scale == TN_DICT_NO_SCALE) {
            tn_json_raw(out, "scale", "null");
        } else {
            tn_json_u64(out, "scale", s->scale);
        }
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

static tn_status describe(const stream *s, tn_arena *arena, tn_text *out, tn_error *err)
{
    const tn_dict *d = s->d;
    char hex[TN_MODEL_HEX];
    tn_bytes names = {0};
    TN_TRY(tn_dict_segment_names(d, arena, &names, err));
    tn_dict_hex(tn_dict_head(d)->model_id, hex);
    tn_json_open(out, '{');
    tn_json_str(out, "model_id", hex);
    if (s->keys == TN_RESP_KEY8) {
        tn_json_str(out, "keys", "key8");
    }
    tn_text_adds(out, ",\"segments\":");
    tn_text_add(out, names.data, names.size);
    tn_json_open_key(out, "groups", '[');
    for (uint32_t g = 0; g < tn_dict_head(d)->n_groups; g++) {
        tn_json_open(out, '{');
        tn_json_str(out, "name", tn_dict_group_name(d, g));
        tn_json_hex64(out, "salt", tn_dict_salt(d, g));
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
    tn_json_open_key(out, "tables", '[');
    for (uint32_t i = 0; i < tn_dict_head(d)->n_tables; i++) {
        put_table(out, tn_dict_table_at(d, i));
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    return TN_OK;
}

static tn_status add_description(stream *s, tn_error *err)
{
    tn_arena *arena = NULL;
    TN_TRY(tn_arena_open(&arena, 1 << 12, "a dictionary", err));
    tn_text_clear(&s->key);
    tn_text_clear(&s->value);
    tn_text_addf(&s->key, "%s:meta", s->prefix);
    tn_status status = describe(s, arena, &s->value, err);
    tn_arena_free(arena);
    return status == TN_OK ? add(s, err) : status;
}

static tn_status add_current(stream *s, tn_error *err)
{
    tn_text_clear(&s->key);
    tn_text_clear(&s->value);
    tn_text_adds(&s->key, "tnet:current");
    tn_text_adds(&s->value, s->prefix);
    TN_TRY(add(s, err));
    return s->bytes.size > 0 ? hand_on(s, err) : TN_OK;
}

static tn_status write_resp(const tn_dict *d, const tn_export_opts *opts, tn_file *out,
                            tn_error *err)
{
    const tn_dict_header *h = tn_dict_head(d);
    if ((h->flags & TN_DICT_DELTA) != 0) {
        return tn_fail(err, TN_E_CKPT,
                       "a delta is no dictionary for Redis\nhint: export all of it");
    }
    if (h->n_tables > TABLES_MAX) {
        return tn_fail(err, TN_E_LIMIT, "the dictionary has %u tables, Redis is given at most %d",
                       h->n_tables, TABLES_MAX);
    }
    stream s = {.d = d, .keys = (tn_resp_keys)opts->redis_keys, .file = out};
    write_prefix(d, s.prefix);
    tn_status status = tn_dict_walk(d, add_row, &s, err);
    status = status == TN_OK ? add_description(&s, err) : status;
    status = status == TN_OK ? add_current(&s, err) : status;
    tn_text_done(&s.bytes);
    tn_text_done(&s.key);
    tn_text_done(&s.value);
    return status;
}

extern const tn_export_file tn_export_file_resp;
const tn_export_file tn_export_file_resp = {
    .word = "resp", .name = "dict.resp", .of_rows = write_resp};
