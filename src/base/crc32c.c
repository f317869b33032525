/* crc32c.c - CRC-32C by the CPU's instruction or by slicing-by-8 (Kounavis and Berry 2005).
 *
 * Table k takes a byte to the crc of that byte with k zero bytes behind it. The
 * map is linear over GF(2), so an entry is the xor of what its single bits give:
 * eight constants make a table, and the compiler fills all of them.
 */
#include "base/crc32c.h"

#include "base/bytes.h"

#include <string.h>

enum { WORD = 8 };

#define BIT(b, i, value) (((b) >> (i)&1U) != 0 ? (value) : 0U)

/* Entry b of a table whose entries 1, 2, 4 .. 128 are c0 .. c7. */
#define ENTRY(b, c0, c1, c2, c3, c4, c5, c6, c7)                                                   \
    (BIT(b, 0, c0) ^ BIT(b, 1, c1) ^ BIT(b, 2, c2) ^ BIT(b, 3, c3) ^ BIT(b, 4, c4) ^               \
     BIT(b, 5, c5) ^ BIT(b, 6, c6) ^ BIT(b, 7, c7))

#define ENTRIES4(b, ...)                                                                           \
    ENTRY(b, __VA_ARGS__), ENTRY((b) + 1U, __VA_ARGS__), ENTRY((b) + 2U, __VA_ARGS__),             \
        ENTRY((b) + 3U, __VA_ARGS__)
#define ENTRIES16(b, ...)                                                                          \
    ENTRIES4(b, __VA_ARGS__), ENTRIES4((b) + 4U, __VA_ARGS__), ENTRIES4((b) + 8U, __VA_ARGS__),    \
        ENTRIES4((b) + 12U, __VA_ARGS__)
#define ENTRIES64(b, ...)                                                                          \
    ENTRIES16(b, __VA_ARGS__), ENTRIES16((b) + 16U, __VA_ARGS__),                                  \
        ENTRIES16((b) + 32U, __VA_ARGS__), ENTRIES16((b) + 48U, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        ENTRIES64(0U, __VA_ARGS__), ENTRIES64(64U, __VA_ARGS__), ENTRIES64(128U, __VA_ARGS__),     \
            ENTRIES64(192U, __VA_ARGS__)                                                           \
    }

static const uint32_t table[WORD][256] = {
    TABLE(0xf26b8303U, 0xe13b70f7U, 0xc79a971fU, 0x8ad958cfU, 0x105ec76fU, 0x20bd8edeU, 0x417b1dbcU,
          0x82f63b78U),
    TABLE(0x13a29877U, 0x274530eeU, 0x4e8a61dcU, 0x9d14c3b8U, 0x3fc5f181U, 0x7f8be302U, 0xff17c604U,
          0xfbc3faf9U),
    TABLE(0xa541927eU, 0x4f6f520dU, 0x9edea41aU, 0x38513ec5U, 0x70a27d8aU, 0xe144fb14U, 0xc76580d9U,
          0x8b277743U),
    TABLE(0xdd45aab8U, 0xbf672381U, 0x7b2231f3U, 0xf64463e6U, 0xe964b13dU, 0xd725148bU, 0xaba65fe7U,
          0x52a0c93fU),
    TABLE(0x38116facU, 0x7022df58U, 0xe045beb0U, 0xc5670b91U, 0x8f2261d3U, 0x1ba8b557U, 0x37516aaeU,
          0x6ea2d55cU),
    TABLE(0xef306b19U, 0xdb8ca0c3U, 0xb2f53777U, 0x6006181fU, 0xc00c303eU, 0x85f4168dU, 0x0e045bebU,
          0x1c08b7d6U),
    TABLE(0x68032cc8U, 0xd0065990U, 0xa5e0c5d1U, 0x4e2dfd53U, 0x9c5bfaa6U, 0x3d5b83bdU, 0x7ab7077aU,
          0xf56e0ef4U),
    TABLE(0x493c7d27U, 0x9278fa4eU, 0x211d826dU, 0x423b04daU, 0x847609b4U, 0x0d006599U, 0x1a00cb32U,
          0x34019664U),
};

static uint32_t step_byte(uint32_t state, uint8_t byte)
{
    return table[0][(state ^ byte) & 0xff] ^ (state >> 8);
}

uint32_t tn_crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    tn_bytes in = {data, size, false};
    uint32_t state = ~crc;
    while (in.size >= WORD) {
        uint64_t word = tn_get_u64(&in) ^ state;
        state = 0;
        for (int i = 0; i < WORD; i++) {
            state ^= table[WORD - 1 - i][(word >> (8 * i)) & 0xff];
        }
    }
    while (in.size > 0) {
        state = step_byte(state, tn_get_u8(&in));
    }
    return ~state;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc_by_cpu(uint32_t crc, const char *data,
                                                             size_t size)
{
    uint64_t state = ~crc;
    size_t at = 0;
    for (; size - at >= WORD; at += WORD) {
        state = _mm_crc32_u64(state, tn_load_u64(data + at));
    }
    for (; at < size; at++) {
        state = _mm_crc32_u8((uint32_t)state, tn_load_u8(data + at));
    }
    return ~(uint32_t)state;
}

uint32_t tn_crc32c(uint32_t crc, const void *data, size_t size)
{
    return __builtin_cpu_supports("sse4.2") ? crc_by_cpu(crc, data, size)
                                            : tn_crc32c_portable(crc, data, size);
}

#else

uint32_t tn_crc32c(uint32_t crc, const void *data, size_t size)
{
    return tn_crc32c_portable(crc, data, size);
}

#endif
