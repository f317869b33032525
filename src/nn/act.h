/* act.h - elementwise activations, as functions over vectors.
 *
 * An activation is one tn_act plus one operator file that names it. Where the slope can be told
 * from y alone (`by_y`), a dense layer applies the activation to a tile of its product while that
 * is still in cache and keeps no x.
 */
#ifndef TN_NN_ACT_H
#define TN_NN_ACT_H

#include "nn/op.h"

struct tn_act {
    const char *name;
    bool by_y;    /* slope does not look at x */
    bool by_sign; /* has a parameter: the factor below 0 */
    void (*forward)(size_t n, tn_real *y, const tn_real *x, tn_real a); /* y may be x */
    void (*slope)(size_t n, tn_real *d, const tn_real *x, const tn_real *y,
                  tn_real a); /* d *= y' */
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
tn_shape tn_same_shape(const tn_node *self); /* of the first operand */
void tn_act_forward(tn_node *self, tn_range rows);
void tn_act_backward(tn_node *self, tn_range rows);

#endif
