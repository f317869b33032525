/* tffeature.c - the values of one tf.train.Feature. */
#include "io/format/tffeature.h"

enum { VALUE = 1 };

static uint32_t tag_of(tn_tf_kind kind)
{
    return TN_PROTO_TAG(kind, TN_WIRE_BYTES); /* the kinds are the field numbers */
}

static bool is_kind(uint32_t tag)
{
    return tag == tag_of(TN_TF_BYTES) || tag == tag_of(TN_TF_FLOAT) || tag == tag_of(TN_TF_INT64);
}

tn_tf_walk tn_tf_begin(tn_bytes feature)
{
    tn_tf_walk w = {.kind = TN_TF_NONE, .feature = feature};
    tn_bytes rest = feature;
    tn_proto_field f;
    for (;;) {
        tn_bytes here = rest;
        if (!tn_proto_next(&rest, &f)) {
            break;
        }
        if (is_kind(f.tag) && f.tag != tag_of(w.kind)) { /* another kind: forget the one before */
            w.kind = (tn_tf_kind)(f.tag >> 3);
            w.feature = here;
        }
    }
    w.failed = rest.failed;
    return w;
}

/* One field of a list. True: *out is a value; else a run was found, or something to pass over. */
static bool take_field(tn_tf_walk *w, const tn_proto_field *f, tn_tf_value *out)
{
    if (f->tag == TN_PROTO_TAG(VALUE, TN_WIRE_BYTES)) {
        if (w->kind == TN_TF_BYTES) {
            out->bytes = f->bytes;
            return true;
        }
        w->packed = f->bytes;
        w->failed = w->kind == TN_TF_FLOAT && f->bytes.size % sizeof(float) != 0;
        return false;
    }
    if (w->kind == TN_TF_INT64 && f->tag == TN_PROTO_TAG(VALUE, TN_WIRE_VARINT)) {
        out->integer = (int64_t)f->value;
        return true;
    }
    if (w->kind == TN_TF_FLOAT && f->tag == TN_PROTO_TAG(VALUE, TN_WIRE_FIXED32)) {
        uint32_t bits = (uint32_t)f->value;
        out->real = tn_load_f32(&bits);
        return true;
    }
    return false;
}

bool tn_tf_next_piece(tn_tf_walk *w, tn_tf_value *out)
{
    tn_proto_field f;
    while (!w->failed) {
        if (w->packed.size > 0) {
            return tn_tf_next(w, out);
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
