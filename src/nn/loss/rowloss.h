/* rowloss.h - the passes of a loss of single rows, out of one function of score and label.
 *
 *     TN_ROW_LOSS_OF mse_of(const void *opts, tn_real z, tn_real y) {..}
 *     TN_ROW_LOSS(mse)
 *     const tn_loss tn_loss_mse = {TN_ROW_LOSS_MEMBERS(mse, "squared error"), ..};
 *
 * Each pass has its own copy of the function, of which the compiler drops the half that it does not
 * use.
 */
#pragma once

#include "nn/graph/graph.h"
#include "nn/loss/loss.h" /* IWYU pragma: export */

typedef struct tn_row_loss {
    tn_real l, dz; /* the loss, and its derivative by the score */
} tn_row_loss;

#define TN_ROW_LOSS_OF __attribute__((always_inline)) static inline tn_row_loss

/* Defines id_forward and id_backward by id_of, which each of them calls by its name: compilers that
 * do not optimize cannot inline a call by an address. */
#define TN_ROW_LOSS(id)                                                                            \
    static void id##_forward(tn_node *l, tn_range rows)                                            \
    {                                                                                              \
        const tn_real *label = tn_label_of(l);                                                     \
        const tn_node *z = l->in[0];                                                               \
        const void *opts = l->attr;                                                                \
        for (size_t r = rows.from; r < rows.to; r++) {                                             \
            *tn_val_row(l, r) = label == NULL ? 0 : id##_of(opts, *tn_val_row(z, r), label[r]).l;  \
        }                                                                                          \
    }                                                                                              \
    static void id##_backward(tn_node *l, tn_range rows)                                           \
    {                                                                                              \
        const tn_real *label = tn_label_of(l);                                                     \
        const tn_node *z = l->in[0];                                                               \
        const void *opts = l->attr;                                                                \
        TN_ASSERT(label != NULL);                                                                  \
        for (size_t r = rows.from; r < rows.to && z->grad != NULL; r++) {                          \
            tn_real dz = *tn_grad_row(l, r) * id##_of(opts, *tn_val_row(z, r), label[r]).dz;       \
            tn_real *at = tn_grad_row(z, r);                                                       \
            *at = tn_adds(l, z) ? *at + dz : dz;                                                   \
        }                                                                                          \
    }

/* TN_LOSS_MEMBERS, and these passes. */
#define TN_ROW_LOSS_MEMBERS(id, text)                                                              \
    TN_LOSS_MEMBERS(id, text), .op.forward = id##_forward, .op.backward = id##_backward
