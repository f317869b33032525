/* delimiter_masks.c - the sets of delimiter_masks.h, and which of them this processor runs.
 *
 * Each set has two functions that look at 64 bytes, and one that turns the bits of a mask into
 * places. delimiter_masks_body.h makes the loops over a line of them.
 */
#include "io/text/delimiter_masks.h"

#include "base/core/bytes.h"

#if TN_DELIMITER_MASKS_X86
#include <immintrin.h>
#endif

#define EACH UINT64_C(0x0101010101010101)
#define TOPS (EACH * 0x80)

enum { LOOK = 64 };

/* Always 16 places, as a branch per place would be guessed wrong; few looks hold more. */
static inline uint16_t *put_marks_plain(uint16_t *to, uint64_t mask, uint32_t base)
{
    enum { AT_ONCE = 16 };
    const uint64_t none = UINT64_C(1) << 63; /* places after the last bit do not count */
    uint32_t n = (uint32_t)__builtin_popcountll(mask);
    for (uint32_t done = 0;; done += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            to[done + i] = (uint16_t)(base + (uint32_t)__builtin_ctzll(mask | none));
            mask &= mask - 1;
        }
        if (done + AT_ONCE >= n) {
            return to + n;
        }
    }
}

/* ---- any processor: eight words a look ---- */

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

static inline uint64_t field_mask_plain(const char *p, char mark, uint64_t *odd)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t word = tn_load_u64(p + (size_t)8 * i);
        mask |= bits_of(equals(word, mark)) << (8 * i);
        *odd |= equals(word, '\r') | equals(word, '\0');
    }
    return mask;
}

static inline uint64_t pair_mask_plain(const char *p, uint64_t *odd)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t word = tn_load_u64(p + (size_t)8 * i);
        mask |= bits_of(equals(word, ' ') | equals(word, ':')) << (8 * i);
        *odd |= zeros_of(word & (EACH * 0xe0)) | equals(word, '#');
    }
    return mask;
}

#define TARGET
#define SET(name) name##_plain
#include "io/text/delimiter_masks_body.h"
#undef SET
#undef TARGET

const tn_delimiter_masks tn_delimiter_masks_plain = {"plain", find_marks_plain};

#if TN_DELIMITER_MASKS_X86

/* ---- every x86-64: four vectors a look ---- */

#define put_marks_sse2 put_marks_plain
#define TARGET
#define SET(name) name##_sse2
#define LANES 16
#define BITS(x) _mm_movemask_epi8((__m128i)(x))
#include "io/text/delimiter_masks_body.h"
#undef BITS
#undef LANES
#undef SET
#undef TARGET

const tn_delimiter_masks tn_delimiter_masks_sse2 = {"sse2", find_marks_sse2};

/* ---- AVX2: two vectors a look ---- */

#define TARGET __attribute__((target("avx2,bmi,popcnt")))
/* As put_marks_plain, with the instructions of this set. */
TARGET static inline uint16_t *put_marks_avx2(uint16_t *to, uint64_t mask, uint32_t base)
{
    enum { AT_ONCE = 16 };
    uint32_t n = (uint32_t)_mm_popcnt_u64(mask);
    for (uint32_t done = 0;; done += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            to[done + i] = (uint16_t)(base + (uint32_t)_tzcnt_u64(mask)); /* 64 after the last */
            mask = _blsr_u64(mask);
        }
        if (done + AT_ONCE >= n) {
            return to + n;
        }
    }
}

#define SET(name) name##_avx2
#define LANES 32
#define BITS(x) _mm256_movemask_epi8((__m256i)(x))
#include "io/text/delimiter_masks_body.h"
#undef BITS
#undef LANES
#undef SET
#undef TARGET

const tn_delimiter_masks tn_delimiter_masks_avx2 = {"avx2", find_marks_avx2};

#endif
#if TN_DELIMITER_MASKS_AVX512

/* ---- AVX-512 (BW and VBMI2): a vector a look, all places at once ---- */

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt")))

TARGET static inline uint64_t field_mask_avx512(const char *p, char mark, uint64_t *odd)
{
    __m512i x = _mm512_loadu_si512(p);
    *odd |= _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('\r')) | _mm512_testn_epi8_mask(x, x);
    return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(mark));
}

TARGET static inline uint64_t pair_mask_avx512(const char *p, uint64_t *odd)
{
    __m512i x = _mm512_loadu_si512(p);
    *odd |= _mm512_cmplt_epu8_mask(x, _mm512_set1_epi8(' ')) |
            _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('#'));
    return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(' ')) |
           _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(':'));
}

/* The numbers 0 .. 63 whose bits are set move together, and grow to 16 bits. */
TARGET static inline uint16_t *put_marks_avx512(uint16_t *to, uint64_t mask, uint32_t base)
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

#define SET(name) name##_avx512
#include "io/text/delimiter_masks_body.h"
#undef SET
#undef TARGET

const tn_delimiter_masks tn_delimiter_masks_avx512 = {"avx512", find_marks_avx512};

#endif

const tn_delimiter_masks *tn_delimiter_masks_find(void)
{
#if TN_DELIMITER_MASKS_AVX512
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2")) {
        return &tn_delimiter_masks_avx512;
    }
#endif
#if TN_DELIMITER_MASKS_X86
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
    return avx2 ? &tn_delimiter_masks_avx2 : &tn_delimiter_masks_sse2;
#else
    return &tn_delimiter_masks_plain;
#endif
}
