/* peers.c - opens the group of a run and the client for its staleness. */
#include "cluster/train/peers.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/thread/team.h"
#include "cluster/async/async_client.h"
#include "cluster/exchange/eval_pull.h"
#include "cluster/launch/membership.h"
#include "cluster/security/security.h"
#include "cluster/sync/sync_client.h"
#include "config/diag.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/config/run.h"
#include "train/step/host.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

struct tn_peers {
    tn_worker *w;
    const tn_watch *watch;
    tn_arena *arena;
    tn_zmq zmq;
    tn_security security;
    bool has_security;
    tn_group *group;
    tn_reply_queue replies;
    tn_eval_pull *peek;
    tn_client client; /* none: not begun */
};

#define TABLE_NS UINT64_C(10000000000) /* between two tables of peers */

/* How floats travel to and from other peers. */
static tn_values wire_values(const tn_peers *p)
{
    static const tn_values kind[] = {TN_VALUES_F32, TN_VALUES_F16, TN_VALUES_BF16};
    return kind[p->w->plan->run->cluster.values];
}

/* ---- messages, on tn-net ---- */

static void take_request(void *arg, tn_in_message *incoming)
{
    tn_peers *p = arg;
    if (incoming->frame.type == TN_FRAME_PEEK) {
        tn_eval_pull_take_request(p->peek, incoming);
    } else {
        p->client.ops->take_request(p->client.self, incoming);
    }
}

static void take_answer(void *arg, tn_in_message *incoming)
{
    tn_peers *p = arg;
    if (incoming->frame.sequence == 0 || p->client.ops->take_answer == NULL) {
        tn_reply_queue_put(&p->replies, incoming);
    } else {
        p->client.ops->take_answer(p->client.self, incoming);
    }
}

static void group_ended(void *arg, tn_status status, const char *why)
{
    tn_peers *p = arg;
    tn_reply_queue_end(&p->replies, status, why);
}

static uint32_t waits_for(void *arg)
{
    const tn_peers *p = arg;
    return atomic_load(&p->replies.late);
}

/* ---- opening ---- */

static tn_status load_security(tn_security *out, const tn_zmq *zmq, const tn_run *run,
                               tn_arena *arena, tn_error *err)
{
    tn_diag faults = {0}; /* none: they were reported with the configuration */
    const tn_binder b = {.arena = arena, .diag = &faults, .path = "cluster"};
    tn_security_opts opts;
    tn_security_bind(&b, run->cluster.security, &opts);
    tn_status status = tn_diag_check(&faults, err);
    tn_diag_done(&faults);
    TN_TRY(status);
    return tn_security_init(out, zmq, &opts, err);
}

static void show_table(void *arg, const char *table)
{
    const tn_peers *p = arg;
    const tn_watch *watch = p->watch;
    watch->show(watch->arg, table, false);
}

static tn_group_table_opts table_of(tn_peers *p)
{
    const tn_watch *watch = p->watch;
    const bool wanted =
        p->w->rank == 0 && watch != NULL && watch->peers_table && watch->show != NULL;
    return (tn_group_table_opts){
        .show = wanted ? show_table : NULL, .arg = p, .every_ns = tn_timer_ns(TABLE_NS)};
}

static tn_status open_group(tn_peers *p, const tn_run_text *text, tn_error *err)
{
    const tn_run *run = p->w->plan->run;
    tn_manifest model = {0};
    TN_TRY(tn_moment_describe(&model, p->w, p->arena, err));
    const tn_group_opts opts = {.zmq = &p->zmq,
                                .membership = run->cluster.membership,
                                .security = &p->security,
                                .owners = &p->w->plan->owners,
                                .hello = {.version = TN_VERSION,
                                          .config_hash = text->hash,
                                          .structure = model.structure,
                                          .cpu = tn_host_cpu(),
                                          .threads = tn_run_threads(run)},
                                .start_timeout_s = run->cluster.start_timeout,
                                .news = run->cluster.news,
                                .table = table_of(p)};
    TN_TRY(tn_group_open(&p->group, &opts, err));
    return run->compute.pin ? tn_team_pin(p->w->team, err) : TN_OK; /* ZeroMQ's threads stay free */
}

tn_status tn_peers_open(tn_peers **out, tn_worker *w, const tn_run_text *text,
                        const tn_watch *watch, tn_error *err)
{
    *out = NULL;
    tn_peers *p = NULL;
    TN_TRY(TN_ALLOC(p, 1, "a group of peers", err));
    p->w = w;
    p->watch = watch;
    p->arena = tn_arena_new(1 << 14);
    tn_reply_queue_init(&p->replies);
    tn_status status = tn_zmq_load(&p->zmq, err);
    if (status == TN_OK) {
        p->has_security = true;
        status = load_security(&p->security, &p->zmq, w->plan->run, p->arena, err);
    }
    if (status == TN_OK) {
        status = open_group(p, text, err);
    }
    if (status != TN_OK) {
        tn_peers_close(p);
        return status;
    }
    *out = p;
    return TN_OK;
}

/* A group in which this rank never is: it has no model, and others have what they own from it. */
static void decline(const tn_run *run, const tn_zmq *zmq, const tn_security *security,
                    tn_arena *arena, const tn_error *why)
{
    const uint32_t n = run->cluster.membership->size;
    const tn_owners owners = {n, TN_PARTITIONS, TN_NEW_ARRAY(arena, uint32_t, (size_t)n + 1)};
    const tn_group_opts opts = {.zmq = zmq,
                                .membership = run->cluster.membership,
                                .security = security,
                                .owners = &owners,
                                .hello = {.version = TN_VERSION,
                                          .config_hash = "",
                                          .structure = "",
                                          .cpu = tn_host_cpu(),
                                          .status = (uint64_t)why->code,
                                          .text = why->text}};
    tn_group *group = NULL;
    if (tn_group_open(&group, &opts, NULL) == TN_OK) {
        tn_group_close(group);
    }
}

void tn_peers_decline(const tn_run *run, tn_status status, const char *why)
{
    tn_zmq zmq;
    tn_security security = {0};
    tn_error own = {0};
    if (run->cluster.size < 2 || tn_zmq_load(&zmq, NULL) != TN_OK) {
        return;
    }
    tn_arena *arena = tn_arena_new(1 << 12);
    (void)tn_fail(&own, status, "%s", why);
    if (load_security(&security, &zmq, run, arena, NULL) == TN_OK) {
        decline(run, &zmq, &security, arena, &own);
    }
    tn_security_done(&security);
    tn_arena_free(arena);
}

tn_status tn_peers_form(tn_peers *p, const atomic_bool *stop, tn_error *err)
{
    return tn_group_form(p->group, stop, err);
}

static tn_status peek_rows(void *self, tn_team *team, const tn_keyset *keys, float *rows,
                           bool *missing, tn_error *err)
{
    return tn_eval_pull_rows(self, team, keys, rows, missing, err);
}

/* The part of this rank in the exchange of values. */
static tn_exchange exchange_of(tn_peers *p)
{
    tn_worker *w = p->w;
    const uint32_t runs_max = tn_params_count(w->params) + 1;
    tn_dense_run *trained = TN_NEW_ARRAY(p->arena, tn_dense_run, runs_max);
    tn_dense_run *moving = TN_NEW_ARRAY(p->arena, tn_dense_run, runs_max);
    return (tn_exchange){.arena = p->arena,
                         .link = tn_group_link(p->group),
                         .pool = tn_group_out_messages(p->group),
                         .replies = &p->replies,
                         .rank = w->rank,
                         .step = w->steps,
                         .staleness = w->plan->run->cluster.staleness,
                         .dedup = tn_group_dedup(p->group),
                         .shares = w->shares,
                         .layout = w->plan->layout,
                         .shard = &w->shard,
                         .own = w->own,
                         .weights = tn_params_weights(w->params),
                         .trained = trained,
                         .n_trained = tn_worker_runs(w, false, trained),
                         .moving = moving,
                         .n_moving = tn_worker_runs(w, true, moving),
                         .values = wire_values(p)};
}

tn_status tn_peers_begin(tn_peers *p, tn_error *err)
{
    if (p->peek != NULL) {
        return TN_OK;
    }
    const tn_exchange x = exchange_of(p);
    p->peek = tn_eval_pull_new(&x);
    TN_TRY((x.staleness > 0 ? tn_async_client_open : tn_sync_client_open)(&p->client, &x, err));
    p->w->client = p->client;
    p->w->peek = (tn_peek){peek_rows, p->peek};
    const tn_group_values values = {p, take_request, take_answer, group_ended, waits_for};
    tn_group_set_values(p->group, &values);
    return TN_OK;
}

tn_status tn_peers_refresh(tn_peers *p, tn_error *err)
{
    const tn_client_ops *ops = p->client.ops;
    if (ops == NULL || ops->refresh == NULL) {
        return TN_OK;
    }
    p->w->steps = ops->updates(p->client.self);
    return ops->refresh(p->client.self, err);
}

tn_group *tn_peers_group(tn_peers *p)
{
    return p->group;
}

void tn_peers_close(tn_peers *p)
{
    if (p == NULL) {
        return;
    }
    if (p->group != NULL) {
        tn_group_set_values(p->group, NULL);
    }
    p->w->peek = (tn_peek){0};
    p->w->client = (tn_client){0};
    tn_client_close(&p->client);
    tn_eval_pull_free(p->peek);
    tn_group_close(p->group);
    if (p->has_security) {
        tn_security_done(&p->security);
    }
    tn_reply_queue_done(&p->replies);
    tn_arena_free(p->arena);
    tn_free(p);
}
