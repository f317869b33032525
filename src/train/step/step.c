/* step.c - one training step, end to end. Read this file first.
 *
 *   bytes -> batch -> keys -> rows -> graph -> loss -> gradients -> servers
 *            (io)     (io)    (ps)    (nn)                          (ps)
 */
#include "train/step/step.h"

#include "base/core/alloc.h"
#include "base/thread/team.h"
#include "base/trace/trace.h"
#include "io/rows/batch.h"
#include "io/schema/schema.h"
#include "metrics/metrics.h"
#include "nn/graph/embed.h"
#include "nn/graph/graph.h"
#include "nn/graph/params.h"
#include "nn/graph/peer_column_stats.h"
#include "ps/optim/rule.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <math.h>
#include <string.h>

/* ---- keys without a row ----
 *
 * A key that was never trained says nothing. Outside training it is left out of its slot, as if the
 * record did not hold it: a mean is that of the known keys, and a slot of unknown keys is empty.
 * In a list of a sequence it keeps its place, as zeros. (libtnet does the same.)
 */

typedef struct unknown_in {
    const tn_bag *bag;
    const tn_slot_spec *const *slot;
    uint32_t n_slots;
    uint32_t rows;
    const tn_keyset *keys;
    const bool *missing; /* per key */
    bool *missing_at;    /* by the place of a row, in floats; set here */
    uint32_t *slots;     /* per row: those that lose all their keys; counted here */
} unknown_in;

/* Words of one flag per float. */
static size_t flag_words(const unknown_in *in)
{
    return in->keys->floats / sizeof(uint32_t) + 1;
}

/* Bytes that all bags together can take. */
static size_t bag_bytes(const unknown_in *in)
{
    size_t words = in->rows + flag_words(in); /* flags of unknown slots */
    for (uint32_t i = 0; i < in->n_slots; i++) {
        words += in->rows + 1 + 2 * (size_t)in->bag[i].offset[in->rows];
    }
    return words * sizeof(uint32_t);
}

/* *unknown := how many values were left out. */
static char *copy_known(const unknown_in *in, const tn_bag *from, tn_bag *to, char *at,
                        uint32_t *unknown)
{
    uint32_t *offset = (void *)at;
    uint32_t *index = offset + in->rows + 1;
    float *weight = (void *)(index + from->offset[in->rows]);
    uint32_t n = 0;
    for (uint32_t r = 0; r < in->rows; r++) {
        offset[r] = n;
        for (uint32_t k = from->offset[r]; k < from->offset[r + 1]; k++) {
            if (!in->missing_at[from->index[k]]) {
                index[n] = from->index[k];
                weight[n] = from->weight != NULL ? from->weight[k] : 1;
                n++;
            }
        }
        in->slots[r] += from->offset[r + 1] > from->offset[r] && n == offset[r];
    }
    offset[in->rows] = n;
    *unknown = from->offset[in->rows] - n;
    *to =
        (tn_bag){.offset = offset, .index = index, .weight = from->weight != NULL ? weight : NULL};
    return (char *)(weight + from->offset[in->rows]);
}

static uint32_t count_unknown(const unknown_in *in, const tn_bag *bag)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < bag->offset[in->rows]; k++) {
        n += in->missing_at[bag->index[k]];
    }
    return n;
}

/* *out: bags without the unknown keys, the given ones if there are none. */
static tn_status drop_unknown(tn_step *s, unknown_in *in, const tn_bag **out, tn_error *err)
{
    *out = in->bag;
    s->unknown_slots = NULL;
    memset(s->unknown, 0, in->n_slots * sizeof *s->unknown);
    if (in->keys->n == 0 || memchr(in->missing, 1, in->keys->n * sizeof *in->missing) == NULL) {
        return TN_OK;
    }
    TN_TRY(TN_RESERVE(s->known, s->known_capacity, bag_bytes(in), "bags", err));
    in->slots = (uint32_t *)(void *)s->known;
    memset(in->slots, 0, in->rows * sizeof *in->slots);
    s->unknown_slots = in->slots;
    in->missing_at = (bool *)(in->slots + in->rows);
    memset(in->missing_at, 0, in->keys->floats * sizeof *in->missing_at);
    for (uint32_t k = 0; k < in->keys->n; k++) {
        in->missing_at[in->keys->at[k]] = in->missing[k];
    }
    char *at = (char *)(in->slots + in->rows + flag_words(in));
    for (uint32_t i = 0; i < in->n_slots; i++) {
        if (in->slot[i]->sequence != NULL) { /* zeros, which keep their place */
            s->known_bag[i] = in->bag[i];
            s->unknown[i] = count_unknown(in, &in->bag[i]);
            continue;
        }
        at = copy_known(in, &in->bag[i], &s->known_bag[i], at, &s->unknown[i]);
    }
    *out = s->known_bag;
    return TN_OK;
}

/* On the way back slots have a block each, which is enough for a few threads; where one slot holds
 * most values, its rows are cut. */
enum { BLOCKS_OF_A_THREAD = 4 };

tn_status tn_step_new(tn_step **out, const tn_model_plan *plan, bool training, tn_error *err)
{
    *out = NULL;
    tn_step *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a step", err));
    tn_localizer_opts opts = {
        .owners = &plan->owners,
        .layout = plan->layout,
        .slot_group = plan->slot_group,
        .slot_used = plan->slot_used,
        .n_slots = plan->schema->n_slots,
        .n_blocks = training ? BLOCKS_OF_A_THREAD * tn_run_threads(plan->run) : 0,
    };
    s->training = training;
    tn_status status = tn_localizer_new(&s->localizer, &opts, err);
    if (status == TN_OK && !training) {
        status = TN_ALLOC(s->known_bag, opts.n_slots, "bags", err);
    }
    if (status == TN_OK && !training) {
        status = TN_ALLOC(s->unknown, opts.n_slots, "bags", err);
    }
    if (status != TN_OK) {
        tn_step_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_step_free(tn_step *s)
{
    if (s == NULL) {
        return;
    }
    tn_localizer_free(s->localizer);
    tn_free(s->rows);
    tn_free(s->grads);
    tn_free(s->missing);
    tn_free(s->known_bag);
    tn_free(s->unknown);
    tn_free(s->known);
    tn_free(s);
}

/* Room for `floats` of rows and gradients, also where that is 0: a quarter more than asked, so that
 * it settles soon. */
static tn_status make_room(tn_step *s, size_t floats, tn_error *err)
{
    if (s->capacity > 0 && floats <= s->capacity) {
        return TN_OK;
    }
    size_t capacity = floats + floats / 4 + 1;
    tn_free(s->rows);
    tn_free(s->grads);
    s->capacity = 0;
    s->rows = tn_try_alloc(capacity, sizeof *s->rows, "rows of a batch", err);
    s->grads = NULL;
    if (s->training) {
        s->grads = tn_try_alloc(capacity, sizeof *s->grads, "gradients of a batch", err);
    }
    if (s->rows == NULL || (s->training && s->grads == NULL)) {
        return TN_E_MEMORY;
    }
    s->capacity = capacity;
    return TN_OK;
}

static tn_status make_flags(tn_step *s, uint32_t keys, tn_error *err)
{
    if (s->training || keys <= s->n_missing) {
        return TN_OK;
    }
    tn_free(s->missing);
    s->n_missing = 0;
    uint32_t n = keys + keys / 4;
    TN_TRY(TN_ALLOC(s->missing, n, "keys of a batch", err));
    s->n_missing = n;
    return TN_OK;
}

tn_status tn_step_prepare(tn_step *s, tn_batch *batch, tn_error *err)
{
    s->batch = batch;
    s->weight_sum = tn_weight_sum(batch->weight, batch->rows);
    TN_TRY(tn_localize(s->localizer, batch, &s->local, err));
    TN_TRY(make_flags(s, s->local->keys.n, err));
    return make_room(s, s->local->keys.floats, err);
}

static tn_graph_feed feed_of(const tn_worker *w, const tn_step *s, const tn_sparse *sparse,
                             bool training)
{
    return (tn_graph_feed){
        .rows = s->batch->rows,
        .sparse = sparse,
        .numeric = s->batch->numeric,
        .label = training ? s->batch->label : NULL,
        .weight = training ? s->batch->weight : NULL,
        .group = training ? s->batch->group : NULL,
        .info = {.seed = w->plan->run->run.seed, .step = w->steps, .training = training},
    };
}

static tn_sparse sparse_of(const tn_step *s, bool training)
{
    return (tn_sparse){
        .floats = s->local->keys.floats,
        .rows = s->rows,
        .grads = training ? s->grads : NULL,
        .bag = s->local->bag,
        .block = s->local->block,
        .n_blocks = s->local->n_blocks,
    };
}

static tn_status diverged(const tn_worker *w, const char *what, tn_error *err)
{
    const char *node = tn_graph_not_finite(w->train_graph);
    return tn_fail(err, TN_E_DIVERGED,
                   "%s is not finite at step %llu, first in node '%s'\nhint: lower the learning "
                   "rate or set train.clip.global",
                   what, (unsigned long long)w->steps + 1, node != NULL ? node : "?");
}

/* ---- statistics of the joint batch, which the graph asks for within a pass ---- */

typedef struct statistics {
    tn_worker *w;
    tn_feed_peers peers;
    tn_status status; /* status of the first exchange that failed; none is tried after it */
    tn_error err;
} statistics;

static const double *exchange(void *arg, const double *own, uint32_t n)
{
    statistics *x = arg;
    const tn_client *client = &x->w->client;
    const double *all = NULL;
    if (x->status == TN_OK) {
        x->status = client->ops->gather(client->self, x->w->team, own, n, &all, &x->err);
    }
    return all;
}

static tn_status check_statistics(const statistics *x, tn_error *err)
{
    return x->status == TN_OK ? TN_OK : tn_fail(err, x->status, "%s", x->err.text);
}

/* ---- learning ---- */

/* All ranks compute one batch of a joint step; else ranks drop different units. */
static void place_in_joint(statistics *x, const tn_joint_batch *joint, tn_graph_feed *feed)
{
    const tn_worker *w = x->w;
    if (!w->client.ops->is_joint) {
        feed->info.first_row = (uint64_t)w->rank << 32;
        return;
    }
    x->peers = (tn_feed_peers){.exchange = exchange, .arg = x, .n = w->plan->owners.n_peers};
    feed->joint_rows = joint->rows;
    feed->joint_weight = joint->weight_sum;
    feed->info.first_row = joint->first_row;
    feed->peers = &x->peers;
}

/* The scores of a batch on their way to w->metrics, while gradients are computed and pushed. */
typedef struct scoring {
    tn_worker *w;
    tn_scored rows;
    tn_status status;
    tn_error err;
} scoring;

static bool add_scores(void *arg)
{
    scoring *x = arg;
    tn_lane *lane = tn_team_lane(x->w->team);
    tn_span_begin(lane, TN_PHASE_METRICS);
    for (uint32_t i = 0; i < 2 && x->status == TN_OK; i++) {
        if (x->w->metrics[i] != NULL) {
            x->status = tn_metrics_add(x->w->metrics[i], &x->rows, &x->err);
        }
    }
    tn_span_end(lane);
    return true;
}

static void post_scores(scoring *x, const tn_batch *batch)
{
    x->rows = (tn_scored){.n = batch->rows,
                          .logit = x->w->train_logit->val,
                          .label = batch->label,
                          .weight = batch->task != NULL ? batch->task[0].weight : batch->weight};
    tn_team_post(x->w->team, add_scores, x);
}

/* Labels and factors of all tasks, in `task`; NULL: there is one label. */
static const tn_feed_task *feed_tasks(const tn_batch *batch, const tn_model_plan *plan,
                                      tn_feed_task task[TN_TASKS_MAX])
{
    const uint32_t n = tn_tasks_count(plan->schema->data->tasks);
    for (uint32_t k = 0; k < n && batch->task != NULL; k++) {
        task[k] = (tn_feed_task){batch->task[k].label, batch->task[k].factor};
    }
    return batch->task != NULL ? task : NULL;
}

/* Gradients go to s->grads and the worker's params; *loss: sum of w_i l_i over W. Scores are
 * posted. */
static tn_status compute(tn_worker *w, tn_step *s, const tn_joint_batch *joint, scoring *scores,
                         double *loss, tn_error *err)
{
    tn_sparse sparse = sparse_of(s, true);
    tn_graph_feed feed = feed_of(w, s, &sparse, true);
    tn_feed_task task[TN_TASKS_MAX];
    statistics x = {.w = w};
    feed.task = feed_tasks(s->batch, w->plan, task);
    place_in_joint(&x, joint, &feed);
    tn_span_begin(w->lane, TN_PHASE_FORWARD);
    tn_forward(w->train_graph, &feed);
    tn_span_next(w->lane, TN_PHASE_LOSS);
    *loss = tn_graph_loss(w->train_graph);
    tn_span_end(w->lane);
    TN_TRY(check_statistics(&x, err));
    if (!isfinite(*loss)) {
        return diverged(w, "the loss", err);
    }
    post_scores(scores, s->batch);
    tn_span_begin(w->lane, TN_PHASE_BACKWARD);
    tn_backward(w->train_graph);
    tn_span_end(w->lane);
    return check_statistics(&x, err);
}

/* The same without a batch: takes part in what all ranks compute together. */
static tn_status compute_none(tn_worker *w, const tn_joint_batch *joint, tn_error *err)
{
    tn_graph_feed feed = {
        .info = {.seed = w->plan->run->run.seed, .step = w->steps, .training = true}};
    statistics x = {.w = w};
    place_in_joint(&x, joint, &feed);
    tn_forward(w->train_graph, &feed);
    tn_backward(w->train_graph);
    return check_statistics(&x, err);
}

static tn_status push(tn_worker *w, const tn_client_gradients *grads, const tn_push *push,
                      tn_client_update *out, tn_error *err)
{
    const tn_client *client = &w->client;
    tn_status status = client->ops->push(client->self, w->team, grads, push, out, err);
    const bool is_alone = client->ops == &tn_client_alone; /* else another rank may be the cause */
    return status == TN_E_DIVERGED && is_alone ? diverged(w, "a gradient", err) : status;
}

static void count_step(tn_worker *w, const tn_step *s, uint64_t updates)
{
    w->steps = updates > w->steps + 1 ? updates : w->steps + 1;
    if (s != NULL) {
        const tn_keyset *keys = &s->local->keys;
        w->rows += s->batch->rows;
        w->keys += keys->n;
        w->floats += keys->floats;
    }
}

static tn_status learn(scoring *scores, tn_step *s, const tn_joint_batch *joint, double factor,
                       tn_client_update *out, tn_error *err)
{
    tn_worker *w = scores->w;
    tn_client_gradients own = {.dense = tn_params_grads(w->params)};
    if (s != NULL) {
        TN_TRY(compute(w, s, joint, scores, &own.loss, err));
        own.rows = s->grads;
        own.finite = tn_graph_rows_finite(w->train_graph);
    } else {
        TN_TRY(compute_none(w, joint, err));
    }
    const tn_push how = {
        .step = w->steps, .weight_sum = joint->weight_sum, .lr_factor = factor, .day = w->day};
    return push(w, &own, &how, out, err);
}

tn_status tn_step_update(tn_worker *w, tn_step *s, const tn_joint_batch *joint, double factor,
                         tn_learned *out, tn_error *err)
{
    tn_client_update update;
    scoring scores = {.w = w};
    tn_status status = learn(&scores, s, joint, factor, &update, err);
    tn_team_settle(w->team);
    TN_TRY(status);
    if (scores.status != TN_OK) {
        return tn_fail(err, scores.status, "%s", scores.err.text);
    }
    count_step(w, s, update.updates);
    *out =
        (tn_learned){.loss = update.loss, .grad_norm = update.norm, .staleness = update.staleness};
    return TN_OK;
}

tn_status tn_step_learn(tn_worker *w, tn_step *s, double factor, tn_learned *out, tn_error *err)
{
    const tn_client *client = &w->client;
    const tn_client_batch batch = {.keys = &s->local->keys,
                                   .rows = s->rows,
                                   .examples = s->batch->rows,
                                   .weight_sum = s->weight_sum};
    tn_joint_batch joint;
    TN_ASSERT(s->weight_sum > 0);
    TN_TRY(client->ops->pull(client->self, &batch, err));
    TN_TRY(client->ops->rows(client->self, w->team, &joint, err));
    return tn_step_update(w, s, &joint, factor, out, err);
}

tn_status tn_step_score(tn_worker *w, tn_step *s, const float **logit, tn_error *err)
{
    const tn_keyset *keys = &s->local->keys;
    TN_TRY(w->peek.rows(w->peek.self, w->team, keys, s->rows, s->missing, err));
    tn_sparse sparse = sparse_of(s, false);
    unknown_in in = {.bag = s->local->bag,
                     .n_slots = w->plan->schema->n_slots,
                     .slot = w->plan->schema->slot,
                     .rows = s->batch->rows,
                     .keys = keys,
                     .missing = s->missing};
    TN_TRY(drop_unknown(s, &in, &sparse.bag, err));
    tn_graph_feed feed = feed_of(w, s, &sparse, false);
    tn_span_begin(w->lane, TN_PHASE_FORWARD);
    tn_forward(w->eval_graph, &feed);
    tn_span_end(w->lane);
    *logit = w->eval_logit->val;
    w->scored += s->batch->rows;
    return TN_OK;
}
