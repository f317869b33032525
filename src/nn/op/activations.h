/* activations.h - elementwise activations, as functions over vectors.
 *
 * An activation is one tn_act plus one operator file that names it. Where the slope can be told
 * from y alone (`by_y`), a dense layer applies the activation to a tile of its product while that
 * is still in cache and keeps no x.
 */
#ifndef TN_NN_ACTIVATIONS_H
#define TN_NN_ACTIVATIONS_H

#include "nn/graph/op.h"

/* Part of some matrices, row by row. The slope multiplies into d. */
typedef struct tn_act_area {
    size_t rows, cols;
    const tn_real *x; /* NULL to an activation that is `by_y` */
    tn_real *y;       /* may be x */
    tn_real *d;
    size_t x_stride, y_stride, d_stride;
    tn_real a; /* the activation's parameter */
} tn_act_area;

struct tn_act {
    const char *name;
    bool by_y; /* slope does not look at x */
    void (*forward)(const tn_act_area *area);
    void (*slope)(const tn_act_area *area); /* d *= y' */
};

extern const tn_act tn_act_relu;
extern const tn_act tn_act_leaky_relu;
extern const tn_act tn_act_sigmoid;
extern const tn_act tn_act_tanh;
extern const tn_act tn_act_softplus;
extern const tn_act tn_act_gelu;
extern const tn_act tn_act_gelu_tanh;
extern const tn_act tn_act_silu;

/* What the operators of activations have in common. */
typedef struct tn_act_attr {
    double slope;
} tn_act_attr;
tn_shape tn_same_shape(const tn_node *y); /* of the first operand */
void tn_act_forward(tn_node *y, tn_range rows);
void tn_act_backward(tn_node *y, tn_range rows);

#endif
