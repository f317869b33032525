/* dictvalue.c - floats as bf16, fp16 or int8, and back. */
#include "io/dict/dictvalue.h"

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <math.h>

enum { INT8_MOST = 127 };

uint32_t tn_dict_bytes(tn_dict_type type, uint32_t dim)
{
    static const uint32_t size[TN_DICT_TYPES] = {4, 2, 2, 1};
    TN_ASSERT(type < TN_DICT_TYPES);
    return size[type] * dim;
}

/* x / 2^shift to the nearest whole number, halves to even. */
static uint32_t shifted(uint32_t x, uint32_t shift)
{
    uint32_t half = UINT32_C(1) << (shift - 1);
    uint32_t whole = x >> shift;
    uint32_t rest = x & ((half << 1) - 1);
    return whole + (rest > half || (rest == half && (whole & 1) != 0));
}

static uint16_t fp16_of(float x)
{
    const uint32_t smallest_normal = UINT32_C(113) << 23; /* 2^-14 */
    const uint32_t rebias = UINT32_C(112) << 23;
    const float most = 65504;
    uint32_t sign = tn_load_u32(&x) >> 16 & 0x8000;
    float size = fabsf(x) < most ? fabsf(x) : most;
    uint32_t bits = tn_load_u32(&size);
    if (bits >= smallest_normal) {
        uint32_t half = shifted(bits - rebias, 13);
        return (uint16_t)(sign | (half < 0x7c00 ? half : 0x7bff));
    }
    uint32_t exponent = bits >> 23;
    const uint32_t least = 101; /* below 2^-26 nothing is left */
    if (exponent < least) {
        return (uint16_t)sign;
    }
    uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    return (uint16_t)(sign | shifted(mantissa, 126 - exponent));
}

static float float_of_fp16(uint16_t half)
{
    uint32_t exponent = half >> 10 & 31;
    uint32_t mantissa = half & 0x3ff;
    uint32_t bits = (exponent + 112) << 23 | mantissa << 13;
    if (exponent == 31) { /* never written */
        bits = 0x7f800000 | mantissa << 13;
    }
    float size = exponent == 0 ? (float)mantissa * 0x1p-24F : tn_load_f32(&bits);
    return (half & 0x8000) != 0 ? -size : size;
}

static float encode_int8(uint32_t dim, const float *w, char *to)
{
    float most = 0;
    for (uint32_t i = 0; i < dim; i++) {
        most = fmaxf(most, fabsf(w[i]));
    }
    float scale = most / INT8_MOST;
    for (uint32_t i = 0; i < dim; i++) {
        float q = scale > 0 ? rintf(w[i] / scale) : 0;
        q = fminf(fmaxf(q, -INT8_MOST), INT8_MOST);
        to[i] = (char)(int8_t)q;
    }
    return scale;
}

float tn_dict_encode(tn_dict_type type, uint32_t dim, const float *w, char *to)
{
    if (type == TN_DICT_INT8) {
        return encode_int8(dim, w, to);
    }
    if (type == TN_DICT_F32) {
        memcpy(to, w, dim * sizeof *w);
        return 1;
    }
    for (uint32_t i = 0; i < dim; i++) {
        uint16_t bf16 = (uint16_t)shifted(tn_load_u32(&w[i]), 16);
        tn_store_u16(to + (size_t)i * 2, type == TN_DICT_BF16 ? bf16 : fp16_of(w[i]));
    }
    return 1;
}

void tn_dict_decode(tn_dict_type type, uint32_t dim, const char *from, float scale, float *w)
{
    if (type == TN_DICT_F32) {
        memcpy(w, from, dim * sizeof *w);
        return;
    }
    for (uint32_t i = 0; i < dim; i++) {
        if (type == TN_DICT_INT8) {
            w[i] = (float)(int8_t)from[i] * scale;
        } else {
            uint16_t half = tn_load_u16(from + (size_t)i * 2);
            uint32_t bf16 = (uint32_t)half << 16;
            w[i] = type == TN_DICT_BF16 ? tn_load_f32(&bf16) : float_of_fp16(half);
        }
    }
}
