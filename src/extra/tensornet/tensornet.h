/* tensornet.h - the bytes of TensorNet's checkpoints: blocks of rows, dense tables, batch norm.
 *
 *     <dir>/sparse_table/<layer>/rank_<r>/block_<i>.gz     i = (sign >> 32) & 7, r = sign mod ranks
 *     <dir>/dense_table/<handle>/<r>                       text, a file per rank
 *     <dir>/bn_table/<handle>                              gzip
 *
 * A block is text, which begins with `opt_name:`, or binary, which does not name its rule, so the
 * reader gets the shape (docs/formats.md 6.9). All functions work on bytes in memory, after
 * gzip; whatever the bytes are, they end with rows or with TN_E_CKPT that names file and place. A
 * failure leaves *out for the done function. Pure functions, any thread.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/core/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum tn_tensornet_rule {
    TN_TENSORNET_ADAGRAD, /* one sum per row */
    TN_TENSORNET_ADAM,    /* m and v */
    TN_TENSORNET_FTRL,    /* z and n */
} tn_tensornet_rule;

extern const char *const tn_tensornet_rules[]; /* adagrad adam ftrl, NULL */

enum { TN_TENSORNET_BLOCKS = 8, TN_TENSORNET_DIM_MAX = 4096, TN_TENSORNET_RANKS_MAX = 4096 };

/* ---- rows ---- */

typedef struct tn_tensornet_shape {
    tn_tensornet_rule rule;
    uint32_t dim;
    bool cvm; /* AdaGrad rows have a click */
} tn_tensornet_shape;

/* Floats of a row: w[dim], then g2sum, or two states of dim each, then show, then click. */
static inline uint32_t tn_tensornet_width(const tn_tensornet_shape *s)
{
    return (s->rule == TN_TENSORNET_ADAGRAD ? s->dim + 1 : 3 * s->dim) + 2;
}

typedef struct tn_tensornet_row {
    uint64_t sign;
    const float *values; /* tn_tensornet_width; click is 0 where there is none */
    uint32_t idle;       /* no_show_days; 0 but for AdaGrad */
} tn_tensornet_row;

/* The rows of a block, in the order of the file. */
typedef struct tn_tensornet_rows {
    tn_tensornet_shape shape;
    uint64_t n;
    uint64_t *sign;
    float *values; /* n * width */
    uint32_t *idle;
    uint32_t *order; /* numbers of the rows, sorted by sign */
} tn_tensornet_rows;

/* `shape` is what the file must hold. A sign twice, or a value that is not finite, is an error. */
tn_status tn_tensornet_rows_read(tn_tensornet_rows *out, const tn_tensornet_shape *shape,
                                 tn_bytes bytes, const char *path, tn_error *err) TN_MUST_USE;
void tn_tensornet_rows_done(tn_tensornet_rows *r);

/* Row i by sign; lent. */
tn_tensornet_row tn_tensornet_row_at(const tn_tensornet_rows *r, uint64_t i);

/* The head of a block, a row, the end. */
void tn_tensornet_begin(tn_text *out, const tn_tensornet_shape *shape, bool binary);
void tn_tensornet_add(tn_text *out, const tn_tensornet_shape *shape, bool binary,
                      const tn_tensornet_row *row);
void tn_tensornet_end(tn_text *out);

/* ---- dense tables ---- */

/* The values of all ranks, one rank after the other. */
typedef struct tn_tensornet_dense {
    bool adam;             /* else AdaGrad */
    uint64_t n;            /* total_elements; 0: nothing was read yet */
    uint32_t ranks;        /* rank_num */
    uint64_t reached;      /* values that were read */
    float *w, *m, *v;      /* Adam's states; of AdaGrad zeros */
    double power1, power2; /* beta1_power, beta2_power */
} tn_tensornet_dense;

/* The file of rank `rank`; ranks come in order from 0. */
tn_status tn_tensornet_dense_read(tn_tensornet_dense *d, uint32_t rank, tn_bytes bytes,
                                  const char *path, tn_error *err) TN_MUST_USE;
void tn_tensornet_dense_done(tn_tensornet_dense *d);

/* The first value of a rank's range; of `ranks`, the end of the last. */
uint64_t tn_tensornet_dense_from(uint64_t n, uint32_t ranks, uint32_t rank);
void tn_tensornet_dense_print(const tn_tensornet_dense *d, uint32_t rank, tn_text *out);

/* ---- batch norm ---- */

/* Running values of so many columns; mean and var have room for `cols` values. */
typedef struct tn_tensornet_norm {
    uint32_t cols;
    float *mean, *var;
} tn_tensornet_norm;

/* Another number of columns than out->cols is an error. */
tn_status tn_tensornet_norm_read(const tn_tensornet_norm *out, tn_bytes bytes, const char *path,
                                 tn_error *err) TN_MUST_USE;
/* As of `count` values of each column. */
void tn_tensornet_norm_pack(const tn_tensornet_norm *norm, double count, tn_text *out);
