/* delimiter_masks_sse2.c - delimiter_masks.h for every x86-64: four vectors a look. */
#include "io/text/delimiter_masks.h"

#if TN_MARKS_X86
#include "io/text/delimiter_masks_put.h"

#include <emmintrin.h>

enum { LANES = 16 };

static inline uint64_t field_mask(const char *p, char mark, uint64_t *odd)
{
    uint64_t mask = 0;
    __m128i strange = _mm_setzero_si128();
    for (uint32_t i = 0; i < 64; i += LANES) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i hit = _mm_cmpeq_epi8(x, _mm_set1_epi8(mark));
        __m128i bad = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('\r')),
                                   _mm_cmpeq_epi8(x, _mm_setzero_si128()));
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(hit) << i;
        strange = _mm_or_si128(strange, bad);
    }
    *odd |= (uint64_t)(uint32_t)_mm_movemask_epi8(strange);
    return mask;
}

static inline uint64_t pair_mask(const char *p, uint64_t *odd)
{
    const __m128i low = _mm_set1_epi8(0x1f);
    uint64_t mask = 0;
    __m128i strange = _mm_setzero_si128();
    for (uint32_t i = 0; i < 64; i += LANES) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8(' ')),
                                   _mm_cmpeq_epi8(x, _mm_set1_epi8(':')));
        __m128i bad = _mm_or_si128(_mm_cmpeq_epi8(_mm_max_epu8(x, low), low),
                                   _mm_cmpeq_epi8(x, _mm_set1_epi8('#')));
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(hit) << i;
        strange = _mm_or_si128(strange, bad);
    }
    *odd |= (uint64_t)(uint32_t)_mm_movemask_epi8(strange);
    return mask;
}

static inline uint16_t *put_marks(uint16_t *to, uint64_t mask, uint32_t base)
{
    return tn_marks_put(to, mask, base);
}

#define TARGET
#include "io/text/delimiter_masks_body.h"

const tn_marks tn_marks_sse2 = {"sse2", find_fields, find_pairs};
#endif
