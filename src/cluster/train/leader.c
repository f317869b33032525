/* leader.c - rank 0 sends orders to all other ranks and adds up what comes of them. */
#include "cluster/train/leader.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/clock.h"
#include "cluster/group/group.h"
#include "cluster/train/heartbeat_stats.h"
#include "cluster/train/part_dealer.h"
#include "cluster/train/peer_progress.h"
#include "cluster/train/peers.h"
#include "cluster/train/score_exchange.h"
#include "io/read/bad_record_limit.h"
#include "nn/graph/params.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckpt_peers.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"
#include "train/eval/task_results.h"
#include "train/step/model_plan.h"
#include "train/step/row_sweep.h"
#include "train/step/worker.h"

#include <string.h>

/* Rows of other ranks that rank 0 asks for: of all ranks together, and of one. */
enum { PIECES_BYTES = 64 << 20, PIECE_MAX = 1 << 20 };

struct tn_leader {
    tn_worker *w;
    tn_peers *peers;
    tn_group *group;
    uint32_t n_ranks;
    uint64_t n_orders;          /* numbers those that have none of their own */
    uint64_t marked;            /* the checkpoint that all save */
    uint64_t evaluation;        /* number of the order */
    tn_progress *progress;      /* n_ranks: each one's at the last sum */
    tn_metrics_opts kinds;      /* metrics that travel */
    tn_peer_progress *reported; /* owned */
    tn_part_server *parts;      /* on request; NULL: at staleness 0 */
    bool deals;                 /* an epoch's parts */
    tn_heartbeat_stats beats;
};

/* ---- what the others have done ---- */

typedef struct hearing {
    const tn_leader *lead;
    tn_done_take *take; /* NULL: nothing else is wanted */
    void *arg;
} hearing;

static tn_status hear(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    const hearing *h = arg;
    TN_ASSERT(rank > 0 && rank < h->lead->n_ranks);
    tn_peer_progress_add_counts(h->lead->reported, rank, note->figures);
    return h->take != NULL ? h->take(h->arg, rank, note, err) : TN_OK;
}

static tn_status await(const tn_leader *l, const tn_order_note *order, tn_done_take *take,
                       void *arg, tn_error *err)
{
    hearing h = {l, take, arg};
    return tn_group_await(l->group, order, hear, &h, err);
}

static tn_status order_and_await(const tn_leader *l, const tn_order_note *order, tn_error *err)
{
    TN_TRY(tn_group_order(l->group, order, err));
    return await(l, order, NULL, NULL, err);
}

/* ---- saving and loading ---- */

static tn_status announce(void *arg, const tn_ckpt_order *order, tn_error *err)
{
    tn_leader *l = arg;
    TN_ASSERT(order->ordinal != 0);
    l->marked = order->ordinal;
    const uint64_t numbers[] = {order->run_id, order->base_step, order->delta};
    const tn_order_note note = {.what = TN_ORDER_MARK,
                                .number = order->ordinal,
                                .step = order->step,
                                .text = order->folder,
                                .more = {numbers, 3}};
    return tn_group_order(l->group, &note, err);
}

static tn_status take_files(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    tn_ckpt_files *files = arg;
    const size_t n = note->file.n;
    TN_ASSERT(note->file_bytes.n == n && note->file_crc.n == n && note->file_rows.n == n);
    TN_ASSERT(note->file_first.n == n && note->file_last.n == n);
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_manifest_file *file = TN_NEW_ARRAY(arena, tn_manifest_file, n + 1);
    for (size_t i = 0; i < n; i++) {
        file[i] = (tn_manifest_file){.name = note->file.at[i],
                                     .type = tn_ckpt_type_of(note->file.at[i]),
                                     .bytes = note->file_bytes.at[i],
                                     .rows = note->file_rows.at[i],
                                     .crc = (uint32_t)note->file_crc.at[i],
                                     .first = (uint32_t)note->file_first.at[i],
                                     .last = (uint32_t)note->file_last.at[i]};
    }
    const tn_ckpt_wrote wrote = {
        .rank = rank, .rows = note->records, .n_files = (uint32_t)n, .file = file};
    tn_status status = tn_ckpt_files_add(files, &wrote, err);
    tn_arena_free(arena);
    return status;
}

static tn_status collect(void *arg, tn_ckpt_files *files, tn_error *err)
{
    const tn_leader *l = arg;
    TN_ASSERT(l->marked != 0);
    const tn_order_note order = {.what = TN_ORDER_MARK, .number = l->marked};
    return await(l, &order, take_files, files, err);
}

static void abandon(void *arg)
{
    const tn_leader *l = arg;
    const tn_order_note order = {.what = TN_ORDER_ABANDON, .text = ""};
    tn_error err;
    tn_status status = order_and_await(l, &order, &err);
    (void)status; /* a group that ended writes nothing any more */
}

static tn_status load(void *arg, const char *path, bool goes_on, tn_error *err)
{
    const tn_leader *l = arg;
    const tn_order_note order = {.what = TN_ORDER_LOAD, .number = goes_on, .text = path};
    return order_and_await(l, &order, err);
}

static tn_status load_to_read(void *self, const char *path, tn_error *err)
{
    return load(self, path, false, err);
}

/* ---- parts on request ---- */

static void say_part(void *arg, const tn_frame *ask, const tn_part_note *note)
{
    const tn_leader *l = arg;
    tn_group_deal(l->group, ask, note);
}

static void ask_back(void *arg, uint32_t rank, uint32_t epoch)
{
    const tn_leader *l = arg;
    const tn_order_note order = {.what = TN_ORDER_RETURN, .number = epoch, .text = ""};
    tn_group_order_one(l->group, rank, &order);
}

static void lose(void *arg, uint32_t rank, const char *what)
{
    const tn_leader *l = arg;
    tn_group_lose(l->group, rank, what);
}

static void serve_parts(tn_leader *l)
{
    const tn_part_server_callbacks voice = {l, say_part, ask_back, lose};
    tn_group_parts parts;
    l->parts = tn_part_server_new(l->n_ranks, &voice);
    tn_part_server_bind(l->parts, &parts);
    tn_group_set_parts(l->group, &parts);
}

void tn_leader_deal(tn_leader *l, tn_part_dealer *dealer)
{
    l->deals = dealer != NULL && l->parts != NULL;
    if (l->parts != NULL) {
        tn_part_server_deal(l->parts, dealer, tn_clock_ns());
    }
}

bool tn_leader_gives_back(tn_leader *l, bool forget)
{
    return l->parts != NULL &&
           (forget ? tn_part_server_is_asked(l->parts) : tn_part_server_would_be_asked(l->parts));
}

static void stand_still(tn_leader *l, bool still)
{
    if (l->parts != NULL) {
        tn_part_server_pause(l->parts, still, tn_clock_ns());
    }
}

/* ---- the end ---- */

static bool close_leader(void *self, tn_status status, const char *why)
{
    tn_leader *l = self;
    bool elsewhere = false;
    if (l->group != NULL && status != TN_OK) {
        tn_group_fail(l->group, status, why);
        elsewhere = tn_group_is_reported_elsewhere(l->group, status);
    } else if (l->group != NULL) {
        const tn_order_note bye = {.what = TN_ORDER_BYE, .text = ""};
        tn_error err;
        tn_status told = tn_group_order(l->group, &bye, &err);
        (void)told; /* a rank that is lost now has nothing left to do */
    }
    if (l->group != NULL) {
        tn_group_set_parts(l->group, NULL);
    }
    tn_peers_close(l->peers);
    tn_peer_progress_free(l->reported);
    tn_part_server_free(l->parts);
    tn_free(l->progress);
    tn_free(l);
    return elsewhere;
}

tn_peers *tn_leader_peers(tn_leader *l)
{
    return l->peers;
}

tn_heartbeat_stats *tn_leader_beats(tn_leader *l)
{
    return &l->beats;
}

/* ---- orders ---- */

static tn_status order_all(tn_leader *l, tn_order_note *order, tn_error *err)
{
    order->number = ++l->n_orders;
    return tn_group_order(l->group, order, err);
}

tn_status tn_leader_finish(tn_leader *l, tn_error *err)
{
    tn_order_note order = {.what = TN_ORDER_CUT, .text = TN_TO_THE_END};
    stand_still(l, true);
    TN_TRY(order_all(l, &order, err));
    return await(l, &order, NULL, NULL, err);
}

/* For all, whatever their clocks say. */
static uint32_t day_of_all(const tn_worker *w)
{
    return w->data_day != 0 ? w->data_day : w->day;
}

tn_status tn_leader_start(tn_leader *l, const tn_leader_begin *how, tn_error *err)
{
    const tn_worker *w = l->w;
    const uint32_t n_tasks = tn_tasks_count(tn_run_tasks_of(w->plan->run));
    double bias[TN_TASKS_MAX];
    uint64_t same[3 + TN_TASKS_MAX] = {0, how->end, day_of_all(w)};
    memcpy(&same[0], &how->lr_scale, sizeof how->lr_scale);
    tn_worker_biases(w, bias);
    memcpy(&same[3], bias, n_tasks * sizeof *bias);
    const tn_order_note order = {.what = TN_ORDER_START,
                                 .number = how->epoch,
                                 .text = "",
                                 .more = {same, how->is_fresh ? 3 + n_tasks : 3}};
    TN_TRY(tn_peers_begin(l->peers, err));
    TN_TRY(order_and_await(l, &order, err)); /* all can be asked for values */
    if (!w->client.ops->is_joint) {
        /* A rank that learns now must not change rows that another is about to save. */
        tn_order_note go = {.what = TN_ORDER_GO, .text = ""};
        stand_still(l, false);
        return order_all(l, &go, err);
    }
    return TN_OK;
}

typedef struct swept {
    tn_group_rows *groups;
    uint32_t n;
} swept;

static tn_status take_swept(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    const swept *s = arg;
    if (!tn_group_rows_add(s->groups, s->n, note->metrics.at, note->metrics.n)) {
        return tn_fail(err, TN_E_PEER, "rank %u counts rows of other slots", rank);
    }
    return TN_OK;
}

static tn_status sweep(void *self, uint32_t day, tn_group_rows *groups, uint32_t n, tn_error *err)
{
    const tn_leader *l = self;
    const tn_order_note order = {.what = TN_ORDER_SWEEP, .number = day, .text = ""};
    swept s = {groups, n};
    TN_TRY(tn_group_order(l->group, &order, err));
    return await(l, &order, take_swept, &s, err);
}

static tn_status export(void *self, const char *folder, tn_error *err)
{
    tn_leader *l = self;
    tn_order_note order = {.what = TN_ORDER_EXPORT, .step = l->w->steps, .text = folder};
    return order_all(l, &order, err);
}

static tn_status exported(void *self, tn_error *err)
{
    const tn_leader *l = self;
    const tn_order_note order = {.what = TN_ORDER_EXPORT, .number = l->n_orders};
    return await(l, &order, NULL, NULL, err);
}

tn_status tn_leader_prior(tn_leader *l, uint32_t epoch, tn_error *err)
{
    const uint64_t day = day_of_all(l->w);
    const tn_order_note order = {
        .what = TN_ORDER_PRIOR, .number = epoch, .text = "", .more = {&day, 1}};
    return tn_group_order(l->group, &order, err);
}

typedef struct prior_sum {
    tn_prior *all;
    const tn_run *run;
} prior_sum;

static bool add_sum(tn_prior_sum *all, tn_prior_sum more, tn_target target)
{
    const double most = more.weight * (target == TN_TARGET_NUMBER ? TN_LABEL_MAX : 1);
    const bool fits =
        more.clicks >= (target == TN_TARGET_NUMBER ? -most : 0) && more.clicks <= most;
    all->clicks += fits ? more.clicks : 0;
    all->weight += fits ? more.weight : 0;
    return fits;
}

static tn_status add_prior(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    const prior_sum *p = arg;
    const tn_tasks *tasks = tn_run_tasks_of(p->run);
    tn_prior_sum whole = {p->all->clicks, p->all->weight};
    tn_prior_sum told[TN_TASKS_MAX];
    bool fits = note->metrics.n == sizeof told &&
                add_sum(&whole, (tn_prior_sum){note->clicks, note->weight}, p->run->data.target);
    if (fits) {
        memcpy(told, note->metrics.at, sizeof told);
    }
    for (uint32_t k = 0; k < tasks->n && fits; k++) {
        fits = add_sum(&p->all->task[k], told[k], tasks->task[k].target);
    }
    p->all->clicks = whole.clicks;
    p->all->weight = whole.weight;
    return fits ? TN_OK
                : tn_fail(err, TN_E_PEER, "rank %u has %g clicks in rows that weigh %g", rank,
                          note->clicks, note->weight);
}

tn_status tn_leader_add_priors(tn_leader *l, uint32_t epoch, tn_prior *sum, tn_error *err)
{
    const tn_order_note order = {.what = TN_ORDER_PRIOR, .number = epoch};
    prior_sum adding = {sum, l->w->plan->run};
    return await(l, &order, add_prior, &adding, err);
}

/* Adds the metrics of the others to `into`. */
typedef struct adding {
    tn_leader *lead;
    tn_evaluation *into; /* NULL: metrics stay with the others */
    tn_metrics *part[TN_TASKS_MAX];
    uint64_t records, bad;
    tn_arena *arena;
    tn_note_parts *held; /* each rank's, in the arena; NULL: parts are dealt by rule */
} adding;

static tn_status add_metrics(adding *a, const tn_done_note *note, tn_error *err)
{
    a->records += note->records;
    a->bad += note->bad;
    if (a->into == NULL) {
        return TN_OK;
    }
    return tn_task_results_merge(a->into, a->part, note->metrics.at, note->metrics.n, err);
}

static tn_status take_scores(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    (void)rank;
    return add_metrics(arg, note, err);
}

static tn_note_numbers keep(tn_arena *arena, tn_note_numbers list)
{
    uint64_t *copy = TN_NEW_ARRAY(arena, uint64_t, list.n + 1);
    for (size_t i = 0; i < list.n; i++) {
        copy[i] = list.at[i];
    }
    return (tn_note_numbers){copy, list.n};
}

/* The ledger may send messages when it gets these, so not within a callback of the group. */
static void keep_parts(adding *a, uint32_t rank, const tn_note_parts *parts)
{
    TN_ASSERT(parts->part.n == parts->attempt.n && parts->part.n == parts->position.n);
    a->held[rank] = (tn_note_parts){.part = keep(a->arena, parts->part),
                                    .attempt = keep(a->arena, parts->attempt),
                                    .position = keep(a->arena, parts->position)};
}

static tn_status take_sum(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    adding *a = arg;
    if (a->held != NULL) {
        keep_parts(a, rank, &note->parts);
        return add_metrics(a, note, err);
    }
    if (note->parts.part.n != 1) {
        return tn_fail(err, TN_E_PEER, "rank %u does not say where it stands", rank);
    }
    TN_ASSERT(note->parts.position.n == 1);
    a->lead->progress[rank] = (tn_progress){.part = (uint32_t)note->parts.part.at[0],
                                            .position = note->parts.position.at[0],
                                            .records = note->records};
    return add_metrics(a, note, err);
}

static tn_status await_metrics(tn_leader *l, const tn_order_note *order, tn_done_take *take,
                               adding *a, tn_error *err)
{
    a->lead = l;
    tn_status status = TN_OK;
    const uint32_t n = a->into != NULL ? 1 + a->into->n_more : 0;
    for (uint32_t k = 0; k < n && status == TN_OK; k++) {
        tn_metrics_opts opts = l->kinds;
        opts.target = tn_metrics_target(tn_evaluation_task(a->into, k));
        opts.sampling = k == 0 ? opts.sampling : 1;
        status = tn_metrics_new(&a->part[k], &opts, err);
    }
    if (status == TN_OK) {
        status = await(l, order, take, a, err);
    }
    for (uint32_t k = 0; k < n; k++) {
        tn_metrics_free(a->part[k]);
    }
    return status;
}

static tn_status sum(tn_leader *l, adding *a, tn_error *err)
{
    tn_order_note order = {.what = TN_ORDER_CUT, .text = ""};
    TN_TRY(order_all(l, &order, err));
    TN_TRY(await_metrics(l, &order, take_sum, a, err));
    for (uint32_t r = 1; a->held != NULL && r < l->n_ranks; r++) {
        tn_part_server_claim(l->parts, r, &a->held[r], tn_clock_ns());
    }
    return TN_OK;
}

tn_status tn_leader_sum(tn_leader *l, const tn_progress *own, const tn_metrics *metrics,
                        tn_metrics *whole, tn_leader_totals *out, tn_error *err)
{
    stand_still(l, true);
    tn_metrics_clear(whole);
    TN_TRY(tn_metrics_merge(whole, metrics, err));
    l->progress[0] = *own;
    tn_evaluation learned = {.metrics = whole};
    adding a = {.into = &learned, .records = own->records, .arena = tn_arena_new(1 << 12)};
    a.held = l->deals ? TN_NEW_ARRAY(a.arena, tn_note_parts, l->n_ranks) : NULL;
    tn_status status = sum(l, &a, err);
    tn_arena_free(a.arena);
    TN_TRY(status);
    *out = (tn_leader_totals){.records = a.records, .bad = a.bad, .progress = l->progress};
    return TN_OK;
}

/* ---- evaluations ----
 *
 * Either integers are added up, or rows of all ranks go through the same tn_score_collector as
 * those of one process, in the same order. So the result does not depend on which rank scored a
 * row.
 */

/* The others begin to score; all can be asked for values then, also where none has trained before.
 * `how`: what a tn_order_note of an evaluation says. */
static tn_status begin_evaluation(tn_leader *l, const char *data, uint64_t how,
                                  const tn_eval_request *request, tn_error *err)
{
    const uint64_t words[3] = {how, request->day, request->rows_max};
    tn_order_note order = {
        .what = TN_ORDER_EVALUATE, .text = data, .more = {words, request->rows_max > 0 ? 3 : 1}};
    TN_TRY(tn_peers_begin(l->peers, err));
    TN_TRY(order_all(l, &order, err));
    l->evaluation = order.number;
    return tn_peers_refresh(l->peers, err);
}

/* Rank 0 is done, and waits until all are. What they counted is added to `own`, and, where rows
 * stayed with them (`adds_up`), their metrics. */
static tn_status end_evaluation(tn_leader *l, tn_evaluation *own, bool adds_up, tn_error *err)
{
    TN_ASSERT(l->evaluation != 0);
    adding a = {.into = adds_up ? own : NULL};
    const tn_order_note order = {.what = TN_ORDER_EVALUATE, .number = l->evaluation};
    TN_TRY(await_metrics(l, &order, take_scores, &a, err));
    own->counts.records += a.records;
    own->counts.bad += a.bad;
    return TN_OK;
}

static tn_status take_rows(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    (void)rank;
    tn_text *out = arg;
    tn_text_add(out, note->metrics.at, note->metrics.n);
    return tn_text_check(out, "scored rows", err);
}

static tn_status ask_more_rows(tn_leader *l, uint32_t other, tn_text *out, tn_error *err)
{
    TN_ASSERT(other + 1 < l->n_ranks);
    const uint64_t share = PIECES_BYTES / (l->n_ranks - 1);
    const uint64_t most = share < PIECE_MAX ? share : PIECE_MAX;
    const tn_order_note order = {
        .what = TN_ORDER_ROWS, .number = ++l->n_orders, .text = "", .more = {&most, 1}};
    return tn_group_have_done(l->group, other + 1, &order, take_rows, out, err);
}

/* Whether metrics of ranks do not add up to those of all. */
static bool needs_rows(const tn_run *run, const tn_eval_request *request)
{
    const tn_metrics_opts kinds = tn_metrics_opts_of(run);
    return kinds.exact_auc || kinds.grouped || run->eval.slices.n > 0 || request->sink != NULL ||
           request->calibration != NULL;
}

static tn_status add_up(tn_leader *l, const char *data, const tn_eval_request *request,
                        tn_evaluation *out, tn_error *err)
{
    TN_TRY(begin_evaluation(l, data, 0, request, err));
    TN_TRY(tn_evaluate(l->w, request, out, err));
    tn_status status = end_evaluation(l, out, true, err);
    if (status != TN_OK) {
        tn_evaluation_done(out);
    }
    return status;
}

typedef struct judged {
    tn_leader *lead;
    tn_score_collector judging;
    tn_score_merge *merge;
} judged;

static tn_status more(void *arg, uint32_t other, tn_text *out, tn_error *err)
{
    const judged *j = arg;
    return ask_more_rows(j->lead, other, out, err);
}

static tn_status take(void *arg, const tn_scores *scores, tn_error *err)
{
    judged *j = arg;
    return tn_score_collector_add(&j->judging, scores, err);
}

static tn_status score_all(judged *j, const char *data, const tn_eval_request *request,
                           tn_error *err)
{
    tn_worker *w = j->lead->w;
    const uint64_t how = TN_EVALUATES_ROWS | (request->want_ids ? TN_EVALUATES_WITH_IDS : 0U) |
                         (request->fetch != NULL ? TN_EVALUATES_WITH_NODES : 0U);
    const tn_eval_request own = {.paths = request->paths,
                                 .rows_max = request->rows_max,
                                 .held = request->held,
                                 .want_ids = true,
                                 .only_scores = true,
                                 .sink = tn_score_merge_own,
                                 .sink_arg = j->merge,
                                 .stop = request->stop};
    tn_evaluation scored = {0};
    TN_TRY(begin_evaluation(j->lead, data, how, request, err));
    TN_TRY(tn_evaluate(w, &own, &scored, err));
    TN_TRY(tn_score_merge_end(j->merge, err));
    TN_TRY(end_evaluation(j->lead, &scored, false, err));
    j->judging.out->counts = scored.counts;
    j->judging.out->keys = scored.keys;
    return TN_OK;
}

static tn_status bring_rows(tn_leader *l, const char *data, const tn_eval_request *request,
                            tn_evaluation *out, tn_error *err)
{
    const tn_worker *w = l->w;
    const tn_run *run = w->plan->run;
    tn_arena *arena = tn_arena_new(1 << 12);
    judged j = {.lead = l,
                .judging = {.run = run,
                            .schema = w->plan->schema,
                            .request = request,
                            .sampling = run->data.negative_sampling,
                            .out = out}};
    tn_score_merge_opts opts = {
        .form = tn_scored_form_of(run, w->plan->schema, request->want_ids, arena),
        .others = l->n_ranks - 1,
        .more = more,
        .take = take,
        .arg = &j};
    tn_status status = tn_score_collector_begin(&j.judging, err);
    if (status == TN_OK && request->fetch != NULL) {
        status = tn_scored_form_fetch(&opts.form, w->eval_graph, request->fetch, arena, err);
    }
    if (status == TN_OK) {
        j.merge = tn_score_merge_new(&opts, arena);
        status = score_all(&j, data, request, err);
    }
    tn_score_collector_end(&j.judging, status);
    tn_score_merge_done(j.merge);
    tn_arena_free(arena);
    return status;
}

static tn_status evaluate(void *self, tn_worker *w, const char *data,
                          const tn_eval_request *request, tn_evaluation *out, tn_error *err)
{
    tn_leader *l = self;
    const tn_run *run = w->plan->run;
    tn_bad_record_limit limit;
    TN_ASSERT(w == l->w);
    TN_TRY(tn_bad_record_limit_read(run->data.bad_records_max, &limit, err));
    TN_TRY(needs_rows(run, request) ? bring_rows(l, data, request, out, err)
                                    : add_up(l, data, request, out, err));
    tn_status status = tn_bad_record_limit_end(&limit, out->counts.records, out->counts.bad, err);
    if (status != TN_OK) {
        tn_evaluation_done(out);
    }
    return status;
}

/* ---- reports of the others ---- */

static void sums(void *self, tn_ranks_sums *out)
{
    const tn_leader *l = self;
    tn_link_counts c = {0};
    tn_peer_progress_sums_of(l->reported, out);
    tn_link_counts_of(tn_group_link(l->group), &c);
    out->bytes_in = c.bytes_in;
    out->bytes_out = c.bytes_out;
}

static tn_status scores(void *self, tn_metrics *m, tn_error *err)
{
    const tn_leader *l = self;
    return tn_peer_progress_scores(l->reported, m, err);
}

static void counts(void *self, tn_held *held, uint64_t epoch, tn_met *met)
{
    const tn_leader *l = self;
    tn_peer_progress_counts(l->reported, held, epoch, met);
}

/* ---- the beginning ---- */

static tn_status form(void *self, const atomic_bool *stop, tn_error *err)
{
    const tn_leader *l = self;
    return tn_peers_form(l->peers, stop, err);
}

static tn_status check(void *self, tn_error *err)
{
    const tn_leader *l = self;
    return tn_group_check(l->group, err);
}

static const tn_ranks_ops leads = {.epoch = &tn_group_epoch,
                                   .form = form,
                                   .check = check,
                                   .close = close_leader,
                                   .load = load_to_read,
                                   .sweep = sweep,
                                   .evaluate = evaluate,
                                   .export = export,
                                   .exported = exported,
                                   .sums = sums,
                                   .scores = scores,
                                   .counts = counts};

tn_status tn_leader_open(tn_ranks *out, const tn_ranks_opts *opts, tn_error *err)
{
    tn_worker *w = opts->worker;
    TN_ASSERT(w->rank == 0 && w->plan->owners.n_peers > 1);
    tn_leader *l = NULL;
    TN_TRY(TN_ALLOC(l, 1, "rank 0 of a group", err));
    l->w = w;
    l->n_ranks = w->plan->owners.n_peers;
    l->kinds = tn_metrics_opts_of(w->plan->run);
    l->kinds.exact_auc = false; /* rows that are kept one by one come as rows */
    l->kinds.grouped = false;
    tn_status status = TN_ALLOC(l->progress, l->n_ranks, "rank 0 of a group", err);
    if (status == TN_OK) {
        status = tn_peer_progress_new(&l->reported, l->n_ranks, &l->kinds, err);
    }
    if (status == TN_OK) {
        status = tn_peers_open(&l->peers, w, opts->text, opts->watch, err);
    }
    if (status != TN_OK) {
        (void)close_leader(l, status, "rank 0 could not begin");
        return status;
    }
    l->group = tn_peers_group(l->peers);
    l->beats = (tn_heartbeat_stats){.group = l->group, .begin = tn_clock_s()};
    tn_group_set_reports(l->group, tn_peer_progress_take, l->reported);
    if (w->plan->run->cluster.staleness > 0) {
        serve_parts(l);
    }
    const tn_ckpt_peers peers = {announce, collect, abandon, load, l};
    if (opts->checkpoints != NULL) {
        tn_checkpoints_set_peers(opts->checkpoints, &peers);
    }
    *out = (tn_ranks){&leads, l};
    return TN_OK;
}
