/* step.h - one training step, cut in two so that reading goes on while the processor computes:
 *
 *     prepare 0 | prepare 1, learn 0 | prepare 2, learn 1 | ...
 *
 * prepare (on any thread of the team) turns a batch into positions; then its rows are pulled from
 * the worker's client, and update runs the graph forward and backward and pushes the gradients.
 * train/step/step_loop.h has the order of these calls in a run.
 *
 * Each step under way has its own localizer, rows and gradients, which grow to
 * the largest batch and then stay.
 */
#pragma once

#include "io/localize/localize.h"

#include <stddef.h>

typedef struct tn_joint_batch tn_joint_batch; /* ps/shard/client.h */
typedef struct tn_model_plan tn_model_plan;
typedef struct tn_worker tn_worker;

typedef struct tn_step {
    tn_localizer *localizer;
    tn_batch *batch;       /* lent by the reader until the step is recycled */
    const tn_local *local; /* in the localizer */
    float *rows;           /* the batch's own embedding table, local->keys.floats */
    float *grads;          /* its gradient, same shape; NULL when only scoring */
    bool training;
    bool *missing;           /* when scoring: keys without a row */
    uint32_t n_missing;      /* room in `missing` */
    tn_bag *known_bag;       /* when scoring: bags without those keys */
    char *known;             /* arrays of known_bag */
    size_t known_capacity;   /* room in `known` */
    uint32_t *unknown;       /* when scoring: values of each slot that were left out for it */
    uint32_t *unknown_slots; /* when scoring: of each row, in `known`, slots that hold keys, but
                                none with a row; NULL: there is no such slot */
    size_t capacity;         /* floats in each */
    double weight_sum;       /* W */
} tn_step;

/* The figures of a step. */
typedef struct tn_learned {
    double loss;        /* sum of w_i l_i over W, before the update, without regularisers */
    double grad_norm;   /* norm of all gradients, before the global clip */
    uint64_t staleness; /* most updates of a shard between a pull and its push, of late */
} tn_learned;

tn_status tn_step_new(tn_step **out, const tn_model_plan *plan, bool training,
                      tn_error *err) TN_MUST_USE;
void tn_step_free(tn_step *s); /* NULL is fine; the batch is not its own */

/* Localizes `batch`, which is lent until the step is used for another one. */
tn_status tn_step_prepare(tn_step *s, tn_batch *batch, tn_error *err) TN_MUST_USE;

/* Forward and backward over the rows that the client has given for `s` (NULL: this rank has no
 * batch, but a part in the joint step), then the push, whose outcome is in *out. `joint`: as the
 * client said it, with a weight; `factor` multiplies every learning rate. Scores of the batch are
 * added to w->metrics, from before the update. */
tn_status tn_step_update(tn_worker *w, tn_step *s, const tn_joint_batch *joint, double factor,
                         tn_learned *out, tn_error *err) TN_MUST_USE;

/* One process: pulls, then updates. The batch has a weight: readers leave out rows without. */
tn_status tn_step_learn(tn_worker *w, tn_step *s, double factor, tn_learned *out,
                        tn_error *err) TN_MUST_USE;

/* Scores without changing anything: *logit has one value per row, until the next call on `w`. */
tn_status tn_step_score(tn_worker *w, tn_step *s, const float **logit, tn_error *err) TN_MUST_USE;
