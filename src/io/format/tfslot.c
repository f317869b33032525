/* tfslot.c - from the features of a message to the slots of a row. */
#include "io/format/tfslot.h"

#include "io/schema/columns.h"

#include <string.h>

static const char *const kind_names[] = {"nothing", "bytes", "floats", "int64s"};

tn_status tn_tf_damaged(const tn_tf_record *t, tn_error *err)
{
    return tn_place_fail(t->place, t->record, NULL, err, "damaged tf.Example message");
}

tn_status tn_tf_unsuited(const tn_tf_record *t, uint32_t name, tn_tf_kind kind, const char *wanted,
                         tn_error *err)
{
    return tn_place_fail(t->place, t->record, NULL, err, "feature '%s' holds %s, expected %s",
                         t->schema->columns->name[name], kind_names[kind], wanted);
}

/* What a slot's type wants, and whether a kind suits it. */
static bool suits(const tn_slot_spec *spec, tn_tf_kind kind, const char **wanted)
{
    switch (spec->type) {
    case TN_SIGN_ID:
        *wanted = "int64s or bytes";
        return kind == TN_TF_INT64 || kind == TN_TF_BYTES;
    case TN_SIGN_INT:
        *wanted = "int64s";
        return kind == TN_TF_INT64;
    case TN_SIGN_FLOAT:
        *wanted = "floats";
        return kind == TN_TF_FLOAT || kind == TN_TF_INT64;
    case TN_SIGN_HEX:
    case TN_SIGN_STR:
    default:
        *wanted = "bytes";
        return kind == TN_TF_BYTES;
    }
}

tn_status tn_tf_refused(const tn_tf_record *t, const char *name, tn_fault fault, tn_error *err)
{
    if (fault == TN_FAULT_DUPLICATE || fault == TN_FAULT_TWO_VALUES) {
        return tn_place_fail(
            t->place, t->record, NULL, err, "%s in feature '%s'",
            fault == TN_FAULT_DUPLICATE ? "a value stands twice" : "more than one number", name);
    }
    tn_error why = {0};
    tn_bytes nothing = {name, strlen(name), false};
    const tn_place nowhere = {.source = ""};
    tn_status status = tn_place_fault(&nowhere, nothing, nothing, fault, &why);
    tn_bytes reason = tn_place_reason(why.text);
    return status == TN_E_MEMORY
               ? tn_fail(err, TN_E_MEMORY, "%s", why.text)
               : tn_place_fail(t->place, t->record, NULL, err, "%.*s in feature '%s'",
                               (int)reason.size, reason.data, name);
}

/* The x_j that goes with the next value; *skip: the pair is left out. */
static tn_status next_x(const tn_tf_record *t, const tn_slot_spec *spec, tn_tf_walk *xs, float *x,
                        bool *skip, tn_error *err)
{
    tn_tf_value value = {.integer = 0};
    if (!tn_tf_next(xs, &value)) {
        return xs->failed ? tn_tf_damaged(t, err)
                          : tn_place_fail(t->place, t->record, NULL, err,
                                          "feature '%s' has fewer values than '%s'", spec->values,
                                          spec->column);
    }
    *x = xs->kind == TN_TF_INT64 ? (float)value.integer : value.real;
    *skip = *x - *x != 0;
    return *skip && !spec->non_finite_absent
               ? tn_tf_refused(t, spec->values, TN_FAULT_NOT_FINITE, err)
               : TN_OK;
}

static tn_fault take_value(const tn_tf_record *t, const tn_slot_spec *spec, tn_tf_kind kind,
                           const tn_tf_value *value, float x)
{
    switch (kind) {
    case TN_TF_INT64:
        return tn_rows_integer(t->rows, spec, value->integer, x);
    case TN_TF_FLOAT:
        return tn_rows_real(t->rows, spec, value->real);
    case TN_TF_BYTES:
    case TN_TF_NONE:
    default:
        return tn_rows_token(t->rows, spec, value->bytes.data, value->bytes.size, x);
    }
}

/* All values of one feature; `xs`: the walk over x_j, or NULL. */
static tn_status take_feature(const tn_tf_record *t, uint32_t i, tn_bytes feature, tn_tf_walk *xs,
                              uint32_t *n, tn_error *err)
{
    const tn_slot_spec *spec = &t->schema->spec[i];
    const char *wanted = NULL;
    tn_tf_walk walk = tn_tf_begin(feature);
    tn_tf_value value = {.integer = 0};
    if (walk.failed) {
        return tn_tf_damaged(t, err);
    }
    if (walk.kind == TN_TF_NONE) {
        return TN_OK;
    }
    if (!suits(spec, walk.kind, &wanted)) {
        return tn_tf_unsuited(t, t->schema->columns->spec[i], walk.kind, wanted, err);
    }
    for (*n = 0; tn_tf_next(&walk, &value); ++*n) {
        float x = 1;
        bool skip = false;
        if (xs != NULL) {
            TN_TRY(next_x(t, spec, xs, &x, &skip, err));
        }
        tn_fault fault = skip ? TN_FAULT_NONE : take_value(t, spec, walk.kind, &value, x);
        if (fault != TN_FAULT_NONE) {
            return tn_tf_refused(t, spec->column, fault, err);
        }
    }
    return walk.failed ? tn_tf_damaged(t, err) : TN_OK;
}

/* The same for int64s of a plain slot, as most are. *took: whether this was one. */
static tn_status take_plain(const tn_tf_record *t, const tn_slot_spec *spec, tn_bytes feature,
                            bool *took, tn_error *err)
{
    tn_bytes run;
    *took = spec->plain_key && spec->type <= TN_SIGN_INT && t->rows->token == NULL &&
            tn_tf_is_one_run(feature, &run);
    const char *end = t->record.data + t->record.size;
    while (*took && run.size > 0) { /* varints are fastest far from the end of a window */
        tn_bytes window = {run.data, (size_t)(end - run.data), false};
        uint64_t sign = tn_proto_varint(&window);
        size_t size = (size_t)(window.data - run.data);
        if (window.failed || size > run.size) {
            return tn_tf_damaged(t, err);
        }
        run.data += size;
        run.size -= size;
        if (!tn_rows_put(t->rows, spec, sign, 1)) {
            return tn_tf_refused(t, spec->column, TN_FAULT_VALUES, err);
        }
    }
    return TN_OK;
}

/* A step of a sequence after the other, each of one value. */
static tn_status take_list(const tn_tf_record *t, uint32_t i, tn_bytes list, tn_error *err)
{
    tn_proto_field f;
    while (tn_proto_next(&list, &f)) {
        uint32_t n = 0;
        if (f.tag != TN_PROTO_TAG(1, TN_WIRE_BYTES)) {
            continue;
        }
        TN_TRY(take_feature(t, i, f.bytes, NULL, &n, err));
        if (n > 1) {
            return tn_place_fail(t->place, t->record, NULL, err,
                                 "a step of several values in feature list '%s'",
                                 t->schema->spec[i].column);
        }
    }
    return list.failed ? tn_tf_damaged(t, err) : TN_OK;
}

tn_status tn_tf_take_slot(const tn_tf_record *t, uint32_t i, tn_error *err)
{
    static const tn_bytes nothing = {"", 0, false};
    const tn_slot_spec *spec = &t->schema->spec[i];
    const tn_span *span = &t->span[t->schema->columns->spec[i]];
    uint32_t n = 0;
    if (spec->values == NULL) {
        bool took = false;
        if (!span->found) {
            return TN_OK;
        }
        if (!span->quoted) {
            TN_TRY(take_plain(t, spec, tn_tf_bytes_of(span), &took, err));
        }
        if (took) {
            return TN_OK;
        }
        return span->quoted ? take_list(t, i, tn_tf_bytes_of(span), err)
                            : take_feature(t, i, tn_tf_bytes_of(span), NULL, &n, err);
    }
    const tn_span *x_span = &t->span[t->schema->columns->values[i]];
    tn_tf_walk xs = tn_tf_begin(x_span->found ? tn_tf_bytes_of(x_span) : nothing);
    if (xs.failed || span->quoted || x_span->quoted) {
        return tn_tf_damaged(t, err);
    }
    if (xs.kind == TN_TF_BYTES) {
        return tn_tf_unsuited(t, t->schema->columns->values[i], xs.kind, "floats", err);
    }
    TN_TRY(take_feature(t, i, span->found ? tn_tf_bytes_of(span) : nothing, &xs, &n, err));
    tn_tf_value value = {.integer = 0};
    return tn_tf_next(&xs, &value)
               ? tn_place_fail(t->place, t->record, NULL, err,
                               "feature '%s' has more values than '%s'", spec->values, spec->column)
           : xs.failed ? tn_tf_damaged(t, err)
                       : TN_OK;
}
