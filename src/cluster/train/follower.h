/* follower.h - a rank other than 0: it trains its parts of the data, holds its part of the model,
 * and carries out what rank 0 orders (cluster/train/leader.h).
 *
 * The follower itself carries out what concerns the epoch: START, GO, CUT, PRIOR, RETURN. All other
 * orders have a function in cluster/train/model_orders.c, which gets the follower, does its part
 * with the worker, and answers:
 *
 *     status = .. with f->w ..
 *     return tn_follower_answer(f, order, status, &why, err);     DONE, or why not
 *
 * An order that fails on one rank fails on rank 0; a status that the function returns ends the
 * group.
 */
#pragma once

#include "cluster/train/heartbeat_stats.h"
#include "cluster/train/peer_progress.h"
#include "train/checkpoint/run_state.h"
#include "train/eval/evaluate.h"
#include "train/run/epoch_reader.h"
#include "train/step/memory_cap.h"

typedef struct tn_binder tn_binder;
typedef struct tn_ckptshare tn_ckptshare; /* train/checkpoint/ckpt_peers.h */
typedef struct tn_outcome tn_outcome;
typedef struct tn_part_client tn_part_client;
typedef struct tn_peers tn_peers;
typedef struct tn_run_text tn_run_text;
typedef struct tn_step_loop tn_step_loop;
typedef struct tn_strs tn_strs;
typedef struct tn_watch tn_watch;

typedef struct tn_follower {
    const tn_model_plan *plan;
    const tn_watch *watch;
    const tn_strs *paths; /* it does not train: of data to evaluate; NULL: it trains */
    const tn_strs *fetch; /* nodes whose values are wanted of them; NULL: of none */
    tn_worker *w;
    tn_peers *peers;
    tn_group *group;
    tn_text run_dir;
    tn_heartbeat_stats beats;
    tn_memory_cap memory; /* NULL worker: it does not train */
    tn_reporter reporter;

    tn_epoch_position stand; /* the position in an epoch that is still to begin */
    tn_epoch_dealer dealer;  /* its dealer; none: parts are dealt by rank alone, or asked for */
    tn_part_client *asks; /* asks for parts of the epoch that runs; NULL: they are dealt by rule */
    tn_step_prefetch *feeder; /* its batches; NULL: none */
    tn_step_loop *steps;      /* over these; NULL: none */
    bool is_async;            /* staleness above 0 */
    bool is_over;             /* its data, above staleness 0 */
    bool trains;              /* since START or GO, until an order has it wait */
    uint64_t records;         /* earlier readers' of the epoch */
    tn_met met;               /* by these, without parts that were given back */
    uint64_t n_told;          /* figures */
    double lr_scale;
    uint64_t end;            /* the step at which the schedule ends */
    uint32_t epoch, cut_for; /* the latter with `asks`, as in tn_reader_opts */
    tn_progress progress;
    tn_metrics *metrics; /* progressive, of the epoch */

    tn_order_note instead; /* rank 0's order in place of an evaluation that it gave up */
    bool has_instead;

    tn_ckptshare *share; /* the checkpoint that is being saved; NULL: none */
    uint64_t marked;     /* its number */
    /* Goes on with what an order has begun, between orders and after each step; NULL: nothing. */
    tn_status (*beside)(struct tn_follower *f, tn_error *err);
} tn_follower;

/* Carries out an order. */
typedef tn_status tn_follow_fn(tn_follower *f, const tn_order_note *order, tn_error *err);

/* The orders that are about the model (model_orders.c); NULL: one is not. A rank that does not
 * train gets LOAD, EVALUATE and EXPORT alone. */
extern tn_follow_fn *const tn_model_orders[TN_ORDERS];

/* DONE with the figures of this rank, which it adds to the note. */
tn_status tn_follower_done(tn_follower *f, tn_done_note *note, tn_error *err) TN_MUST_USE;

/* An order that failed here fails there; one that did not is done. */
tn_status tn_follower_answer(tn_follower *f, const tn_order_note *order, tn_status status,
                             const tn_error *why, tn_error *err) TN_MUST_USE;

/* DONE with what was scored. `metrics` NULL: rank 0 has the rows; `parts`: the place in the epoch.
 */
typedef struct tn_follower_scores {
    const tn_evaluation *found; /* metrics; NULL: none */
    tn_read_counts counts;
    tn_note_parts parts;
} tn_follower_scores;
tn_status tn_follower_scored(tn_follower *f, const tn_order_note *order,
                             const tn_follower_scores *scores, tn_error *err) TN_MUST_USE;

/* The next order for the follower `arg` while rows are scored; RETURN is carried out at once.
 * TN_END: there is none. */
tn_status tn_follower_next_order(void *arg, bool wait, tn_order_note *out,
                                 tn_error *err) TN_MUST_USE;

/* As in tn_group_kind. */
tn_status tn_follower_run(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                          const tn_binder *b, tn_outcome *out, tn_error *err) TN_MUST_USE;
tn_status tn_follower_serve(const tn_model_plan *plan, const tn_run_text *text,
                            const tn_watch *watch, const tn_rank_data *data, const tn_binder *b,
                            tn_error *err) TN_MUST_USE;
