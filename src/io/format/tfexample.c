/* tfexample.c - tf.Example messages to rows.
 *
 *     Feature     oneof { BytesList 1 | FloatList 2 | Int64List 3 }       list: repeated value = 1
 *
 * The values of a feature are walked in order. Packed or not, mixed, in several pieces: all are
 * taken. The last kind wins; pieces of the same kind, one after the other, are one list.
 */
#include "io/format/tfexample.h"

#include "base/codec/proto.h"
#include "base/core/number.h"
#include "io/rows/rows_parsing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum feature_kind { KIND_NONE, KIND_BYTES, KIND_FLOAT, KIND_INT64 } feature_kind;

typedef struct feature_value {
    feature_kind kind; /* only by one_value */
    int64_t integer;
    float real;
    tn_bytes bytes;
} feature_value;

/* The position of a walk. */
typedef struct feature_walk {
    feature_kind kind; /* KIND_NONE: the feature is missing */
    bool failed;       /* the message is damaged */
    tn_bytes feature;  /* fields to come */
    tn_bytes list;     /* rest of the list that is being walked */
    tn_bytes packed;   /* rest of the run of numbers that is being walked */
} feature_walk;

/* One message on its way into a row, once its features are found. A span is the Feature of a name;
 * `quoted`: a FeatureList. */
typedef struct example {
    const tn_schema *schema;
    const tn_record_location *place;
    tn_bytes record;
    tn_rows *rows;
    tn_span *span;      /* by name */
    tn_tf_shape *shape; /* n_shapes, by place in the message: the last entry there */
    uint32_t n_shapes;
    uint32_t n_entries; /* so far */
} example;

enum { VALUE = 1 };                  /* number of a field in a list */
enum { MAP_KEY = 1, MAP_VALUE = 2 }; /* the same in an entry */

/* A feature as writers make it: one list of int64s, in one run of less than 124 bytes. */
static inline bool is_one_run(tn_bytes feature, tn_bytes *run)
{
    const unsigned char *p = (const unsigned char *)feature.data;
    size_t size = feature.size;
    if (size < 4 || size >= 128 || p[0] != TN_PROTO_TAG(KIND_INT64, TN_WIRE_BYTES) ||
        p[1] != size - 2 || p[2] != TN_PROTO_TAG(1, TN_WIRE_BYTES) || p[3] != size - 4) {
        return false;
    }
    *run = (tn_bytes){feature.data + 4, size - 4, false};
    return true;
}

/* One field of a list. True: *out is a value; else a run was found, or something to pass over. */
static bool take_field(feature_walk *w, const tn_proto_field *f, feature_value *out)
{
    if (f->tag == TN_PROTO_TAG(VALUE, TN_WIRE_BYTES)) {
        if (w->kind == KIND_BYTES) {
            out->bytes = f->bytes;
            return true;
        }
        w->packed = f->bytes;
        w->failed = w->kind == KIND_FLOAT && f->bytes.size % sizeof(float) != 0;
        return false;
    }
    if (w->kind == KIND_INT64 && f->tag == TN_PROTO_TAG(VALUE, TN_WIRE_VARINT)) {
        out->integer = (int64_t)f->value;
        return true;
    }
    if (w->kind == KIND_FLOAT && f->tag == TN_PROTO_TAG(VALUE, TN_WIRE_FIXED32)) {
        uint32_t bits = (uint32_t)f->value;
        out->real = tn_load_f32(&bits);
        return true;
    }
    return false;
}

static uint32_t tag_of(feature_kind kind)
{
    return TN_PROTO_TAG(kind, TN_WIRE_BYTES); /* the kinds are the field numbers */
}

static inline bool next_in_run(feature_walk *w, feature_value *out)
{
    if (w->kind == KIND_INT64) {
        out->integer = (int64_t)tn_proto_varint(&w->packed);
    } else {
        out->real = tn_get_f32(&w->packed);
    }
    w->failed = w->packed.failed;
    return !w->failed;
}

/* The slow part of next_value: finds the next value or run of numbers. */
static bool next_piece(feature_walk *w, feature_value *out)
{
    tn_proto_field f;
    while (!w->failed) {
        if (w->packed.size > 0) {
            return next_in_run(w, out);
        }
        if (w->list.size > 0) {
            if (tn_proto_next(&w->list, &f) && take_field(w, &f, out)) {
                return true;
            }
            w->failed = w->failed || w->list.failed;
        } else if (w->feature.size > 0) {
            if (tn_proto_next(&w->feature, &f) && f.tag == tag_of(w->kind)) {
                w->list = f.bytes;
            }
            w->failed = w->feature.failed;
        } else {
            return false;
        }
    }
    return false;
}

/* The next value, in the member that the kind names; false: none is left, or w->failed. */
static inline bool next_value(feature_walk *w, feature_value *out)
{
    if (w->packed.size == 0) {
        return next_piece(w, out);
    }
    return next_in_run(w, out);
}

static inline tn_bytes bytes_of(const tn_span *span)
{
    return (tn_bytes){span->text, span->size, false};
}

static bool is_kind(uint32_t tag)
{
    return tag == tag_of(KIND_BYTES) || tag == tag_of(KIND_FLOAT) || tag == tag_of(KIND_INT64);
}

static feature_walk begin_feature(tn_bytes feature)
{
    feature_walk w = {.kind = KIND_NONE, .feature = feature};
    tn_bytes rest = feature;
    tn_proto_field f;
    for (;;) {
        tn_bytes here = rest;
        if (!tn_proto_next(&rest, &f)) {
            break;
        }
        if (is_kind(f.tag) && f.tag != tag_of(w.kind)) { /* another kind: forget the one before */
            w.kind = (feature_kind)(f.tag >> 3);
            w.feature = here;
        }
    }
    w.failed = rest.failed;
    return w;
}

static const char *const kind_names[] = {"nothing", "bytes", "floats", "int64s"};

/* Faults: the message, the kind of a feature, or a value of one. */
static tn_status damaged(const example *t, tn_error *err)
{
    return tn_record_location_fail(t->place, t->record, NULL, err, "damaged tf.Example message");
}

static tn_status unsuited(const example *t, uint32_t name, feature_kind kind, const char *wanted,
                          tn_error *err)
{
    return tn_record_location_fail(t->place, t->record, NULL, err,
                                   "feature '%s' holds %s, expected %s",
                                   t->schema->columns->name[name], kind_names[kind], wanted);
}

/* Whether a kind of feature suits the type of a slot; *wanted: the kinds that do. */
static bool suits(const tn_slot_spec *spec, feature_kind kind, const char **wanted)
{
    switch (spec->type) {
    case TN_SIGN_ID:
        *wanted = "int64s or bytes";
        return kind == KIND_INT64 || kind == KIND_BYTES;
    case TN_SIGN_INT:
        *wanted = "int64s";
        return kind == KIND_INT64;
    case TN_SIGN_FLOAT:
        *wanted = "floats";
        return kind == KIND_FLOAT || kind == KIND_INT64;
    case TN_SIGN_HEX:
    case TN_SIGN_STR:
    default:
        *wanted = "bytes";
        return kind == KIND_BYTES;
    }
}

static tn_status refused(const example *t, const char *name, tn_fault fault, tn_error *err)
{
    if (fault == TN_FAULT_DUPLICATE || fault == TN_FAULT_TWO_VALUES) {
        return tn_record_location_fail(
            t->place, t->record, NULL, err, "%s in feature '%s'",
            fault == TN_FAULT_DUPLICATE ? "a value stands twice" : "more than one number", name);
    }
    tn_error why = {0};
    tn_bytes nothing = {name, strlen(name), false};
    const tn_record_location nowhere = {.source = ""};
    tn_status status = tn_record_location_fault(&nowhere, nothing, nothing, fault, &why);
    tn_bytes reason = tn_record_location_reason(why.text);
    return status == TN_E_MEMORY
               ? tn_fail(err, TN_E_MEMORY, "%s", why.text)
               : tn_record_location_fail(t->place, t->record, NULL, err, "%.*s in feature '%s'",
                                         (int)reason.size, reason.data, name);
}

/* The x_j that goes with the next value; *skip: the pair is left out. */
static tn_status next_x(const example *t, const tn_slot_spec *spec, feature_walk *xs, float *x,
                        bool *skip, tn_error *err)
{
    feature_value value = {.integer = 0};
    if (!next_value(xs, &value)) {
        return xs->failed ? damaged(t, err)
                          : tn_record_location_fail(t->place, t->record, NULL, err,
                                                    "feature '%s' has fewer values than '%s'",
                                                    spec->values, spec->column);
    }
    *x = xs->kind == KIND_INT64 ? (float)value.integer : value.real;
    *skip = *x - *x != 0;
    if (!*skip && !(*x <= TN_X_MAX && *x >= -TN_X_MAX)) {
        return refused(t, spec->values, TN_FAULT_X_RANGE, err);
    }
    return *skip && !spec->non_finite_absent ? refused(t, spec->values, TN_FAULT_NOT_FINITE, err)
                                             : TN_OK;
}

static tn_fault take_value(const example *t, const tn_slot_spec *spec, feature_kind kind,
                           const feature_value *value, float x)
{
    switch (kind) {
    case KIND_INT64:
        return tn_rows_integer(t->rows, spec, value->integer, x);
    case KIND_FLOAT:
        return tn_rows_real(t->rows, spec, (double)value->real);
    case KIND_BYTES:
    case KIND_NONE:
    default:
        return tn_rows_token(t->rows, spec, value->bytes.data, value->bytes.size, x);
    }
}

/* All values of one feature; `xs`: the walk over x_j, or NULL. */
static tn_status take_feature(const example *t, uint32_t i, tn_bytes feature, feature_walk *xs,
                              uint32_t *n, tn_error *err)
{
    const tn_slot_spec *spec = &t->schema->spec[i];
    const char *wanted = NULL;
    feature_walk walk = begin_feature(feature);
    feature_value value = {.integer = 0};
    if (walk.failed) {
        return damaged(t, err);
    }
    if (walk.kind == KIND_NONE) {
        return TN_OK;
    }
    if (!suits(spec, walk.kind, &wanted)) {
        return unsuited(t, t->schema->columns->spec[i], walk.kind, wanted, err);
    }
    for (*n = 0; next_value(&walk, &value); ++*n) {
        float x = 1;
        bool skip = false;
        const bool empty = walk.kind == KIND_BYTES && value.bytes.size == 0;
        if (xs != NULL) {
            TN_TRY(next_x(t, spec, xs, &x, &skip, err));
        }
        const uint32_t before = t->rows->n_entries;
        tn_fault fault = skip || empty ? TN_FAULT_NONE /* as an empty cell is */
                                       : take_value(t, spec, walk.kind, &value, x);
        fault = fault == TN_FAULT_NONE ? tn_rows_keep_place(t->rows, spec, before, x) : fault;
        if (fault != TN_FAULT_NONE) {
            tn_status status = refused(t, spec->column, fault, err);
            tn_record_location_hint(t->schema, spec, value.bytes, fault, err);
            return status;
        }
    }
    return walk.failed ? damaged(t, err) : TN_OK;
}

/* The same for int64s of a plain slot, as most are. *took: whether this was one. */
static tn_status take_plain(const example *t, const tn_slot_spec *spec, tn_bytes feature,
                            bool *took, tn_error *err)
{
    tn_bytes run;
    *took = spec->plain_key && spec->type <= TN_SIGN_INT && t->rows->token == NULL &&
            is_one_run(feature, &run);
    const char *end = t->record.data + t->record.size;
    while (*took && run.size > 0) { /* varints are fastest far from the end of a window */
        tn_bytes window = {run.data, (size_t)(end - run.data), false};
        uint64_t sign = tn_proto_varint(&window);
        size_t size = (size_t)(window.data - run.data);
        if (window.failed || size > run.size) {
            return damaged(t, err);
        }
        run.data += size;
        run.size -= size;
        if (!tn_rows_put(t->rows, spec, sign, 1)) {
            return refused(t, spec->column, TN_FAULT_VALUES, err);
        }
    }
    return TN_OK;
}

/* A step of a sequence after the other, each of one value unless the slot takes more. */
static tn_status take_list(const example *t, uint32_t i, tn_bytes list, tn_error *err)
{
    const tn_slot_spec *spec = &t->schema->spec[i];
    tn_proto_field f;
    while (tn_proto_next(&list, &f)) {
        uint32_t n = 0;
        if (f.tag != TN_PROTO_TAG(1, TN_WIRE_BYTES)) {
            continue;
        }
        TN_TRY(take_feature(t, i, f.bytes, NULL, &n, err));
        if (n > 1 && !spec->step_concat) {
            return tn_record_location_fail(
                t->place, t->record, NULL, err,
                "a step of several values in feature list '%s'\n"
                "hint: 'step_pool: concat' of slot '%s' makes each a value of its own",
                spec->column, spec->name);
        }
    }
    return list.failed ? damaged(t, err) : TN_OK;
}

/* All that spec i reads, into the open row. */
static tn_status take_slot(const example *t, uint32_t i, tn_error *err)
{
    static const tn_bytes nothing = {"", 0, false};
    const tn_slot_spec *spec = &t->schema->spec[i];
    const tn_span *span = &t->span[t->schema->columns->spec[i]];
    uint32_t n = 0;
    if (spec->values == NULL && !span->found) {
        return TN_OK;
    }
    if (spec->values == NULL && span->quoted) {
        return take_list(t, i, bytes_of(span), err);
    }
    if (spec->values == NULL) {
        bool took = false;
        TN_TRY(take_plain(t, spec, bytes_of(span), &took, err));
        return took ? TN_OK : take_feature(t, i, bytes_of(span), NULL, &n, err);
    }
    const tn_span *x_span = &t->span[t->schema->columns->values[i]];
    feature_walk xs = begin_feature(x_span->found ? bytes_of(x_span) : nothing);
    if (xs.failed || span->quoted || x_span->quoted) {
        return damaged(t, err);
    }
    if (xs.kind == KIND_BYTES) {
        return unsuited(t, t->schema->columns->values[i], xs.kind, "floats", err);
    }
    TN_TRY(take_feature(t, i, span->found ? bytes_of(span) : nothing, &xs, &n, err));
    feature_value value = {.integer = 0};
    return next_value(&xs, &value)
               ? tn_record_location_fail(t->place, t->record, NULL, err,
                                         "feature '%s' has more values than '%s'", spec->values,
                                         spec->column)
           : xs.failed ? damaged(t, err)
                       : TN_OK;
}

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

static uint32_t find_name(example *t, tn_bytes key)
{
    const tn_columns *columns = t->schema->columns;
    uint32_t *guess = t->n_entries < t->n_shapes ? &t->shape[t->n_entries].name : NULL;
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
    if (entry.size < 4 || p[0] != TN_PROTO_TAG(MAP_KEY, TN_WIRE_BYTES) || p[1] >= 128 ||
        entry.size < 4U + p[1]) {
        return false;
    }
    const unsigned char *v = p + 2 + p[1];
    size_t rest = entry.size - 4U - p[1];
    if (v[0] != TN_PROTO_TAG(MAP_VALUE, TN_WIRE_BYTES) || v[1] >= 128 || v[1] != rest) {
        return false;
    }
    *key = (tn_bytes){entry.data + 2, p[1], false};
    *value = (tn_bytes){(const char *)v + 2, rest, false};
    return true;
}

/* One entry of a map: a key and its value, in any order. False: damaged. */
static bool see_entry(example *t, tn_bytes entry, bool list)
{
    tn_bytes key = {"", 0, false};
    tn_bytes value = {"", 0, false};
    tn_proto_field f;
    if (is_plain_entry(entry, &key, &value)) {
        entry.size = 0;
    }
    while (tn_proto_next(&entry, &f)) {
        if (f.tag == TN_PROTO_TAG(MAP_KEY, TN_WIRE_BYTES)) {
            key = f.bytes;
        } else if (f.tag == TN_PROTO_TAG(MAP_VALUE, TN_WIRE_BYTES)) {
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

static bool see_map(example *t, tn_bytes map, bool list)
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

static bool see_message(example *t)
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

/* The one value of a feature that only the row reads; out->kind KIND_NONE: there is none. One of
 * kind `unfit` is refused. */
static tn_status one_value(const example *t, uint32_t name, feature_kind unfit, const char *wanted,
                           feature_value *out, tn_error *err)
{
    *out = (feature_value){.kind = KIND_NONE};
    if (name == TN_NOWHERE || !t->span[name].found || t->span[name].quoted) {
        return TN_OK;
    }
    feature_walk walk = begin_feature(bytes_of(&t->span[name]));
    feature_value more;
    bool some = !walk.failed && next_value(&walk, out);
    bool several = some && next_value(&walk, &more);
    if (walk.failed) {
        return damaged(t, err);
    }
    if (several) {
        return tn_record_location_fail(t->place, t->record, NULL, err,
                                       "more than one value in feature '%s'",
                                       t->schema->columns->name[name]);
    }
    out->kind = some ? walk.kind : KIND_NONE;
    return some && out->kind == unfit ? unsuited(t, name, unfit, wanted, err) : TN_OK;
}

static double number_of(const feature_value *value)
{
    return value->kind == KIND_FLOAT ? (double)value->real : (double)value->integer;
}

static tn_status take_label(const example *t, tn_error *err)
{
    uint32_t name = t->schema->columns->label;
    const feature_kind unfit = t->schema->label->n_values == 0 ? KIND_BYTES : KIND_NONE;
    feature_value value;
    if (name == TN_NOWHERE) {
        return TN_OK;
    }
    TN_TRY(one_value(t, name, unfit, "a float, an int64, or bytes that 'label: {values: ..}' names",
                     &value, err));
    if (value.kind == KIND_NONE) {
        return tn_record_location_fail(t->place, t->record, NULL, err, "there is no feature '%s'",
                                       t->schema->columns->name[name]);
    }
    const bool text_label = value.kind == KIND_BYTES;
    double y = number_of(&value);
    tn_fault fault = text_label ? tn_rows_label(t->rows, value.bytes.data, value.bytes.size)
                                : tn_rows_label_number(t->rows, y);
    if (fault == TN_FAULT_NONE) {
        return TN_OK;
    }
    char text[TN_NUMBER_TEXT_MAX];
    tn_bytes number = {text, tn_write_f64(text, y), false};
    const tn_bytes found = text_label ? value.bytes : number;
    tn_status status = tn_record_location_fault(t->place, t->record, found, fault, err);
    tn_record_location_hint(t->schema, NULL, found, fault, err);
    return status;
}

static tn_status take_weight(const example *t, tn_error *err)
{
    uint32_t name = t->schema->columns->weight;
    feature_value value;
    TN_TRY(one_value(t, name, KIND_BYTES, "a float", &value, err));
    if (value.kind == KIND_NONE) {
        return TN_OK;
    }
    tn_fault fault = tn_rows_weight_number(t->rows, number_of(&value));
    return fault == TN_FAULT_NONE ? TN_OK : refused(t, t->schema->columns->name[name], fault, err);
}

static tn_status take_group(const example *t, tn_error *err)
{
    uint32_t name = t->schema->columns->group;
    feature_value value;
    TN_TRY(one_value(t, name, KIND_FLOAT, "an int64 or bytes", &value, err));
    if (value.kind == KIND_INT64) {
        tn_rows_group(t->rows, (uint64_t)value.integer);
    } else if (value.kind == KIND_BYTES) {
        tn_rows_group_text(t->rows, value.bytes.data, value.bytes.size);
    }
    return TN_OK;
}

static tn_status take_id(const example *t, tn_error *err)
{
    uint32_t name = t->schema->columns->record_id;
    feature_value value;
    tn_fault fault = TN_FAULT_NONE;
    TN_TRY(one_value(t, name, KIND_FLOAT, "bytes or an int64", &value, err));
    if (value.kind == KIND_INT64) {
        char text[32];
        int size = snprintf(text, sizeof text, "%" PRId64, value.integer);
        fault = tn_rows_id(t->rows, text, (size_t)size);
    } else if (value.kind == KIND_BYTES) {
        fault = tn_rows_id(t->rows, value.bytes.data, value.bytes.size);
    }
    return fault == TN_FAULT_NONE ? TN_OK : refused(t, "record_id", fault, err);
}

static tn_status take_row(const example *t, tn_error *err)
{
    TN_TRY(take_label(t, err));
    TN_TRY(take_weight(t, err));
    TN_TRY(take_group(t, err));
    TN_TRY(take_id(t, err));
    for (uint32_t i = 0; i < t->schema->n_specs; i++) {
        TN_TRY(take_slot(t, i, err));
    }
    const tn_slot_spec *spec = NULL;
    tn_fault fault = tn_rows_end(t->rows, &spec);
    if (fault == TN_FAULT_UNEVEN || fault == TN_FAULT_WIDTH) {
        return tn_record_broken_rule(t->place, t->record, t->rows, spec, fault, err);
    }
    return fault == TN_FAULT_NONE ? TN_OK
                                  : refused(t, spec != NULL ? spec->column : "", fault, err);
}

tn_status tn_tfexample_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    if (tn_tfexample_parse_fast(record, schema, rows)) {
        return TN_OK;
    }
    uint32_t n = schema->columns->n;
    uint64_t duplicates = rows->duplicate_key;
    example t = {.schema = schema,
                 .place = place,
                 .record = record,
                 .rows = rows,
                 .n_shapes = n + TN_TF_SHAPES_MORE};
    struct rows_private *p = rows->private;
    if (!tn_rows_grow(&p->span, 0, n, sizeof *p->span, &p->spans_max) ||
        !tn_rows_grow(&p->shape, 0, t.n_shapes, sizeof *p->shape, &p->shapes_max)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the features of a record");
    }
    t.span = p->span;
    t.shape = p->shape;
    for (uint32_t i = 0; i < n; i++) {
        t.span[i].found = false;
        t.span[i].quoted = false;
    }
    TN_TRY(tn_rows_begin(rows, record.size, err));
    tn_status status = see_message(&t) ? take_row(&t, err) : damaged(&t, err);
    if (status != TN_OK) {
        tn_rows_rollback(rows);
        rows->duplicate_key = duplicates;
    }
    return status;
}
