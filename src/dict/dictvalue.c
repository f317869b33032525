/* dictvalue.c - floats as bf16, fp16, int8, int4 or single bits, and back. */
#include "dict/dictvalue.h"

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <math.h>

static const uint32_t bits_of[TN_DICT_TYPES] = {32, 16, 16, 8, 4, 1};

bool tn_dict_is_scaled(tn_dict_type type)
{
    return type >= TN_DICT_INT8;
}

uint32_t tn_dict_bytes(tn_dict_type type, uint32_t dim)
{
    TN_ASSERT(type < TN_DICT_TYPES);
    return (bits_of[type] * dim + 7) / 8;
}

uint32_t tn_dict_padded(uint32_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

tn_dict_type tn_dict_type_for(tn_dict_type asked, uint32_t dim)
{
    const uint32_t most = tn_dict_padded(tn_dict_bytes(asked, dim));
    const tn_dict_type other = asked == TN_DICT_FP16 ? TN_DICT_BF16 : TN_DICT_FP16;
    tn_dict_type type = TN_DICT_F32;
    while (type < asked && (type == other || tn_dict_padded(tn_dict_bytes(type, dim)) > most)) {
        type++;
    }
    return type;
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

/* The largest |q| of whole numbers. */
static float most_of(tn_dict_type type)
{
    TN_ASSERT(type == TN_DICT_INT8 || type == TN_DICT_INT4);
    return type == TN_DICT_INT8 ? 127 : 7;
}

float tn_dict_scale(tn_dict_type type, uint32_t n, const tn_dict_part *part)
{
    float most = 0;
    double sum = 0;
    uint32_t count = 0;
    if (!tn_dict_is_scaled(type)) {
        return 1;
    }
    for (uint32_t p = 0; p < n; p++) {
        for (uint32_t i = 0; i < part[p].dim; i++) {
            most = fmaxf(most, fabsf(part[p].w[i]));
            sum += (double)fabsf(part[p].w[i]);
        }
        count += part[p].dim;
    }
    if (type == TN_DICT_1BIT) {
        return count > 0 ? (float)(sum / count) : 0;
    }
    return most / most_of(type);
}

static int8_t whole_of(tn_dict_type type, float w, float scale)
{
    const float most = most_of(type);
    const float q = scale > 0 ? rintf(w / scale) : 0;
    return (int8_t)fminf(fmaxf(q, -most), most);
}

/* Values smaller than a byte. */
static void pack(tn_dict_type type, uint32_t dim, const float *w, float scale, char *to)
{
    const uint32_t in_byte = 8 / bits_of[type];
    memset(to, 0, tn_dict_bytes(type, dim));
    for (uint32_t i = 0; i < dim; i++) {
        uint32_t q = w[i] < 0;
        if (type == TN_DICT_INT4) {
            q = (uint8_t)whole_of(type, w[i], scale) & 15U;
        }
        to[i / in_byte] = (char)((uint8_t)to[i / in_byte] | q << i % in_byte * bits_of[type]);
    }
}

static float unpacked(tn_dict_type type, const char *from, uint32_t i, float scale)
{
    const uint32_t in_byte = 8 / bits_of[type];
    const uint32_t byte = (uint8_t)from[i / in_byte];
    const uint32_t bits = byte >> i % in_byte * bits_of[type];
    if (type == TN_DICT_1BIT) {
        return (bits & 1) != 0 ? -scale : scale;
    }
    const int32_t q = (int32_t)((bits & 15) ^ 8) - 8;
    return (float)q * scale;
}

void tn_dict_encode(tn_dict_type type, uint32_t dim, const float *w, float scale, char *to)
{
    TN_ASSERT(type < TN_DICT_TYPES);
    if (type == TN_DICT_F32) {
        memcpy(to, w, dim * sizeof *w);
    } else if (bits_of[type] < 8) {
        pack(type, dim, w, scale, to);
    } else if (type == TN_DICT_INT8) {
        for (uint32_t i = 0; i < dim; i++) {
            to[i] = (char)whole_of(type, w[i], scale);
        }
    } else {
        for (uint32_t i = 0; i < dim; i++) {
            uint16_t bf16 = (uint16_t)shifted(tn_load_u32(&w[i]), 16);
            tn_store_u16(to + (size_t)i * 2, type == TN_DICT_BF16 ? bf16 : fp16_of(w[i]));
        }
    }
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
        } else if (bits_of[type] < 8) {
            w[i] = unpacked(type, from, i, scale);
        } else {
            uint16_t half = tn_load_u16(from + (size_t)i * 2);
            uint32_t bf16 = (uint32_t)half << 16;
            w[i] = type == TN_DICT_BF16 ? tn_load_f32(&bf16) : float_of_fp16(half);
        }
    }
}
