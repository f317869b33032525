/* follower_state.h - what the parts of a rank other than 0 share; private to follow*.c.
 *
 *     follower.c        the run, orders
 *     follower_epoch.c   its parts of an epoch
 *     follower_save.c    its part of a checkpoint
 *     follower_eval.c    what it scores of a data set
 */
#ifndef TN_TRAIN_FOLLOWER_STATE_H
#define TN_TRAIN_FOLLOWER_STATE_H

#include "train/checkpoint/ckpt_peers.h"
#include "train/peers/async_epoch.h"
#include "train/peers/part_client.h"
#include "train/peers/part_dealer.h"
#include "train/peers/sync_epoch.h"
#include "train/report/peer_progress.h"
#include "train/run/follower.h"
#include "train/run/heartbeat_stats.h"

#define TN_FOLLOWER_LOOK_NS UINT64_C(50000000) /* at what goes on beside the orders */

typedef struct tn_follower {
    const tn_blueprint *plan;
    const tn_watch *watch;
    const tn_strs *paths; /* it does not train: of data to evaluate; NULL: it trains */
    const tn_strs *fetch; /* nodes whose values are wanted of them; NULL: of none */
    tn_worker *w;
    tn_peers *peers;
    tn_group *group;
    tn_text run_dir;
    tn_beats beats;
    tn_memory_cap memory; /* NULL worker: it does not train */
    tn_reporter reporter;

    tn_data_stand stand;   /* where in an epoch the run goes on, until that is begun */
    tn_partdealer *dealer; /* of that epoch; NULL: parts are dealt by rank alone, or .. */
    tn_askdealer *asks;    /* .. asked for: of the epoch that runs; NULL: by rule */
    tn_feeder *feeder;     /* of the epoch that runs; NULL: none */
    tn_together *steps;    /* at staleness 0; else NULL .. */
    tn_apart *apart;       /* .. as this is at 0 */
    bool is_over;          /* its data, apart */
    bool trains;           /* rank 0 said START or GO, and has not had it stand still since */
    uint64_t records;      /* of the epoch, by readers before this one .. */
    tn_met met;            /* .. and what they have met, but for what they gave back */
    uint64_t n_told;       /* figures */
    double lr_scale;
    uint64_t end;            /* of a schedule that ends with the run */
    uint32_t epoch, cut_for; /* the latter with `asks`, as in tn_reader_opts */
    tn_progress progress;
    tn_metrics *metrics; /* progressive, of the epoch */

    tn_order_note instead; /* what rank 0 ordered when it gave up an evaluation .. */
    bool has_instead;      /* .. if it did */

    tn_ckptshare *share; /* of the checkpoint that is being saved; NULL: none */
    uint64_t marked;     /* its number */
} tn_follower;

/* An order that failed here fails there; one that did not is done. */
tn_status tn_follower_say_done(tn_follower *f, const tn_order_note *order, tn_status status,
                               const tn_error *why, tn_error *err) TN_MUST_USE;

/* DONE with the figures of this rank, which it adds to the note. */
tn_status tn_follower_tell(tn_follower *f, tn_done_note *note, tn_error *err) TN_MUST_USE;

/* PRIOR: an epoch is opened; what its first rows hold is told. */
tn_status tn_follower_prior(tn_follower *f, const tn_order_note *order, tn_error *err) TN_MUST_USE;

/* START: the epoch goes on, or begins; until all meet. Apart: will go on with GO. */
tn_status tn_follower_start(tn_follower *f, const tn_order_note *order, tn_error *err) TN_MUST_USE;
/* GO: apart, until rank 0 orders something. */
tn_status tn_follower_go(tn_follower *f, tn_error *err) TN_MUST_USE;
/* Until all meet, or, apart, until rank 0 orders something; to_the_end: until nothing is left. */
tn_status tn_follower_train(tn_follower *f, bool to_the_end, tn_error *err) TN_MUST_USE;
void tn_follower_end_epoch(tn_follower *f);

/* RETURN: gives back the parts it holds, and goes on with others where it was training. */
tn_status tn_follower_give_back(tn_follower *f, const tn_order_note *order,
                                tn_error *err) TN_MUST_USE;
/* Standing still: what it holds of the epoch, in the arena, when rank 0 knows what is over. */
tn_status tn_follower_held(tn_follower *f, tn_arena *arena, tn_note_parts *out,
                           tn_error *err) TN_MUST_USE;

/* EVALUATE: scores its parts, and says what they make or hands over the rows. */
tn_status tn_follower_evaluate(tn_follower *f, const tn_order_note *order,
                               tn_error *err) TN_MUST_USE;
/* DONE with what was scored; `parts`: where the epoch stands. `metrics` NULL: rank 0 has the rows.
 */
tn_status tn_follower_say_scores(tn_follower *f, const tn_order_note *order,
                                 const tn_metrics *metrics, const tn_read_counts *counts,
                                 const tn_note_parts *parts, tn_error *err) TN_MUST_USE;

/* MARK: begins to save; ABANDON: waits for what was begun. */
tn_status tn_follower_mark(tn_follower *f, const tn_order_note *order, tn_error *err) TN_MUST_USE;
tn_status tn_follower_abandon(tn_follower *f, const tn_order_note *order,
                              tn_error *err) TN_MUST_USE;
/* Tells rank 0 what was being saved, if it is written. */
tn_status tn_follower_note_share(tn_follower *f, tn_error *err) TN_MUST_USE;

#endif
