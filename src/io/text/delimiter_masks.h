/* delimiter_masks.h - places of the bytes that separate the fields of a line, 64 bytes at a look.
 *
 *     line    1 \t 2 \t \t 6 8 f d \r        odd: true, there is a '\r'
 *     at        1    3  4
 *
 * One set of functions per vector width; all give the same. Pure functions, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets that are compiled. ThreadSanitizer's build takes the plain set, like everything that picks
 * code by processor; where instructions are counted there is one set, or counts would depend on
 * the machine. */
#if !defined(__x86_64__) || (defined(TN_NO_CLONES) && !defined(TN_COUNTED))
#define TN_DELIMITER_MASKS_X86 0
#define TN_DELIMITER_MASKS_AVX512 0
#elif defined(TN_COUNTED)
#define TN_DELIMITER_MASKS_X86 1
#define TN_DELIMITER_MASKS_AVX512 0
#else
#define TN_DELIMITER_MASKS_X86 1
#define TN_DELIMITER_MASKS_AVX512 1
#endif

enum {
    TN_DELIMITER_MASKS_LINE_MAX =
        65472, /* bytes of a line: places fit 16 bits, with those of one look more */
    TN_DELIMITER_MASKS_SPARE = 64, /* places after the last one that may be written as well */
};

typedef struct tn_delimiter_masks {
    const char *name;
    /* Places of `mark`, or, where it is 0, of ' ' and ':', in a line of at most
     * TN_DELIMITER_MASKS_LINE_MAX bytes, ascending; how many. `at` has room for `size` +
     * TN_DELIMITER_MASKS_SPARE. *odd: a '\r' or a NUL is among the bytes; of ' ' and ':': a control
     * character or '#'. */
    uint32_t (*find)(const char *line, size_t size, char mark, uint16_t *at, bool *odd);
} tn_delimiter_masks;

/* The widest set that this processor runs. */
const tn_delimiter_masks *tn_delimiter_masks_find(void);

extern const tn_delimiter_masks tn_delimiter_masks_plain;
extern const tn_delimiter_masks tn_delimiter_masks_sse2;
extern const tn_delimiter_masks tn_delimiter_masks_avx2;
extern const tn_delimiter_masks tn_delimiter_masks_avx512;
