/* resp.c - rows of a dictionary, one by one, as commands SET. */
#include "dict/resp.h"

#include "base/codec/json.h"
#include "base/core/arena.h"
#include "base/math/key.h"
#include "dict/dict_deltas.h"

#include <stdio.h>
#include <string.h>

/* Three words, of which the first is SET. */
#define COMMAND "*3\r\n$3\r\nSET\r\n"

enum { PREFIX = 5 + 8 };

typedef struct stream {
    const tn_dict *d;
    tn_resp_keys keys;
    tn_resp_put *put;
    void *arg;
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

void tn_resp_current(const tn_dict *d, tn_text *out)
{
    static const char key[] = "tnet:current";
    char prefix[PREFIX + 1];
    write_prefix(d, prefix);
    tn_text_adds(out, COMMAND);
    add_word(out, key, sizeof key - 1);
    add_word(out, prefix, PREFIX);
}

static tn_status hand_on(stream *s, tn_error *err)
{
    TN_TRY(tn_text_check(&s->bytes, "commands for Redis", err));
    TN_TRY(s->put(s->arg, &s->bytes, err));
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
    return s->bytes.size >= TN_RESP_PIECE ? hand_on(s, err) : TN_OK;
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
    TN_ASSERT(table < TN_RESP_TABLES_MAX && item->row.at != NULL);
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

tn_status tn_resp_rows(const tn_dict *d, tn_resp_keys keys, tn_resp_put *put, void *arg,
                       tn_error *err)
{
    const tn_dict_header *h = tn_dict_head(d);
    if ((h->flags & TN_DICT_DELTA) != 0) {
        return tn_fail(err, TN_E_CKPT,
                       "a delta is no dictionary for Redis\nhint: export all of it");
    }
    if (h->n_tables > TN_RESP_TABLES_MAX) {
        return tn_fail(err, TN_E_LIMIT, "the dictionary has %u tables, Redis is given at most %d",
                       h->n_tables, TN_RESP_TABLES_MAX);
    }
    stream s = {.d = d, .keys = keys, .put = put, .arg = arg};
    write_prefix(d, s.prefix);
    tn_status status = tn_dict_walk(d, add_row, &s, err);
    status = status == TN_OK ? add_description(&s, err) : status;
    status = status == TN_OK && s.bytes.size > 0 ? hand_on(&s, err) : status;
    tn_text_done(&s.bytes);
    tn_text_done(&s.key);
    tn_text_done(&s.value);
    return status;
}
