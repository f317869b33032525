/* joint_loss.h - the sum of several losses of a row, one for each task (base/keys/tasks.h).
 *
 *     tn_node *l = tn_apply(g, &loss->op, "loss.buy", TN_IN(score), opts);
 *     tn_node_set_task(l, 1);
 *     tn_apply(g, &tn_op_joint_loss, "loss", in, n, &(tn_joint_loss_attr){.weight = {1, 0.5}});
 *
 *     l = sum_k c_k f_k l_k          c_k the weight of the task, f_k the row's factor there
 *     dl_k += c_k f_k dl
 *
 * As every loss it is multiplied by the row's weight and divided by the sum of the weights of all
 * rows of the batch, also of those that count for one task alone: a task of few rows has small
 * gradients, and no batch with one row of it has a large one. A row of factor 0 adds nothing, also
 * where l_k is no number.
 */
#pragma once

#include "base/keys/tasks.h"
#include "nn/graph/op.h"

typedef struct tn_joint_loss_attr {
    double weight[TN_TASKS_MAX];
} tn_joint_loss_attr;

/* A loss whose weight is learned (Kendall 2018): operands l and a parameter s [1,1], from 0.
 *
 *     y = e^-s l + s / 2
 *     dl += e^-s dy,   ds += sum over rows of dy (1/2 - e^-s l)
 *
 * The sum is least where e^-s is 1 over twice the mean loss: a task of large losses weighs little.
 */
extern const tn_op tn_op_learned_loss;

extern const tn_op tn_op_joint_loss; /* no row of ops.def: no layer can name it */
