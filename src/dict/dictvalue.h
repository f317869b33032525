/* dictvalue.h - how a dictionary keeps the floats of a segment.
 *
 *     f32    as they are
 *     bf16   nearest-even
 *     fp16   nearest-even, cut to +-65504
 *     int8   scale = max |w| / 127, q = nearest-even(w / scale), value q * scale, a byte each
 *     int4   scale = max |w| / 7, else as int8; two to a byte, the first in its low half
 *     1bit   scale = mean |w|, value scale, or -scale where the bit is set; the first in bit 0
 *
 * Segments lie on multiples of 4 bytes, so a short one may be kept better (tn_dict_type_for). Those
 * of a row that are kept alike share one f32 scale. Pure functions, any thread. Weights are finite.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* By their numbers in the file. */
typedef enum tn_dict_type {
    TN_DICT_F32,
    TN_DICT_BF16,
    TN_DICT_FP16,
    TN_DICT_INT8,
    TN_DICT_INT4,
    TN_DICT_1BIT,
    TN_DICT_TYPES
} tn_dict_type;

bool tn_dict_is_scaled(tn_dict_type type);
uint32_t tn_dict_bytes(tn_dict_type type, uint32_t dim); /* without the scale */
uint32_t tn_dict_padded(uint32_t bytes);                 /* to the next multiple of four */

/* Returns the type in which `dim` floats are kept when `asked` is wanted: the most precise one of
 * f32, bf16 (in place of any but fp16), int8, int4 that takes no more bytes. One float stays f32,
 * two become bf16. */
tn_dict_type tn_dict_type_for(tn_dict_type asked, uint32_t dim);

typedef struct tn_dict_part {
    uint32_t dim;
    const float *w;
} tn_dict_part;

/* Returns the scale of all parts of a row that are kept as `type`; 1 for a type without scale. */
float tn_dict_scale(tn_dict_type type, uint32_t n, const tn_dict_part *part);

/* Writes `dim` values at `to`; `scale` is that of tn_dict_scale. */
void tn_dict_encode(tn_dict_type type, uint32_t dim, const float *w, float scale, char *to);

/* Reads such values back. */
void tn_dict_decode(tn_dict_type type, uint32_t dim, const char *from, float scale, float *w);
