/* proto.c - the parts of the protobuf wire format that are not inline. */
#include "base/codec/proto.h"

#include "base/core/error.h"

#include <string.h>

enum { VARINT_MAX = 10, NUMBER_MAX = (1 << 29) - 1 };

uint64_t tn_proto_varint_bytewise(tn_bytes *in)
{
    uint64_t value = 0;
    for (int i = 0; i < VARINT_MAX; i++) {
        uint8_t byte = tn_get_u8(in);
        if (in->failed || (i == VARINT_MAX - 1 && byte > 1)) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            return value;
        }
    }
    in->failed = true;
    return 0;
}

/* Writes the bytes of the shortest varint of `value`; returns how many. */
static size_t put_varint(char out[VARINT_MAX], uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) {
        out[n++] = (char)(value | 0x80);
    }
    out[n++] = (char)value;
    return n;
}

void tn_proto_add_varint(tn_text *t, uint64_t value)
{
    char bytes[VARINT_MAX];
    tn_text_add(t, bytes, put_varint(bytes, value));
}

static void add_tag(tn_text *t, uint32_t number, uint32_t wire)
{
    TN_ASSERT(number >= 1 && number <= NUMBER_MAX);
    tn_proto_add_varint(t, TN_PROTO_TAG(number, wire));
}

void tn_proto_add_u64(tn_text *t, uint32_t number, uint64_t value)
{
    add_tag(t, number, TN_WIRE_VARINT);
    tn_proto_add_varint(t, value);
}

void tn_proto_add_f64(tn_text *t, uint32_t number, double value)
{
    add_tag(t, number, TN_WIRE_FIXED64);
    tn_text_add(t, &value, sizeof value);
}

void tn_proto_add_bytes(tn_text *t, uint32_t number, const void *bytes, size_t size)
{
    add_tag(t, number, TN_WIRE_BYTES);
    tn_proto_add_varint(t, size);
    tn_text_add(t, bytes, size);
}

size_t tn_proto_begin(tn_text *t, uint32_t number)
{
    add_tag(t, number, TN_WIRE_BYTES);
    return t->size;
}

void tn_proto_end(tn_text *t, size_t begin)
{
    if (t->failed) {
        return;
    }
    TN_ASSERT(begin <= t->size);
    size_t size = t->size - begin;
    char length[VARINT_MAX];
    size_t n = put_varint(length, size);
    if (tn_text_grow(t, n) != NULL) { /* the length precedes the message */
        memmove(t->data + begin + n, t->data + begin, size);
        memcpy(t->data + begin, length, n);
    }
}
