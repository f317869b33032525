/* drive.c - see drive.h. */
#include "drive.h"

#include "ps/optim/optim.h"
#include "support/test.h"

void assert_near(double got, double want)
{
    fail_if(!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))), "%.9f is not %.9f", got, want);
}

void drive_begin(drive *x, tn_arena *arena, const char *optim, const char *options)
{
    memset(x, 0, sizeof *x);
    x->rule = kit_rule(arena, optim, options);
    x->n_states = tn_optim_states(x->rule.optim, x->rule.opts, x->spec);
    for (uint32_t i = 0; i < x->n_states; i++) {
        x->state[i] = x->memory[i];
    }
}

void drive_step(drive *x, uint64_t at, size_t n, const float *grad)
{
    tn_push push = kit_push(at);
    tn_update u = {.lr = tn_rule_common(&x->rule)->lr, .t = ++x->t, .step = at + 1};
    tn_trained row = {.n = n, .w = x->w, .grad = grad, .show = 1, .is_row = true};
    float g[DRIVE_DIM_MAX];
    (void)tn_rule_grad(&x->rule, &push, &row, 1, g);
    tn_rule_update(&x->rule, &u, n, x->w, x->state, g);
}
