/* rng.h - random numbers as functions of names and positions: no state, no order, any thread.
 *
 * SplitMix64 in counter mode (numerics: one generator for everything).
 *
 *     uint64_t s = tn_stream3(seed, TN_RNG_ROW, tn_name64("deep"), key);
 *     float w = (float)(a + (b - a) * tn_unit(tn_draw(s, coordinate)));
 */
#pragma once

#include "base/math/key.h"

#include <stddef.h>
#include <stdint.h>

#define TN_GAMMA UINT64_C(0x9e3779b97f4a7c15)

/* The first word of every stream: what it is for. */
enum {
    TN_RNG_ROW = 1,         /* name64(segment), table key        index: coordinate */
    TN_RNG_DENSE = 2,       /* name64(parameter)                 flat row-major index */
    TN_RNG_DROPOUT = 3,     /* name64(node), step                e >> 1, e = row * cols + col */
    TN_RNG_SHUFFLE = 4,     /* epoch, part                       n - 1 - k */
    TN_RNG_ADMISSION = 5,   /* table key                         step */
    TN_RNG_SAMPLING = 6,    /* part                              row in the part */
    TN_RNG_BOOTSTRAP = 7,   /* replicate                         row number or group key */
    TN_RNG_GENERATE = 8,    /* any                               free */
    TN_RNG_ROUNDING = 9,    /* table key, step                   coordinate */
    TN_RNG_HELD = 10,       /* file                              first byte of a row */
    TN_RNG_IMPORTANCE = 11, /* name64(slot), block and repeat   n - 1 - k */
    TN_RNG_TUNE = 12,       /* name64(option)                    trial */
};

static inline uint64_t tn_stream0(uint64_t seed)
{
    return tn_mix(seed + TN_GAMMA);
}

static inline uint64_t tn_stream_next(uint64_t s, uint64_t word)
{
    return tn_mix((s ^ word) + TN_GAMMA);
}

static inline uint64_t tn_stream2(uint64_t seed, uint64_t a, uint64_t b)
{
    return tn_stream_next(tn_stream_next(tn_stream0(seed), a), b);
}

static inline uint64_t tn_stream3(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    return tn_stream_next(tn_stream2(seed, a, b), c);
}

/* Returns the i-th number of a stream. */
static inline uint64_t tn_draw(uint64_t stream, uint64_t i)
{
    return tn_mix(stream + (i + 1) * TN_GAMMA);
}

/* Returns the FNV-1a, 64 bits, of the bytes of a name. */
uint64_t tn_name64(const char *text);

static inline double tn_unit(uint64_t x) /* [0, 1) */
{
    return (double)(x >> 11) * 0x1p-53;
}

static inline double tn_open(uint64_t x) /* (0, 1) */
{
    return ((double)(x >> 12) + 0.5) * 0x1p-52;
}

/* Returns a number of 0 .. n-1. */
uint64_t tn_below(uint64_t x, uint64_t n);

/* Returns the quantile of the standard normal: Wichura's AS 241 with our own logarithm (tn_ln), so
 * that no libm decides a bit. 0 < p < 1. */
double tn_normal_quantile(double p);

static inline double tn_normal(uint64_t x)
{
    return tn_normal_quantile(tn_open(x));
}

/* Puts a[0] .. a[n-1] into the order that the stream gives them. */
void tn_shuffle(uint64_t stream, uint32_t *a, size_t n);
