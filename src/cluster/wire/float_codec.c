/* float_codec.c - floats are rounded to 16 bits and back. Loops work on bits, so that they
 * vectorise, round alike on every machine and do not ask whether the processor flushes denormals.
 */
#include "cluster/wire/float_codec.h"

#include "base/core/bytes.h"

enum { BLOCK = 1024 }; /* floats of rows that are put side by side before they are written */

/* Bits of a float without its sign, from which on it is infinite or no number once written. */
static const uint32_t too_large[TN_VALUES_KINDS] = {
    [TN_VALUES_F32] = 0x7f800000,
    [TN_VALUES_F16] = 0x477ff000,  /* 65520, the middle between 65504 and 2^16 */
    [TN_VALUES_BF16] = 0x7f7f8000, /* the middle between the largest and 2^128 */
};

static inline uint32_t bits_of(float x)
{
    return tn_load_u32(&x);
}

static inline float float_of(uint32_t bits)
{
    return tn_load_f32(&bits);
}

/* Computes both, and takes one: a branch would keep loops from being vectorised. */
static inline uint32_t choose(bool first, uint32_t a, uint32_t b)
{
    uint32_t mask = 0U - (uint32_t)first;
    return (a & mask) | (b & ~mask);
}

static inline uint16_t f16_of(float x)
{
    const uint32_t least_normal = 113U << 23; /* 2^-14 */
    uint32_t bits = bits_of(x);
    uint32_t a = bits & 0x7fffffff;
    uint32_t normal = (a - (112U << 23) + 0xfff + (a >> 13 & 1)) >> 13;
    uint32_t tiny = bits_of(float_of(a) + .5F) - bits_of(.5F); /* the last bit of .5 is 2^-24 */
    return (uint16_t)((bits >> 16 & 0x8000) | choose(a < least_normal, tiny, normal));
}

static inline float of_f16(uint16_t half)
{
    uint32_t a = half & 0x7fffU;
    uint32_t normal = (a << 13) + (112U << 23);
    uint32_t tiny = bits_of(float_of(normal + (1U << 23)) - 0x1p-14F);
    return float_of((uint32_t)(half & 0x8000) << 16 | choose(a < 0x400, tiny, normal));
}

static inline uint16_t bf16_of(float x)
{
    uint32_t bits = bits_of(x);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float of_bf16(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

/* Returns whether any of n floats reaches `limit`. */
TN_HOT static uint32_t any_reaches(const float *restrict from, size_t n, uint32_t limit)
{
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        any |= (bits_of(from[i]) & 0x7fffffff) >= limit;
    }
    return any;
}

TN_HOT static void write_f16(const float *restrict from, size_t n, char *restrict to)
{
    for (size_t i = 0; i < n; i++) {
        tn_store_u16(to + 2 * i, f16_of(from[i]));
    }
}

TN_HOT static void write_bf16(const float *restrict from, size_t n, char *restrict to)
{
    for (size_t i = 0; i < n; i++) {
        tn_store_u16(to + 2 * i, bf16_of(from[i]));
    }
}

TN_HOT static void read_f16(const char *restrict from, size_t n, float *restrict to)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = of_f16(tn_load_u16(from + 2 * i));
    }
}

TN_HOT static void read_bf16(const char *restrict from, size_t n, float *restrict to)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = of_bf16(tn_load_u16(from + 2 * i));
    }
}

/* Returns whether any of n numbers of 16 bits has all bits of its exponent. */
TN_HOT static uint32_t any_exponent_u16(const char *restrict from, size_t n, uint16_t exponent)
{
    uint16_t any = 0;
    for (size_t i = 0; i < n; i++) {
        any |= (tn_load_u16(from + 2 * i) & exponent) == exponent;
    }
    return any;
}

TN_HOT static uint32_t any_exponent_u32(const char *restrict from, size_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        any |= (tn_load_u32(from + 4 * i) & exponent) == exponent;
    }
    return any;
}

/* Converts; the caller has checked that all are finite. */
static void convert(tn_values kind, const char *from, size_t n, float *to)
{
    if (kind == TN_VALUES_F32) {
        memcpy(to, from, n * sizeof *to);
    } else if (kind == TN_VALUES_F16) {
        read_f16(from, n, to);
    } else {
        read_bf16(from, n, to);
    }
}

size_t tn_values_write(tn_values kind, const float *from, size_t n, char *to)
{
    TN_ASSERT(kind < TN_VALUES_KINDS);
    if (any_reaches(from, n, too_large[kind]) != 0) {
        size_t i = 0;
        while (any_reaches(from + i, 1, too_large[kind]) == 0) {
            i++;
        }
        return i;
    }
    if (n == 0) {
        return TN_VALUES_FINITE;
    }
    if (kind == TN_VALUES_F32) {
        memcpy(to, from, n * sizeof *from);
    } else if (kind == TN_VALUES_F16) {
        write_f16(from, n, to);
    } else {
        write_bf16(from, n, to);
    }
    return TN_VALUES_FINITE;
}

static size_t block_of(size_t left)
{
    return left < BLOCK ? left : BLOCK;
}

/* Returns the index of a fault after `done` values that had none. */
static size_t behind(size_t done, size_t fault)
{
    return fault == TN_VALUES_FINITE ? fault : done + fault;
}

static void add(const float *restrict a, const float *restrict b, size_t n, float *restrict sum)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] = a[i] + b[i];
    }
}

/* Writes the whole message first, since no residual may change after a fault. */
size_t tn_values_write_fed(tn_values kind, const float *from, size_t n, float *residual, char *to)
{
    TN_ASSERT(n == 0 || residual != NULL);
    const size_t width = tn_values_bytes(kind);
    float sum[BLOCK];
    float sent[BLOCK];
    size_t fault = TN_VALUES_FINITE;
    for (size_t at = 0; at < n && fault == TN_VALUES_FINITE; at += BLOCK) {
        size_t here = block_of(n - at);
        add(from + at, residual + at, here, sum);
        fault = behind(at, tn_values_write(kind, sum, here, to + at * width));
    }
    for (size_t at = 0; at < n && fault == TN_VALUES_FINITE; at += BLOCK) {
        size_t here = block_of(n - at);
        add(from + at, residual + at, here, sum);
        convert(kind, to + at * width, here, sent);
        for (size_t i = 0; i < here; i++) {
            residual[at + i] = sum[i] - sent[i];
        }
    }
    return fault;
}

/* Rows are short: they are put side by side, then written together. */
size_t tn_values_gather(tn_values kind, const tn_keyset *keys, tn_key_order order,
                        const float *rows, char *to)
{
    const size_t width = tn_values_bytes(kind);
    float block[BLOCK];
    size_t fill = 0;
    size_t done = 0;
    for (uint32_t i = 0; i < order.n; i++) {
        uint32_t at = keys->at[order.index[i]];
        uint32_t end = at + tn_row_width(keys, order.index[i]);
        while (at < end) {
            size_t here = end - at < BLOCK - fill ? end - at : BLOCK - fill;
            memcpy(block + fill, rows + at, here * sizeof *block);
            fill += here;
            at += (uint32_t)here;
            if (fill < BLOCK) {
                continue;
            }
            size_t fault = tn_values_write(kind, block, fill, to + done * width);
            if (fault != TN_VALUES_FINITE) {
                return done + fault;
            }
            done += fill;
            fill = 0;
        }
    }
    return behind(done, tn_values_write(kind, block, fill, to + done * width));
}

static bool block_is_finite(tn_values kind, const char *from, size_t n)
{
    if (kind == TN_VALUES_F32) {
        return any_exponent_u32(from, n) == 0;
    }
    return any_exponent_u16(from, n, kind == TN_VALUES_F16 ? 0x7c00 : 0x7f80) == 0;
}

static size_t first_fault(tn_values kind, const char *from, size_t n)
{
    TN_ASSERT(kind < TN_VALUES_KINDS);
    if (block_is_finite(kind, from, n)) {
        return TN_VALUES_FINITE;
    }
    size_t i = 0;
    while (block_is_finite(kind, from + i * tn_values_bytes(kind), 1)) {
        i++;
    }
    return i;
}

size_t tn_values_read(tn_values kind, const char *from, size_t n, float *to)
{
    size_t fault = first_fault(kind, from, n);
    if (fault == TN_VALUES_FINITE && n > 0) {
        convert(kind, from, n, to);
    }
    return fault;
}

static size_t floats_of(const tn_keyset *keys, tn_key_order order)
{
    size_t n = 0;
    for (uint32_t i = 0; i < order.n; i++) {
        n += tn_row_width(keys, order.index[i]);
    }
    return n;
}

size_t tn_values_scatter(tn_values kind, const char *from, const tn_keyset *keys,
                         tn_key_order order, float *rows)
{
    const size_t width = tn_values_bytes(kind);
    size_t left = floats_of(keys, order);
    size_t fault = first_fault(kind, from, left);
    if (fault != TN_VALUES_FINITE) {
        return fault;
    }
    float block[BLOCK];
    size_t fill = 0; /* floats in the block */
    size_t used = 0; /* floats of the block that are in their rows already */
    for (uint32_t i = 0; i < order.n; i++) {
        uint32_t at = keys->at[order.index[i]];
        uint32_t end = at + tn_row_width(keys, order.index[i]);
        while (at < end) {
            if (used == fill) {
                fill = block_of(left);
                used = 0;
                convert(kind, from, fill, block);
                from += fill * width;
                left -= fill;
            }
            size_t here = end - at < fill - used ? end - at : fill - used;
            memcpy(rows + at, block + used, here * sizeof *block);
            used += here;
            at += (uint32_t)here;
        }
    }
    TN_ASSERT(left == 0 && used == fill);
    return TN_VALUES_FINITE;
}
