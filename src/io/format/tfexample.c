/* tfexample.c - tf.Example messages to rows. */
#include "io/format/tfexample.h"

#include "base/core/number.h"
#include "io/format/tfslot.h"
#include "io/schema/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY = 1, VALUE = 2 };

static inline bool is_name(const tn_columns *columns, uint32_t name, tn_bytes key)
{
    const char *want = columns->name[name];
    if (columns->name_size[name] != key.size) {
        return false;
    }
    for (size_t i = 0; i < key.size; i++) { /* most are short */
        if (want[i] != key.data[i]) {
            return false;
        }
    }
    return true;
}

static uint32_t find_name(tn_tf_record *t, tn_bytes key)
{
    const tn_columns *columns = t->schema->columns;
    uint32_t *guess = t->n_entries < t->n_guesses ? &t->guess[t->n_entries] : NULL;
    t->n_entries++;
    if (guess != NULL && is_name(columns, *guess, key)) {
        return *guess;
    }
    uint32_t name = tn_columns_find(columns, key.data, key.size);
    if (guess != NULL && name != TN_NOWHERE) {
        *guess = name;
    }
    return name;
}

/* An entry as writers make them, key and value each shorter than 128 bytes. False: any other. */
static inline bool is_plain_entry(tn_bytes entry, tn_bytes *key, tn_bytes *value)
{
    const unsigned char *p = (const unsigned char *)entry.data;
    if (entry.size < 4 || p[0] != TN_PROTO_TAG(KEY, TN_WIRE_BYTES) || p[1] >= 128 ||
        entry.size < 4U + p[1]) {
        return false;
    }
    const unsigned char *v = p + 2 + p[1];
    size_t rest = entry.size - 4U - p[1];
    if (v[0] != TN_PROTO_TAG(VALUE, TN_WIRE_BYTES) || v[1] >= 128 || v[1] != rest) {
        return false;
    }
    *key = (tn_bytes){entry.data + 2, p[1], false};
    *value = (tn_bytes){(const char *)v + 2, rest, false};
    return true;
}

/* One entry of a map: a key and its value, in any order. False: damaged. */
static bool see_entry(tn_tf_record *t, tn_bytes entry, bool list)
{
    tn_bytes key = {"", 0, false};
    tn_bytes value = {"", 0, false};
    tn_proto_field f;
    if (is_plain_entry(entry, &key, &value)) {
        entry.size = 0;
    }
    while (tn_proto_next(&entry, &f)) {
        if (f.tag == TN_PROTO_TAG(KEY, TN_WIRE_BYTES)) {
            key = f.bytes;
        } else if (f.tag == TN_PROTO_TAG(VALUE, TN_WIRE_BYTES)) {
            value = f.bytes;
        }
    }
    uint32_t name = find_name(t, key);
    if (name != TN_NOWHERE) {
        tn_span *span = &t->span[name];
        t->rows->duplicate_key += span->found;
        *span = (tn_span){
            .text = value.data, .size = (uint32_t)value.size, .quoted = list, .found = true};
    }
    return !entry.failed;
}

static bool see_map(tn_tf_record *t, tn_bytes map, bool list)
{
    tn_proto_field f;
    for (;;) {
        const unsigned char *p = (const unsigned char *)map.data;
        if (map.size >= 2 && p[0] == TN_PROTO_TAG(1, TN_WIRE_BYTES) && p[1] < 128 &&
            p[1] + 2U <= map.size) { /* nearly all of them */
            tn_bytes entry = {map.data + 2, p[1], false};
            map.data += 2U + p[1];
            map.size -= 2U + p[1];
            if (!see_entry(t, entry, list)) {
                return false;
            }
            continue;
        }
        if (!tn_proto_next(&map, &f)) {
            break;
        }
        if (f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES) && !see_entry(t, f.bytes, list)) {
            return false;
        }
    }
    return !map.failed;
}

static bool see_message(tn_tf_record *t)
{
    tn_bytes message = t->record;
    tn_proto_field f;
    while (tn_proto_next(&message, &f)) {
        bool features = f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES);
        bool lists = f.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES);
        if ((features || lists) && !see_map(t, f.bytes, lists)) {
            return false;
        }
    }
    return !message.failed;
}

/* The one value of a feature that only the row reads; TN_TF_NONE in *kind: there is none. */
static tn_status one_value(const tn_tf_record *t, uint32_t name, tn_tf_kind *kind, tn_tf_value *out,
                           tn_error *err)
{
    *kind = TN_TF_NONE;
    if (name == TN_NOWHERE || !t->span[name].found || t->span[name].quoted) {
        return TN_OK;
    }
    tn_tf_walk walk = tn_tf_begin(tn_tf_bytes_of(&t->span[name]));
    tn_tf_value more;
    bool some = !walk.failed && tn_tf_next(&walk, out);
    bool several = some && tn_tf_next(&walk, &more);
    if (walk.failed) {
        return tn_tf_damaged(t, err);
    }
    if (several) {
        return tn_place_fail(t->place, t->record, NULL, err, "more than one value in feature '%s'",
                             t->schema->columns->name[name]);
    }
    *kind = some ? walk.kind : TN_TF_NONE;
    return TN_OK;
}

static tn_status take_label(const tn_tf_record *t, tn_error *err)
{
    uint32_t name = t->schema->columns->label;
    tn_tf_kind kind = TN_TF_NONE;
    tn_tf_value value = {.integer = 0};
    if (name == TN_NOWHERE) {
        return TN_OK;
    }
    TN_TRY(one_value(t, name, &kind, &value, err));
    if (kind == TN_TF_NONE) {
        return tn_place_fail(t->place, t->record, NULL, err, "there is no feature '%s'",
                             t->schema->columns->name[name]);
    }
    if (kind == TN_TF_BYTES && t->schema->label->n_values == 0) {
        return tn_tf_unsuited(t, name, kind, "a float or an int64", err);
    }
    double y = kind == TN_TF_FLOAT ? (double)value.real : (double)value.integer;
    tn_fault fault = kind == TN_TF_BYTES
                         ? tn_rows_label(t->rows, value.bytes.data, value.bytes.size)
                         : tn_rows_label_number(t->rows, y);
    if (fault == TN_FAULT_NONE) {
        return TN_OK;
    }
    char text[TN_NUMBER_TEXT_MAX];
    tn_bytes number = {text, tn_write_f64(text, y), false};
    return tn_place_fault(t->place, t->record, kind == TN_TF_BYTES ? value.bytes : number, fault,
                          err);
}

static tn_status take_weight(const tn_tf_record *t, tn_error *err)
{
    uint32_t name = t->schema->columns->weight;
    tn_tf_kind kind = TN_TF_NONE;
    tn_tf_value value = {.integer = 0};
    TN_TRY(one_value(t, name, &kind, &value, err));
    if (kind == TN_TF_NONE) {
        return TN_OK;
    }
    if (kind == TN_TF_BYTES) {
        return tn_tf_unsuited(t, name, kind, "a float", err);
    }
    double w = kind == TN_TF_FLOAT ? (double)value.real : (double)value.integer;
    tn_fault fault = tn_rows_weight_number(t->rows, w);
    return fault == TN_FAULT_NONE ? TN_OK
                                  : tn_tf_refused(t, t->schema->columns->name[name], fault, err);
}

static tn_status take_group(const tn_tf_record *t, tn_error *err)
{
    uint32_t name = t->schema->columns->group;
    tn_tf_kind kind = TN_TF_NONE;
    tn_tf_value value = {.integer = 0};
    TN_TRY(one_value(t, name, &kind, &value, err));
    if (kind == TN_TF_FLOAT) {
        return tn_tf_unsuited(t, name, kind, "an int64 or bytes", err);
    }
    if (kind == TN_TF_INT64) {
        tn_rows_group(t->rows, (uint64_t)value.integer);
    } else if (kind == TN_TF_BYTES) {
        tn_rows_group_text(t->rows, value.bytes.data, value.bytes.size);
    }
    return TN_OK;
}

static tn_status take_id(const tn_tf_record *t, tn_error *err)
{
    uint32_t name = t->schema->columns->record_id;
    tn_tf_kind kind = TN_TF_NONE;
    tn_tf_value value = {.integer = 0};
    tn_fault fault = TN_FAULT_NONE;
    TN_TRY(one_value(t, name, &kind, &value, err));
    if (kind == TN_TF_FLOAT) {
        return tn_tf_unsuited(t, name, kind, "bytes or an int64", err);
    }
    if (kind == TN_TF_INT64) {
        char text[32];
        int size = snprintf(text, sizeof text, "%" PRId64, value.integer);
        fault = tn_rows_id(t->rows, text, (size_t)size);
    } else if (kind == TN_TF_BYTES) {
        fault = tn_rows_id(t->rows, value.bytes.data, value.bytes.size);
    }
    return fault == TN_FAULT_NONE ? TN_OK : tn_tf_refused(t, "record_id", fault, err);
}

static tn_status take_row(const tn_tf_record *t, tn_error *err)
{
    TN_TRY(take_label(t, err));
    TN_TRY(take_weight(t, err));
    TN_TRY(take_group(t, err));
    TN_TRY(take_id(t, err));
    for (uint32_t i = 0; i < t->schema->n_specs; i++) {
        TN_TRY(tn_tf_take_slot(t, i, err));
    }
    const tn_slot_spec *spec = NULL;
    tn_fault fault = tn_rows_end(t->rows, &spec);
    return fault == TN_FAULT_NONE ? TN_OK
                                  : tn_tf_refused(t, spec != NULL ? spec->column : "", fault, err);
}

tn_status tn_tfexample_parse(tn_bytes record, const tn_schema *schema, const tn_place *place,
                             tn_rows *rows, tn_error *err)
{
    if (tn_tfexample_quick(record, schema, rows)) {
        return TN_OK;
    }
    uint32_t n = schema->columns->n;
    uint64_t duplicates = rows->duplicate_key;
    tn_tf_record t = {.schema = schema,
                      .place = place,
                      .record = record,
                      .rows = rows,
                      .span = tn_rows_spans(rows, n),
                      .guess = tn_rows_guesses(rows, n + TN_TF_GUESSES_MORE),
                      .n_guesses = n + TN_TF_GUESSES_MORE};
    if (t.span == NULL || t.guess == NULL) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the features of a record");
    }
    for (uint32_t i = 0; i < n; i++) {
        t.span[i].found = false;
        t.span[i].quoted = false;
    }
    TN_TRY(tn_rows_begin(rows, record.size, err));
    tn_status status = see_message(&t) ? take_row(&t, err) : tn_tf_damaged(&t, err);
    if (status != TN_OK) {
        tn_rows_rollback(rows);
        rows->duplicate_key = duplicates;
    }
    return status;
}
