/* proto.h - the protobuf wire format, read without trust and written without schema.
 *
 * A message is a run of fields, each a tag and a value. The tag is a varint, number * 8 + wire
 * type, and the wire type says how far the value reaches, so what is unknown can be stepped over:
 *
 *     tn_proto_field f;
 *     while (tn_proto_next(&message, &f)) {
 *         switch (f.tag) {
 *         case TN_PROTO_TAG(1, TN_WIRE_BYTES): ... f.bytes is inside message
 *         case TN_PROTO_TAG(3, TN_WIRE_VARINT): ... f.value
 *         }
 *     }
 *     if (message.failed) ...           damaged
 *
 * Refused: field 0, wire types 3, 4, 6 and 7, a varint of more than 64 bits, and a length beyond
 * what encloses it. Reading is inline: a tf.Example is one pass. Pure functions, any thread.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/text.h"

enum { TN_WIRE_VARINT = 0, TN_WIRE_FIXED64 = 1, TN_WIRE_BYTES = 2, TN_WIRE_FIXED32 = 5 };

#define TN_PROTO_TAG(number, wire) ((uint32_t)(number) << 3 | (uint32_t)(wire))

typedef struct tn_proto_field {
    uint32_t tag;   /* TN_PROTO_TAG(number, wire type) */
    uint64_t value; /* a varint or fixed64; a fixed32 with zeros above; a length */
    tn_bytes bytes; /* contents of a TN_WIRE_BYTES field, lent by the message; else empty */
} tn_proto_field;

/* Reads a varint in the slow cases: near the end of `in`, or damaged. */
uint64_t tn_proto_varint_bytewise(tn_bytes *in);

/* Reads the next varint of `in`; 0, and in->failed, when there is none. A negative int64 comes as
 * its two's complement. */
static inline uint64_t tn_proto_varint(tn_bytes *in)
{
    const uint64_t more = UINT64_C(0x8080808080808080);
    if (in->failed || in->size < sizeof(uint64_t) + 2) {
        return tn_proto_varint_bytewise(in);
    }
    uint64_t word = tn_load_u64(in->data);
    uint64_t last = ~word & more; /* its lowest bit ends the varint's last byte */
    uint64_t above = 0;
    size_t size = sizeof word;
    if (last != 0) {
        size = ((size_t)__builtin_ctzll(last) + 1) / 8;
        word &= last ^ (last - 1); /* up to and including that byte */
    } else {
        uint8_t ninth = tn_load_u8(in->data + 8);
        uint8_t tenth = tn_load_u8(in->data + 9);
        size += ninth < 0x80 ? 1 : 2;
        if (ninth >= 0x80 && tenth > 1) {
            return tn_proto_varint_bytewise(in);
        }
        above = (uint64_t)(ninth & 0x7f) << 56 | (ninth >= 0x80 ? (uint64_t)tenth << 63 : 0);
    }
    /* Eight groups of 7 bits move together: 7 + 7, 14 + 14, 28 + 28. */
    word &= ~more;
    word = (word & UINT64_C(0x7f007f007f007f00)) >> 1 | (word & UINT64_C(0x007f007f007f007f));
    word = (word & UINT64_C(0x3fff00003fff0000)) >> 2 | (word & UINT64_C(0x00003fff00003fff));
    word = (word & UINT64_C(0x0fffffff00000000)) >> 4 | (word & UINT64_C(0x000000000fffffff));
    in->data += size;
    in->size -= size;
    return word | above;
}

/* Reads a varint that is likely below 128: a tag or a length. */
static inline uint64_t tn_proto_small(tn_bytes *in)
{
    bool one = !in->failed && in->size > 0 && (uint8_t)*in->data < 0x80;
    return one ? tn_get_u8(in) : tn_proto_varint(in);
}

/* Reads the next field. Returns false at the end, and when in->failed. */
static inline bool tn_proto_next(tn_bytes *in, tn_proto_field *out)
{
    if (in->failed || in->size == 0) {
        return false;
    }
    uint64_t tag = tn_proto_small(in);
    if (tag < 8 || tag > UINT32_MAX) { /* field 0 */
        in->failed = true;
    }
    *out = (tn_proto_field){.tag = (uint32_t)tag};
    if ((tag & 7) == TN_WIRE_BYTES) {
        out->value = tn_proto_small(in);
        out->bytes = (tn_bytes){in->data, out->value, false};
        (void)tn_get(in, out->value);
    } else if ((tag & 7) == TN_WIRE_VARINT) {
        out->value = tn_proto_varint(in);
    } else if ((tag & 7) == TN_WIRE_FIXED64) {
        out->value = tn_get_u64(in);
    } else if ((tag & 7) == TN_WIRE_FIXED32) {
        out->value = tn_get_u32(in);
    } else {
        in->failed = true;
    }
    return !in->failed;
}

/* Writing. A message within a message is written in place and measured afterwards:
 *     size_t at = tn_proto_begin(t, 2);   ... fields ...   tn_proto_end(t, at);  */
void tn_proto_add_varint(tn_text *t, uint64_t value);
void tn_proto_add_u64(tn_text *t, uint32_t number, uint64_t value); /* also int64, bool, enum */
void tn_proto_add_f64(tn_text *t, uint32_t number, double value);
void tn_proto_add_bytes(tn_text *t, uint32_t number, const void *bytes, size_t size);
size_t tn_proto_begin(tn_text *t, uint32_t number);
void tn_proto_end(tn_text *t, size_t begin);
