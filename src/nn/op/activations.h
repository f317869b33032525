/* activations.h - elementwise activations, as functions over vectors.
 *
 * An operator with a tn_act is an elementwise activation. Where the slope follows from y alone, a
 * dense layer applies the activation to a tile of its product while that is still in cache, and
 * keeps no x: relu, leaky_relu, sigmoid and tanh.
 */
#ifndef TN_NN_ACTIVATIONS_H
#define TN_NN_ACTIVATIONS_H

#include "nn/graph/op.h"

/* Part of some matrices, row by row. The slope multiplies into d. */
typedef struct tn_act_area {
    size_t rows, cols;
    const tn_real *x; /* NULL to a slope that follows from y alone */
    tn_real *y;       /* may be x */
    tn_real *d;
    size_t x_stride, y_stride, d_stride;
    tn_real a; /* the activation's parameter */
} tn_act_area;

struct tn_act {
    void (*forward)(const tn_act_area *area);
    void (*slope)(const tn_act_area *area); /* d *= y' */
};

/* The constants of an activation. */
typedef struct tn_act_attr {
    double slope;
} tn_act_attr;

tn_shape tn_same_shape(const tn_node *y); /* of the first operand */

#endif
