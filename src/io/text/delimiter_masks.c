/* delimiter_masks.c - which set of delimiter_masks.h this processor runs, and the set for any. */
#include "io/text/delimiter_masks.h"

#include "base/core/bytes.h"
#include "io/text/delimiter_masks_put.h"

#define EACH UINT64_C(0x0101010101010101)
#define TOPS (EACH * 0x80)

/* The top bit of each byte says that it is 0; exact in every byte. */
static inline uint64_t zeros_of(uint64_t x)
{
    return ~(((x & ~TOPS) + ~TOPS) | x) & TOPS;
}

static inline uint64_t equals(uint64_t word, char c)
{
    return zeros_of(word ^ (EACH * (unsigned char)c));
}

/* From the top bits of eight bytes to eight bits. */
static inline uint64_t bits_of(uint64_t tops)
{
    return ((tops >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline uint64_t field_mask(const char *p, char mark, uint64_t *odd)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t word = tn_load_u64(p + (size_t)8 * i);
        mask |= bits_of(equals(word, mark)) << (8 * i);
        *odd |= equals(word, '\r') | equals(word, '\0');
    }
    return mask;
}

static inline uint64_t pair_mask(const char *p, uint64_t *odd)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t word = tn_load_u64(p + (size_t)8 * i);
        mask |= bits_of(equals(word, ' ') | equals(word, ':')) << (8 * i);
        *odd |= zeros_of(word & (EACH * 0xe0)) | equals(word, '#');
    }
    return mask;
}

static inline uint16_t *put_marks(uint16_t *to, uint64_t mask, uint32_t base)
{
    return tn_marks_put(to, mask, base);
}

#define TARGET
#include "io/text/delimiter_masks_body.h"

const tn_marks tn_marks_plain = {"plain", find_fields, find_pairs};

const tn_marks *tn_marks_find(void)
{
#if TN_MARKS_AVX512
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2")) {
        return &tn_marks_avx512;
    }
#endif
#if TN_MARKS_X86
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
    return avx2 ? &tn_marks_avx2 : &tn_marks_sse2;
#else
    return &tn_marks_plain;
#endif
}
