/* table_together.c - the rows of many keys updated at once, segment by segment.
 *
 *     run      k0 k1 k2 k3 ..       up to 64 keys
 *     record   A  B  A  A  ..       rows of A, then rows of B:
 *              w0    w2 w3          their first segments in one call of the optimizer, then the
 * next
 *
 * For rules that leave gradients as they are and say the same for every group of a record; all
 * others take the way of table_push.c. What is computed is the same, bit for bit.
 */
#include "ps/table/tabledef.h"

#include <string.h>

/* Rows of one record. */
typedef struct batch {
    uint32_t n;
    tn_row *const *row;
    const uint32_t *at; /* of each row's gradient in the batch */
} batch;

static bool same_rule(const tn_rule *a, const tn_rule *b)
{
    return a->optim == b->optim &&
           (a->opts == b->opts || memcmp(a->opts, b->opts, a->optim->choice.size) == 0);
}

/* Nothing happens but the update itself. */
static bool is_bare(const tn_rule *rule)
{
    const tn_rule_opts *o = tn_rule_common(rule);
    return rule->optim->update_rows != NULL && (o->l1 == 0 || rule->optim->own_l2) &&
           o->bounds.n != 2;
}

bool tn_pushes_together(const tn_table *t)
{
    const tn_layout *layout = t->layout;
    bool together = t->plain && layout->n_records <= TN_RECORDS_TOGETHER;
    for (uint32_t g = 0; together && g < layout->n_groups; g++) {
        const tn_plan *plan = tn_plan_of(t, g);
        for (uint32_t i = 0; together && i < plan->n_segments; i++) {
            const tn_rule *rule = tn_rule_of(t, g, i);
            together = is_bare(rule) && plan->segment[i].count == TN_NO_COUNT &&
                       same_rule(rule, tn_rule_of(t, plan->group, i));
        }
    }
    return together;
}

static void update_segment(const tn_table_job *job, const tn_plan *plan, uint32_t segment,
                           const batch *b)
{
    const tn_plan_segment *seg = &plan->segment[segment];
    const tn_rule *rule = tn_rule_of(job->t, plan->group, segment);
    const tn_push *push = job->push;
    const float *grads = job->grads + seg->at;
    const uint32_t at_w = seg->w;
    float *w[TN_LOOK_KEYS];
    const float *grad[TN_LOOK_KEYS];
    for (uint32_t i = 0; i < b->n; i++) {
        w[i] = b->row[i]->data + at_w;
        grad[i] = grads + b->at[i];
    }
    tn_row_run rows = {.n = b->n, .dim = seg->dim, .w = w, .grad = grad};
    for (uint32_t s = 0; s < seg->n_states; s++) {
        rows.state[s] = seg->state[s] - seg->w;
    }
    tn_update u = {
        .lr = tn_rule_common(rule)->lr * push->lr_factor,
        .t = push->step + 1,
        .step = push->step + 1,
    };
    rule->optim->update_rows(rule->opts, &u, &rows);
}

static void update_batch(const tn_table_job *job, const tn_plan *plan, const batch *b)
{
    for (uint32_t i = 0; b->n > 0 && i < plan->n_segments; i++) {
        update_segment(job, plan, i, b);
    }
}

/* Those of a run whose rows have this record. */
static void update_some(const tn_table_job *job, tn_range run, const tn_plan *plan,
                        tn_row *const *row)
{
    tn_row *some[TN_LOOK_KEYS];
    uint32_t at[TN_LOOK_KEYS];
    uint32_t n = 0;
    for (uint32_t k = run.from; k < run.to; k++) {
        if (row[k - run.from] != NULL && tn_plan_of(job->t, job->keys->group[k]) == plan) {
            some[n] = row[k - run.from];
            at[n++] = job->keys->at[k];
        }
    }
    update_batch(job, plan, &(batch){n, some, at});
}

/* Returns how many have a row. */
static uint32_t touch_rows(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    uint32_t found = 0;
    for (uint32_t k = run.from; k < run.to; k++) {
        if (row[k - run.from] != NULL) {
            tn_row_touch(job, k, row[k - run.from]);
            found++;
        }
    }
    return found;
}

uint32_t tn_push_together(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    const tn_table *t = job->t;
    uint32_t n = run.to - run.from;
    uint32_t found = touch_rows(job, run, row);
    if (found == n && t->layout->n_records == 1) { /* as it nearly always is */
        update_batch(job, t->plan, &(batch){n, row, job->keys->at + run.from});
        return 0;
    }
    for (uint32_t r = 0; r < t->layout->n_records && found > 0; r++) {
        update_some(job, run, &t->plan[r], row);
    }
    return n - found;
}
