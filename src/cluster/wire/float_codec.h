/* float_codec.h - floats as messages carry them: whole, or rounded to 16 bits.
 *
 *     f32     as they are                                      4 bytes
 *     f16     IEEE binary16: 11 bits, 6e-8 to 65504            2
 *     bf16    the upper half of a float: 8 bits, its range     2
 *
 * Rounded to the nearest, ties to even. A value that is not finite, or would not be after rounding,
 * is a fault: of the sender when it writes, of the message when it is read. Functions that may meet
 * one return TN_VALUES_FINITE, or the index of the first such value in the order of the message;
 * then their output is useless, but reading leaves it alone.
 *
 * Rows of a keyset travel in the order of the message's keys (cluster/wire/key_codec.h), side by
 * side:
 *
 *     rows      | row 0 | row 1 | row 2 |       order 2 0 1
 *     message   | row 2 | row 0 | row 1 |
 *
 * Messages may lie at any address. Pure functions, any thread.
 */
#pragma once

#include "base/core/compiler.h"
#include "base/keys/keyset.h"

#include <stddef.h>
#include <stdint.h>

#define TN_VALUES_FINITE SIZE_MAX

typedef enum tn_values { TN_VALUES_F32, TN_VALUES_F16, TN_VALUES_BF16, TN_VALUES_KINDS } tn_values;

/* The keys of a keyset that a message holds, in its order. */
typedef struct tn_key_order {
    uint32_t n;
    const uint32_t *index; /* n: into the keyset */
} tn_key_order;

/* Bytes of one. */
static inline size_t tn_values_bytes(tn_values kind)
{
    return kind == TN_VALUES_F32 ? sizeof(float) : sizeof(uint16_t);
}

size_t tn_values_write(tn_values kind, const float *from, size_t n, char *to) TN_MUST_USE;

/* Error feedback: writes q = round(from + residual) and keeps from + residual - q as the residual
 * of the next time, so that later messages bring what rounding took from this one: all messages
 * together differ from all gradients together by one rounding. `residual` starts as zeros, belongs
 * to these n places and this destination, and stays as it is after a fault. f32 leaves zeros.
 * Seide et al., 1-bit SGD (2014); Karimireddy et al., Error Feedback Fixes SignSGD (2019). */
size_t tn_values_write_fed(tn_values kind, const float *from, size_t n, float *residual,
                           char *to) TN_MUST_USE;

/* Gathers the rows of `order`, one after the other. */
size_t tn_values_gather(tn_values kind, const tn_keyset *keys, tn_key_order order,
                        const float *rows, char *to) TN_MUST_USE;

size_t tn_values_read(tn_values kind, const char *from, size_t n, float *to) TN_MUST_USE;

/* Undoes tn_values_gather; the other rows are left alone. */
size_t tn_values_scatter(tn_values kind, const char *from, const tn_keyset *keys,
                         tn_key_order order, float *rows) TN_MUST_USE;
