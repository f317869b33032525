/* tffeature.h - the values of one tf.train.Feature, in order.
 *
 *     Feature     oneof { BytesList 1 | FloatList 2 | Int64List 3 }       list: repeated value = 1
 *
 * Packed or not, mixed, in several pieces: all are taken. The last kind wins; pieces of the same
 * kind, one behind the other, are one list.
 */
#ifndef TN_IO_TFFEATURE_H
#define TN_IO_TFFEATURE_H

#include "base/codec/proto.h"

typedef enum tn_tf_kind { TN_TF_NONE, TN_TF_BYTES, TN_TF_FLOAT, TN_TF_INT64 } tn_tf_kind;

typedef struct tn_tf_value {
    int64_t integer;
    float real;
    tn_bytes bytes;
} tn_tf_value;

/* Where a walk stands. */
typedef struct tn_tf_walk {
    tn_tf_kind kind;  /* TN_TF_NONE: the feature is missing */
    bool failed;      /* the message is damaged */
    tn_bytes feature; /* fields to come */
    tn_bytes list;    /* of the list that is being walked */
    tn_bytes packed;  /* of the run of numbers that is being walked */
} tn_tf_walk;

tn_tf_walk tn_tf_begin(tn_bytes feature);

/* A feature as writers make it: one list of int64s, in one run of less than 124 bytes. */
static inline bool tn_tf_is_one_run(tn_bytes feature, tn_bytes *run)
{
    const unsigned char *p = (const unsigned char *)feature.data;
    size_t size = feature.size;
    if (size < 4 || size >= 128 || p[0] != TN_PROTO_TAG(TN_TF_INT64, TN_WIRE_BYTES) ||
        p[1] != size - 2 || p[2] != TN_PROTO_TAG(1, TN_WIRE_BYTES) || p[3] != size - 4) {
        return false;
    }
    *run = (tn_bytes){feature.data + 4, size - 4, false};
    return true;
}

/* The slow part of tn_tf_next: finds the next value or run of numbers. */
bool tn_tf_next_piece(tn_tf_walk *w, tn_tf_value *out);

/* The next value, in the member that the kind names; false: none is left, or w->failed. */
static inline bool tn_tf_next(tn_tf_walk *w, tn_tf_value *out)
{
    if (w->packed.size == 0) {
        return tn_tf_next_piece(w, out);
    }
    if (w->kind == TN_TF_INT64) {
        out->integer = (int64_t)tn_proto_varint(&w->packed);
    } else {
        out->real = tn_get_f32(&w->packed);
    }
    w->failed = w->packed.failed;
    return !w->failed;
}

#endif
