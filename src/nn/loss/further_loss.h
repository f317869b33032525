/* further_loss.h - adds to a loss that of another score of the same label.
 *
 *     tn_node *l = ..;                                   loss of the output
 *     tn_node *k = ..;                                   loss of another score
 *     tn_apply(g, &tn_op_further_loss, "loss", TN_IN(sum, l, k), &attr)      sum may be l
 *
 *     y = sum + c k          c the weight; TN_LOSS_EXCESS: c = max(0, K - L)
 *
 * K and L are the means of k and l over the batch, by the weights of its rows. A score that is
 * worse than the output gets a loss that counts the more the worse it is (Tri-BCE of FCN). The
 * gradient goes through c as well, as in the authors' program. With on = [K > L] and W the sum of
 * all w:
 *
 *     dk += c dy + on w / W S,   dl -= on w / W S,   S = sum over rows of dy k
 *
 * Among peers the batch is the joint one.
 */
#pragma once

#include "nn/graph/op.h"

#define TN_LOSS_EXCESS (-1.0)

typedef struct tn_further_loss_attr {
    double weight; /* 0 and more, or TN_LOSS_EXCESS */
} tn_further_loss_attr;

extern const tn_op tn_op_further_loss; /* no row of ops.def: no layer can name it */
