/* params.h - all dense weights as named slices of one flat, aligned vector.
 *
 *     flat   | deep.1.W [320 x 400] | deep.1.b [1 x 400] | .. | bn.mean |
 *     at       0                      128000
 *
 * So all dense weights travel in one message and are checkpointed with names and
 * shapes. Slices begin on multiples of 16 floats; gaps are zero. Running
 * statistics live here too, with train = false: saved and sent, but touched by no optimizer.
 *
 * First all graphs that use them are written (tn_params_add returns the same slice for the same
 * name and shape), then tn_params_seal takes the memory; tn_graph_finish seals if nobody did. One
 * thread builds; afterwards weights are written by the owner of the step only.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/init.h" /* tn_init, tn_init_value: shared with rows of the sparse table */
#include "nn/vec/real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_param_slice {
    const char *name;
    uint32_t rows, cols; /* W is [in x out] */
    size_t at;           /* offset in the flat vector */
    size_t words_at;     /* and in that of words, where there is one */
    bool train;          /* an optimizer moves it, but for: */
    bool held;           /* this run keeps its values, of a model that is the same */
    bool state; /* a running value. After a training forward its slice of grads holds the new value
                 */
    tn_init init;
} tn_param_slice;

typedef struct tn_params tn_params;

tn_params *tn_params_new(void);
/* As tn_graph_open: tn_params_reserve before `bytes` of names, their ends included, are added. */
tn_status tn_params_open(tn_params **out, tn_error *err) TN_MUST_USE;
tn_status tn_params_reserve(tn_params *p, size_t bytes, tn_error *err) TN_MUST_USE;
void tn_params_free(tn_params *p); /* NULL is fine */

/* Returns the index of the slice. A known name must have the same shape. train false: a running
 * value. */
uint32_t tn_params_add(tn_params *p, const char *name, uint32_t rows, uint32_t cols, bool train,
                       tn_init init);
tn_status tn_params_seal(tn_params *p, tn_error *err) TN_MUST_USE;

/* First values, a pure function of (seed, name, index). */
void tn_params_init(tn_params *p, uint64_t seed);

uint32_t tn_params_count(const tn_params *p);
const tn_param_slice *tn_params_get(const tn_params *p, uint32_t i);
const tn_param_slice *tn_params_find(const tn_params *p, const char *name);
size_t tn_params_size(const tn_params *p); /* size of the flat vector, gaps included */
uint64_t
tn_params_trained(const tn_params *p); /* parameters without running values and gaps; "a bias right
                                          in front of a batch norm" still counts */
tn_real *tn_params_weights(tn_params *p); /* flat */
tn_real *tn_params_grads(tn_params *p);   /* flat, same offsets */

/* Rounds matrices of more than one row and column to 16 bits, for scoring: tn_words_round
 * (nn/gemm/gemm.h). Layers of products take the words for single rows. TN_E_MEMORY. */
tn_status tn_params_round(tn_params *p, tn_error *err) TN_MUST_USE;
const tn_real *tn_params_words(const tn_params *p, uint32_t slice); /* NULL: none */

/* "a bias right in front of a batch norm is not trained": its slice still counts as parameters. */
void tn_params_freeze(tn_params *p, uint32_t slice);

/* Before the graphs are finished. Whether a slice is held is no part of what a model is. */
void tn_params_hold(tn_params *p, uint32_t slice);
static inline bool tn_param_learns(const tn_param_slice *s)
{
    return s->train && !s->held;
}
