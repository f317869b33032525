/* delimiter_masks_avx512.c - delimiter_masks.h with AVX-512 (BW and VBMI2): a vector a look, all
 * places at once. */
#include "io/text/delimiter_masks.h"

#if TN_MARKS_AVX512
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt")))

TARGET static inline uint64_t field_mask(const char *p, char mark, uint64_t *odd)
{
    __m512i x = _mm512_loadu_si512(p);
    *odd |= _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('\r')) | _mm512_testn_epi8_mask(x, x);
    return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(mark));
}

TARGET static inline uint64_t pair_mask(const char *p, uint64_t *odd)
{
    __m512i x = _mm512_loadu_si512(p);
    *odd |= _mm512_cmplt_epu8_mask(x, _mm512_set1_epi8(' ')) |
            _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('#'));
    return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(' ')) |
           _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(':'));
}

/* The numbers 0 .. 63 whose bits are set move together, and grow to 16 bits. */
TARGET static inline uint16_t *put_marks(uint16_t *to, uint64_t mask, uint32_t base)
{
    enum { AT_ONCE = 32 };
    const __m512i places = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
        40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
        17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    uint32_t n = (uint32_t)_mm_popcnt_u64(mask);
    __m512i from = _mm512_set1_epi16((int16_t)(uint16_t)base);
    __m512i some = _mm512_maskz_compress_epi8(mask, places);
    __m512i first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(some));
    _mm512_storeu_si512(to, _mm512_add_epi16(from, first));
    if (n > AT_ONCE) {
        __m512i second = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(some, 1));
        _mm512_storeu_si512(to + AT_ONCE, _mm512_add_epi16(from, second));
    }
    return to + n;
}

#include "io/text/delimiter_masks_body.h"

const tn_marks tn_marks_avx512 = {"avx512", find_fields, find_pairs};
#endif
