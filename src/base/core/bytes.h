/* bytes.h - reading and writing little-endian bytes without ever leaving the buffer.
 *
 * A reader is a window that shrinks from the front; reading past its end sets `failed` and yields
 * zeros, so that a header is read field by field and checked once:
 *
 *     tn_bytes in = {data, size};
 *     uint64_t magic = tn_get_u64(&in);
 *     uint32_t n = tn_get_u32(&in);
 *     if (in.failed) ...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A run of bytes that somebody else owns. */
typedef struct tn_bytes {
    const char *data;
    size_t size;
    bool failed; /* something was read past the end */
} tn_bytes;

/* Returns the next `size` bytes, or NULL (and sets `failed`) when there are fewer. */
static inline const char *tn_get(tn_bytes *in, size_t size)
{
    if (in->failed || size > in->size) {
        in->failed = true;
        return NULL;
    }
    const char *at = in->data;
    in->data += size;
    in->size -= size;
    return at;
}

#define TN_DEFINE_GET(name, type)                                                                  \
    static inline type tn_get_##name(tn_bytes *in)                                                 \
    {                                                                                              \
        type value = 0;                                                                            \
        const char *at = tn_get(in, sizeof value);                                                 \
        if (at != NULL) {                                                                          \
            memcpy(&value, at, sizeof value);                                                      \
        }                                                                                          \
        return value;                                                                              \
    }                                                                                              \
    static inline type tn_load_##name(const void *at)                                              \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return value;                                                                              \
    }                                                                                              \
    static inline void tn_store_##name(void *at, type value)                                       \
    {                                                                                              \
        memcpy(at, &value, sizeof value);                                                          \
    }

TN_DEFINE_GET(u8, uint8_t)
TN_DEFINE_GET(u16, uint16_t)
TN_DEFINE_GET(u32, uint32_t)
TN_DEFINE_GET(u64, uint64_t)
TN_DEFINE_GET(f32, float)
TN_DEFINE_GET(f64, double)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "TNet's files are little-endian and so are the machines it runs on"
#endif
