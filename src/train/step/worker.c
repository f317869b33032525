/* worker.c - makes the model, the table and the threads of a process. */
#include "train/step/worker.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/math/fmath.h"
#include "base/thread/team.h"
#include "base/trace/trace.h"
#include "config/diag.h"
#include "io/schema/schema.h"
#include "models/layerlist.h"
#include "nn/graph/params.h"
#include "nn/layer/layers.h"
#include "nn/loss/further_loss.h"
#include "nn/loss/joint_loss.h"
#include "nn/loss/loss.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"
#include "ps/table/table.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"
#include "train/step/frozen.h"
#include "train/step/model_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Weighs the loss of that name by a parameter. */
static tn_node *learn_weight(const tn_worker *w, tn_graph *g, const char *name, tn_node *loss)
{
    char weighed[TN_LAYER_NAME_MAX];
    char param[TN_LAYER_NAME_MAX];
    const tn_init zero = {.kind = TN_INIT_CONSTANT};
    tn_node *s = tn_param(g, w->params, tn_layer_name(param, name, ".s"), (tn_shape){1, 1}, zero);
    return tn_apply(g, &tn_op_learned_loss, tn_layer_name(weighed, name, ".weighed"),
                    TN_IN(loss, s), NULL);
}

/* Adds the losses of further scores to that of the output. */
static tn_node *add_further(const tn_variant *loss, tn_graph *g, const tn_list_graph *made)
{
    char name[TN_LAYER_NAME_MAX];
    tn_node *own =
        tn_apply(g, &tn_loss_of(loss)->op, "loss.output", TN_IN(made->logit), loss->opts);
    tn_node *sum = own;
    for (uint32_t i = 0; i < made->n_further; i++) {
        const tn_further_score *f = &made->further[i];
        (void)snprintf(name, sizeof name, "loss.of.%s", f->name);
        tn_node *other = tn_apply(g, &tn_loss_of(loss)->op, name, TN_IN(f->score), loss->opts);
        (void)snprintf(name, sizeof name, "loss.with.%s", f->name);
        sum = tn_apply(g, &tn_op_further_loss, i + 1 < made->n_further ? name : "loss",
                       TN_IN(sum, own, other), &(tn_further_loss_attr){f->weight});
    }
    return sum;
}

/* The loss of each task, and their sum; of one label its loss. */
static tn_node *write_loss(const tn_worker *w, tn_graph *g, const tn_list_graph *made)
{
    const tn_run *run = w->plan->run;
    const uint32_t n = made->n_outputs;
    const tn_tasks *tasks = tn_run_tasks_of(run);
    TN_ASSERT(n == tn_tasks_count(tasks));
    if (made->n_further > 0) {
        return add_further(tn_run_task_loss(run, 0), g, made);
    }
    tn_node *part[TN_TASKS_MAX] = {NULL};
    tn_joint_loss_attr joint = {{0}};
    for (uint32_t k = 0; k < n; k++) {
        const tn_variant *loss = tn_run_task_loss(run, k);
        char name[TN_LAYER_NAME_MAX];
        const char *suffix = n > 1 ? tasks->task[k].name : "";
        (void)snprintf(name, sizeof name, n > 1 ? "loss.%s" : "loss%s", suffix);
        part[k] =
            tn_apply(g, &tn_loss_of(loss)->op, name, TN_IN(made->output[k].logit), loss->opts);
        tn_node_set_task(part[k], k);
        joint.weight[k] = n > 1 ? tasks->task[k].weight : 1;
        if (n > 1 && tasks->task[k].learned) {
            part[k] = learn_weight(w, g, name, part[k]);
        }
    }
    return n > 1 ? tn_apply(g, &tn_op_joint_loss, "loss", part, n, &joint) : part[0];
}

/* One graph from the list of layers; *loss stays NULL when it only scores. */
static bool write_graph(tn_worker *w, tn_graph *g, bool training, const tn_binder *b,
                        tn_wanted *wanted)
{
    const tn_model_plan *p = w->plan;
    tn_net net = {.g = g, .params = w->params, .dense_init = p->dense_init};
    tn_list_source source = {p->list, p->inputs, p->features, p->layout, .whole = training};
    tn_list_graph made;
    if (!tn_list_build(&net, &source, b, &made)) {
        return false;
    }
    wanted->logit = made.logit;
    w->output_bias = made.output_bias;
    for (uint32_t k = 0; k < made.n_outputs && made.n_outputs > 1; k++) {
        const tn_task_output *o = &made.output[k];
        w->task[k] = (tn_worker_task){.score = o->logit, .given = o->given, .bias = o->bias};
    }
    if (training) {
        wanted->loss = write_loss(w, g, &made);
    }
    return true;
}

/* Keeps the scores of all tasks, beside the nodes that are fetched. `name` holds them all. */
static void keep_scores(const tn_worker *w, const char **name, tn_wanted *wanted)
{
    const uint32_t n = tn_tasks_count(tn_run_tasks_of(w->plan->run));
    uint32_t n_names = 0;
    for (uint32_t i = 0; i < wanted->n_fetch; i++) {
        name[n_names++] = wanted->fetch[i];
    }
    for (uint32_t k = 0; k < n && n > 1; k++) {
        TN_ASSERT(w->task[k].score != NULL);
        name[n_names++] = w->task[k].score->name;
        if (w->task[k].given != NULL) {
            name[n_names++] = w->task[k].given->name;
        }
    }
    wanted->fetch = name;
    wanted->n_fetch = n_names;
}

static tn_status make_graph(tn_worker *w, bool training, const tn_worker_opts *opts,
                            const tn_binder *b, tn_error *err)
{
    const tn_run *run = w->plan->run;
    const tn_loss_common *loss = run->loss.shared;
    uint32_t rows = !training ? run->eval.batch : opts->compares ? 1 : run->train.batch;
    tn_graph *g = tn_graph_new(&(tn_graph_opts){.max_rows = rows,
                                                .train = training,
                                                .seed = run->run.seed,
                                                .team = w->team,
                                                .reduction = loss->reduction,
                                                .products = (tn_products_choice)run->compute.gemm,
                                                .bf16 = run->compute.bf16});
    tn_wanted wanted = {0};
    if (training) {
        w->train_graph = g;
    } else {
        w->eval_graph = g;
        wanted.fetch = opts->fetch;
        wanted.n_fetch = opts->n_fetch;
        wanted.feed = opts->feed;
        wanted.n_feed = opts->n_feed;
    }
    if (!write_graph(w, g, training, b, &wanted)) {
        return tn_diag_check(b->diag, err);
    }
    if (!training) {
        const char **name =
            TN_NEW_ARRAY(b->arena, const char *, wanted.n_fetch + 2 * (size_t)TN_TASKS_MAX);
        keep_scores(w, name, &wanted);
    } else {
        TN_TRY(tn_frozen_apply(&run->train.freeze, w->params, err));
    }
    TN_TRY(tn_graph_finish(g, &wanted, err));
    if (training) {
        w->train_logit = wanted.logit;
    } else {
        w->eval_logit = wanted.logit;
    }
    return TN_OK;
}

uint32_t tn_worker_runs(const tn_worker *w, bool running, tn_dense_run *run)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        if (running ? s->state : tn_param_learns(s)) {
            run[n++] = (tn_dense_run){s->at, s->at + (size_t)s->rows * s->cols};
        }
    }
    return n;
}

/* Opens the shard of this process, with the first values of its range of the flat vector. */
static tn_status make_shares(tn_worker *w, tn_error *err)
{
    TN_TRY(tn_shares_new(&w->shares, w->plan->owners.n_peers, tn_params_size(w->params), err));
    if (w->plan->owners.n_peers == 1) {
        return TN_OK;
    }
    w->rank = w->plan->run->cluster.rank;
    const size_t *cut = w->shares->dense + w->rank;
    TN_TRY(TN_ALLOC(w->own, cut[1] - cut[0] + 1, "the weights of a shard", err));
    tn_worker_keep_own(w);
    return TN_OK;
}

static tn_status make_shard(tn_worker *w, const tn_binder *b, tn_error *err)
{
    const tn_model_plan *p = w->plan;
    tn_table_opts table = {.rules = p->rules,
                           .seed = p->run->run.seed,
                           .huge_pages = p->run->compute.huge_pages != 2,
                           .day = &w->day};
    w->shard.rules = p->rules;
    w->shard.missing_init = p->missing_init;
    TN_TRY(tn_table_new(&w->shard.table, &table, err));
    TN_TRY(make_shares(w, err));
    tn_dense_run *run = TN_NEW_ARRAY(b->arena, tn_dense_run, tn_params_count(w->params) + 1);
    tn_dense_run *own = TN_NEW_ARRAY(b->arena, tn_dense_run, tn_params_count(w->params) + 1);
    uint32_t n_runs = tn_worker_runs(w, false, run);
    tn_dense_opts dense = {.rule = &p->rules->dense,
                           .weights = w->own != NULL ? w->own : tn_params_weights(w->params),
                           .size = w->shares->dense[w->rank + 1] - w->shares->dense[w->rank],
                           .runs = own,
                           .n_runs = tn_shares_runs(w->shares, w->rank, run, n_runs, own)};
    return tn_dense_new(&w->shard.dense, &dense, err);
}

/* Other processes have a client when they have met (train/group/ranks.h). */
static tn_status make_client(tn_worker *w, const tn_binder *b, tn_error *err)
{
    if (w->plan->owners.n_peers > 1) {
        return TN_OK;
    }
    tn_dense_run *moving = TN_NEW_ARRAY(b->arena, tn_dense_run, tn_params_count(w->params) + 1);
    const uint32_t n = tn_worker_runs(w, true, moving);
    return tn_client_open_alone(&w->client, &w->shard, moving, n, err);
}

static tn_status peek_shard(void *self, tn_team *team, const tn_keyset *keys, float *rows,
                            bool *missing, tn_error *err)
{
    (void)err;
    tn_shard_peek(self, team, keys, rows, missing);
    return TN_OK;
}

static tn_status make_all(tn_worker *w, const tn_worker_opts *opts, const tn_binder *b,
                          tn_error *err)
{
    const tn_run *run = w->plan->run;
    bool good = tn_day_read(run->run.day, &w->day);
    TN_ASSERT(good); /* checked with the configuration */
    w->train = run->data.train;
    w->peek = (tn_peek){peek_shard, &w->shard};
    w->params = tn_params_new();
    TN_TRY(tn_team_open(&w->team, opts->threads > 0 ? opts->threads : tn_run_threads(run), err));
    if (run->compute.pin && !opts->aside &&
        w->plan->owners.n_peers == 1) { /* else when the peers are open */
        TN_TRY(tn_team_pin(w->team, err));
    }
    TN_TRY(opts->training || opts->compares ? make_graph(w, true, opts, b, err) : TN_OK);
    TN_TRY(make_graph(w, false, opts, b, err));
    TN_TRY(tn_params_seal(w->params, err)); /* a graph without weights has not */
    tn_params_init(w->params, run->run.seed);
    TN_TRY(make_shard(w, b, err));
    return make_client(w, b, err);
}

tn_status tn_worker_new(tn_worker **out, const tn_model_plan *plan, const tn_worker_opts *opts,
                        const tn_binder *b, tn_error *err)
{
    *out = NULL;
    tn_worker *w = NULL;
    TN_TRY(TN_ALLOC(w, 1, "a worker", err));
    w->plan = plan;
    tn_status status = make_all(w, opts, b, err);
    if (status != TN_OK) {
        tn_worker_free(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

/* Paths stay until the worker goes: readers of the day before may hold them still. */
void tn_worker_set_day(tn_worker *w, uint32_t day)
{
    const tn_data_opts *data = &w->plan->run->data;
    const bool same = w->data_day == day && w->days != NULL;
    w->day = tn_day_of(day);
    w->data_day = day;
    if (data->pattern.n > 0 && !same) {
        w->days = w->days != NULL ? w->days : tn_arena_new(1 << 12);
        w->train = tn_days_paths(&data->pattern, day, w->days);
    }
}

void tn_worker_trace(tn_worker *w, tn_trace *trace)
{
    if (trace == NULL) {
        return;
    }
    w->trace = trace;
    tn_team_trace(w->team, trace);
    if (w->train_graph != NULL) {
        tn_graph_trace(w->train_graph, trace);
    }
    tn_graph_trace(w->eval_graph, trace);
    w->lane = tn_trace_join(trace, "main");
}

void tn_worker_free(tn_worker *w)
{
    if (w == NULL) {
        return;
    }
    tn_trace_leave(w->lane);
    if (w->client.ops == &tn_client_alone) {
        tn_client_close(&w->client);
    }
    tn_dense_free(w->shard.dense);
    tn_table_free(w->shard.table);
    tn_graph_free(w->train_graph);
    tn_graph_free(w->eval_graph);
    tn_params_free(w->params);
    tn_shares_free(w->shares);
    tn_free(w->own);
    tn_arena_free(w->days);
    tn_team_close(w->team);
    tn_free(w);
}

void tn_worker_keep_own(tn_worker *w)
{
    if (w->own != NULL) {
        const size_t *cut = w->shares->dense + w->rank;
        memcpy(w->own, tn_params_weights(w->params) + cut[0], (cut[1] - cut[0]) * sizeof *w->own);
    }
}

static void set_bias(tn_worker *w, const char *name, double value)
{
    if (name == NULL) {
        return;
    }
    const tn_param_slice *bias = tn_params_find(w->params, name);
    TN_ASSERT(bias != NULL);
    tn_params_weights(w->params)[bias->at] = (float)value;
    tn_worker_keep_own(w);
}

static const char *bias_of(const tn_worker *w, uint32_t k)
{
    return k == 0 ? w->output_bias : w->task[k].bias;
}

void tn_worker_biases(const tn_worker *w, double *out)
{
    for (uint32_t k = 0; k < tn_tasks_count(tn_run_tasks_of(w->plan->run)); k++) {
        const char *name = bias_of(w, k);
        const tn_param_slice *bias = name != NULL ? tn_params_find(w->params, name) : NULL;
        out[k] = bias != NULL ? (double)tn_params_weights(w->params)[bias->at] : 0;
    }
}

void tn_worker_set_biases(tn_worker *w, const double *value)
{
    for (uint32_t k = 0; k < tn_tasks_count(tn_run_tasks_of(w->plan->run)); k++) {
        set_bias(w, bias_of(w, k), value[k]);
    }
}

tn_status tn_worker_set_bias(tn_worker *w, const char *number, tn_error *err)
{
    double value[TN_TASKS_MAX] = {0};
    if (tn_read_f64(number, strlen(number), &value[0]) != TN_NUM_OK) {
        return tn_fail(err, TN_E_CONFIG, "model.bias_init is '%s', not prior or a number", number);
    }
    for (uint32_t k = 1; k < TN_TASKS_MAX; k++) {
        value[k] = value[0];
    }
    tn_worker_set_biases(w, value);
    return TN_OK;
}

static void set_prior(tn_worker *w, const char *bias, tn_target target, double mean)
{
    const double least = 1e-6;
    if (target == TN_TARGET_CLICK) {
        const double p = fmin(fmax(mean, least), 1 - least);
        set_bias(w, bias, tn_ln(p / (1 - p)));
    } else if (target == TN_TARGET_NUMBER) {
        set_bias(w, bias, mean);
    }
}

void tn_worker_set_prior(tn_worker *w, double mean)
{
    set_prior(w, w->output_bias, w->plan->schema->data->target, mean);
}

void tn_worker_set_task_priors(tn_worker *w, const double *mean)
{
    const tn_tasks *tasks = tn_run_tasks_of(w->plan->run);
    for (uint32_t k = 0; k < tasks->n; k++) {
        if (!isnan(mean[k])) {
            set_prior(w, w->task[k].bias, tasks->task[k].target, mean[k]);
        }
    }
}
