/* dictvalue.h - how a dictionary keeps the floats of a segment.
 *
 *     f32    as they are                   fp16   nearest-even, cut to +-65504
 *     bf16   nearest-even                  int8   f32 scale = max |w| / 127 right before them,
 *                                                 q = nearest-even(w / scale), value q * scale
 *
 * Pure functions, any thread. Weights are finite.
 */
#ifndef TN_IO_DICTVALUE_H
#define TN_IO_DICTVALUE_H

#include <stdint.h>

typedef enum tn_dict_type {
    TN_DICT_F32,
    TN_DICT_BF16,
    TN_DICT_FP16,
    TN_DICT_INT8,
    TN_DICT_TYPES
} tn_dict_type;

uint32_t tn_dict_bytes(tn_dict_type type, uint32_t dim); /* of the values, without the scale */

/* Writes `dim` values at `to` and returns the scale; 1 where there is none. */
float tn_dict_encode(tn_dict_type type, uint32_t dim, const float *w, char *to);

/* The way back. `scale` is read for int8 only. */
void tn_dict_decode(tn_dict_type type, uint32_t dim, const char *from, float scale, float *w);

#endif
