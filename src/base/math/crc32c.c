/* crc32c.c - CRC-32C by the CPU's instruction or by slicing-by-8 (Kounavis and Berry 2005).
 *
 * Table k maps a byte to the crc of that byte followed by k zero bytes. The map is
 * linear over GF(2), so an entry is the xor of the entries of its single bits: the
 * compiler makes each table from eight constants.
 */
#include "base/math/crc32c.h"

#include "base/core/bytes.h"
#include "base/core/error.h"

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
        state = table[0][(state ^ tn_get_u8(&in)) & 0xff] ^ (state >> 8);
    }
    return ~state;
}

#if defined(__x86_64__)

#include <immintrin.h>

/* x^(64 (j + 1) - 33) mod the polynomial, reflected, for j = 1, 2 ..: a crc times this constant,
 * fed to the instruction, is the crc moved over j + 1 words (Gopal et al. 2011). */
enum { LANE_WORDS_MAX = 64 };
static const uint32_t behind[2 * LANE_WORDS_MAX] = {
    0x493c7d27U, 0xf20c0dfeU, 0xba4fc28eU, 0x3da6d0cbU, 0xddc0152bU, 0x1c291d04U, 0x9e4addf8U,
    0x740eef02U, 0x39d3b296U, 0x083a6eecU, 0x0715ce53U, 0xc49f4f67U, 0x47db8317U, 0x2ad91c30U,
    0x0d3b6092U, 0x6992cea2U, 0xc96cfdc0U, 0x7e908048U, 0x878a92a7U, 0x1b3d8f29U, 0xdaece73eU,
    0xf1d0f55eU, 0xab7aff2aU, 0xa87ab8a8U, 0x2162d385U, 0x8462d800U, 0x83348832U, 0x71d111a8U,
    0x299847d5U, 0xffd852c6U, 0xb9e02b86U, 0xdcb17aa4U, 0x18b33a4eU, 0xf37c5aeeU, 0xb6dd949bU,
    0x6051d5a2U, 0x78d9ccb7U, 0x18b0d4ffU, 0xbac2fd7bU, 0x21f3d99cU, 0xa60ce07bU, 0x8f158014U,
    0xce7f39f4U, 0xa00457f7U, 0x61d82e56U, 0x8d6d2c43U, 0xd270f1a2U, 0x00ac29cfU, 0xc619809dU,
    0xe9adf796U, 0x2b3cac5dU, 0x96638b34U, 0x65863b64U, 0xe0e9f351U, 0x1b03397fU, 0x9af01f2dU,
    0xebb883bdU, 0x2cff42cfU, 0xb3e32c28U, 0x88f25a3aU, 0x064f7f26U, 0x4e36f0b0U, 0xdd7e3b0cU,
    0xbd6f81f8U, 0xf285651cU, 0x91c9bd4bU, 0x10746f3cU, 0x885f087bU, 0xc7a68855U, 0x4c144932U,
    0x271d9844U, 0x52148f02U, 0x8e766a0cU, 0xa3c6f37aU, 0x93a5f730U, 0xd7c0557fU, 0x6cb08e5cU,
    0x63ded06aU, 0x6b749fb2U, 0x4d56973cU, 0x1393e203U, 0x9669c9dfU, 0xcec3662eU, 0xe417f38aU,
    0x96c515bbU, 0x4b9e0f71U, 0xe6fc4e6aU, 0xd104b8fcU, 0x8227bb8aU, 0x5b397730U, 0xb0cd4768U,
    0xe78eb416U, 0x39c7ff35U, 0x61ff0e01U, 0xd7a4825cU, 0x8d96551cU, 0x0ab3844bU, 0x0bf80dd2U,
    0x0167d312U, 0x8821abedU, 0xf6076544U, 0x6a45d2b2U, 0x26f6a60aU, 0xd8d26619U, 0xa741c1bfU,
    0xde87806cU, 0x98d8d9cbU, 0x14338754U, 0x49c3cc9cU, 0x5bd2011fU, 0x68bce87aU, 0xdd07448eU,
    0x57a3d037U, 0xdde8f5b9U, 0x6956fc3bU, 0xa3e3e02cU, 0x42d98888U, 0xd73c7beaU, 0x3771e98fU,
    0x80ff0093U, 0xb42ae3d9U, 0x8fe4c34dU, 0x2178513aU, 0xdf99fc11U, 0xe0ac139eU, 0x6c23e841U,
    0x170076faU, 0xfe314258U,
};

__attribute__((target("sse4.2,crc32,pclmul"))) static inline uint64_t shifted(uint64_t crc,
                                                                              size_t words)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc),
                                           _mm_cvtsi32_si128((int32_t)behind[words - 1]), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* The instruction takes three cycles, and a new one can begin in every cycle. So this computes
 * three runs of `words` words side by side and joins them in the word that follows. */
__attribute__((target("sse4.2,crc32,pclmul"))) static uint64_t
crc_of_three(uint64_t state, const char *data, size_t words)
{
    const char *second = data + WORD * words;
    const char *third = second + WORD * words;
    uint64_t b = 0;
    uint64_t c = 0;
    for (size_t i = 0; i < WORD * words; i += WORD) {
        state = _mm_crc32_u64(state, tn_load_u64(data + i));
        b = _mm_crc32_u64(b, tn_load_u64(second + i));
        c = _mm_crc32_u64(c, tn_load_u64(third + i));
    }
    uint64_t met = shifted(state, 2 * words) ^ shifted(b, words);
    return _mm_crc32_u64(c, tn_load_u64(third + WORD * words) ^ met);
}

__attribute__((target("sse4.2,crc32,pclmul"))) static uint32_t
crc_by_three(uint32_t crc, const char *data, size_t size)
{
    enum { WORTH_IT = 16 * WORD };
    uint64_t state = ~crc;
    size_t at = 0;
    while (size - at >= WORTH_IT) {
        size_t words = (size - at - WORD) / ((size_t)3 * WORD);
        words = words < LANE_WORDS_MAX ? words : LANE_WORDS_MAX;
        state = crc_of_three(state, data + at, words);
        at += WORD * (3 * words + 1);
    }
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
    TN_ASSERT(size == 0 || data != NULL);
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")
               ? crc_by_three(crc, data, size)
               : tn_crc32c_portable(crc, data, size);
}

#else

uint32_t tn_crc32c(uint32_t crc, const void *data, size_t size)
{
    return tn_crc32c_portable(crc, data, size);
}

#endif
