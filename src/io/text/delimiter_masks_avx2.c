/* delimiter_masks_avx2.c - delimiter_masks.h with AVX2: two vectors a look. */
#include "io/text/delimiter_masks.h"

#if TN_MARKS_X86
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,popcnt")))
enum { LANES = 32 };

TARGET static inline uint64_t field_mask(const char *p, char mark, uint64_t *odd)
{
    uint64_t mask = 0;
    __m256i strange = _mm256_setzero_si256();
    for (uint32_t i = 0; i < 64; i += LANES) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        __m256i hit = _mm256_cmpeq_epi8(x, _mm256_set1_epi8(mark));
        __m256i bad = _mm256_or_si256(_mm256_cmpeq_epi8(x, _mm256_set1_epi8('\r')),
                                      _mm256_cmpeq_epi8(x, _mm256_setzero_si256()));
        mask |= (uint64_t)(uint32_t)_mm256_movemask_epi8(hit) << i;
        strange = _mm256_or_si256(strange, bad);
    }
    *odd |= (uint64_t)(uint32_t)_mm256_movemask_epi8(strange);
    return mask;
}

TARGET static inline uint64_t pair_mask(const char *p, uint64_t *odd)
{
    const __m256i low = _mm256_set1_epi8(0x1f);
    uint64_t mask = 0;
    __m256i strange = _mm256_setzero_si256();
    for (uint32_t i = 0; i < 64; i += LANES) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        __m256i hit = _mm256_or_si256(_mm256_cmpeq_epi8(x, _mm256_set1_epi8(' ')),
                                      _mm256_cmpeq_epi8(x, _mm256_set1_epi8(':')));
        __m256i bad = _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(x, low), low),
                                      _mm256_cmpeq_epi8(x, _mm256_set1_epi8('#')));
        mask |= (uint64_t)(uint32_t)_mm256_movemask_epi8(hit) << i;
        strange = _mm256_or_si256(strange, bad);
    }
    *odd |= (uint64_t)(uint32_t)_mm256_movemask_epi8(strange);
    return mask;
}

/* As in delimiter_masks_put.h, with the instructions of this set. */
TARGET static inline uint16_t *put_marks(uint16_t *to, uint64_t mask, uint32_t base)
{
    enum { AT_ONCE = 16 };
    uint32_t n = (uint32_t)_mm_popcnt_u64(mask);
    for (uint32_t done = 0;; done += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            to[done + i] = (uint16_t)(base + (uint32_t)_tzcnt_u64(mask)); /* 64 behind the last */
            mask = _blsr_u64(mask);
        }
        if (done + AT_ONCE >= n) {
            return to + n;
        }
    }
}

#include "io/text/delimiter_masks_body.h"

const tn_marks tn_marks_avx2 = {"avx2", find_fields, find_pairs};
#endif
