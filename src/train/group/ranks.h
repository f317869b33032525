/* ranks.h - what a run asks of the other processes that train with it.
 *
 *     tn_ranks_open(&r, &how, err)             rank 0: listens, others may come or not
 *     r.ops->form(r.self, stop, err)           all are in
 *     r.ops->load(r.self, path, err)           each rank reads its part of a checkpoint
 *     r.ops->evaluate(r.self, w, ..)           each rank scores its part of the data
 *     r.ops->close(r.self, status, why)        the others end as this process does
 *
 * One interface, two constants. In a process alone, `tn_ranks_alone`, a function does what one
 * process needs or nothing. In a group it is that of rank 0, which gives orders to all others and
 * waits until they have carried them out. So whoever leads a run asks, and does not look whether
 * there is anybody. Who needs the number of processes has tn_owners.n_peers.
 *
 * The kind of group that a program is built with is a row of groups.def, and all that the rest of
 * src/train knows of it is `tn_group_kind`: how a process finds its rank, the other side of rank 0,
 * and the parts of an epoch. A build with -DTNET_CLUSTER=OFF has none: its `tn_group_kind` knows
 * one process, and refuses a configuration that asks for several.
 *
 * All calls belong to the trainer's thread. TN_E_PEER: another rank is lost, or has failed.
 */
#pragma once

#include "base/core/error.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_binder tn_binder;             /* config/values.h */
typedef struct tn_checkpoints tn_checkpoints;   /* train/checkpoint/checkpoint.h */
typedef struct tn_epoch_dealer tn_epoch_dealer; /* train/run/epoch_reader.h */
typedef struct tn_epoch_dealt tn_epoch_dealt;   /* likewise */
typedef struct tn_epoch_ops tn_epoch_ops;       /* train/run/epoch.h */
typedef struct tn_eval_request tn_eval_request; /* train/eval/evaluate.h */
typedef struct tn_evaluation tn_evaluation;     /* likewise */
typedef struct tn_group_rows tn_group_rows;     /* ps/table/table.h */
typedef struct tn_held tn_held;                 /* train/report/run_counts.h */
typedef struct tn_met tn_met;                   /* likewise */
typedef struct tn_metrics tn_metrics;           /* metrics/metrics.h */
typedef struct tn_model_plan tn_model_plan;     /* train/step/model_plan.h */
typedef struct tn_outcome tn_outcome;           /* train/report/report.h */
typedef struct tn_run tn_run;                   /* train/config/run.h */
typedef struct tn_run_text tn_run_text;         /* train/checkpoint/checkpoint.h */
typedef struct tn_strs tn_strs;                 /* config/values.h */
typedef struct tn_tree tn_tree;                 /* config/tree.h */
typedef struct tn_watch tn_watch;               /* train/step/watch.h */
typedef struct tn_worker tn_worker;             /* train/step/worker.h */

/* Sums of the other ranks since they began, as of their last reports. */
typedef struct tn_ranks_sums {
    uint64_t rows;                /* learned from */
    double loss, weight;          /* sum of w l, and of w; all 0 at staleness 0 */
    uint64_t epoch;               /* the newest that a rank has reported */
    uint64_t records, bad;        /* read of that epoch */
    uint64_t bytes_in, bytes_out; /* sizes of this rank's messages */
} tn_ranks_sums;

/* Functions of rank 0; `self` is its group, and NULL for a process alone. */
typedef struct tn_ranks_ops {
    /* How an epoch is shared (train/run/epoch.h). */
    const tn_epoch_ops *epoch;

    /* Waits until all ranks are in, or `stop` (NULL: nobody) asks for the end. */
    tn_status (*form)(void *self, const atomic_bool *stop, tn_error *err);

    /* TN_OK while all ranks are there; else how the group ended. */
    tn_status (*check)(void *self, tn_error *err);

    /* Has the others end as the run does, and frees. Returns whether the run had failed in another
     * rank, which reports it to people. */
    bool (*close)(void *self, tn_status status, const char *why);

    /* The others read their parts of the checkpoint in the folder `path`, to score or to export;
     * "": first weights, from the files of checkpoint.from. */
    tn_status (*load)(void *self, const char *path, tn_error *err);

    /* At a meeting: rows that expire on `day` leave everywhere. What the others did is added to
     * groups[n], which has what this rank did. */
    tn_status (*sweep)(void *self, uint32_t day, tn_group_rows *groups, uint32_t n, tn_error *err);

    /* At a meeting: tn_evaluate by all ranks, each of its parts of a data set, which is "valid" or
     * "test"; ranks that evaluate only know which one. The result is that of one process to the
     * last bit. */
    tn_status (*evaluate)(void *self, tn_worker *w, const char *data,
                          const tn_eval_request *request, tn_evaluation *out, tn_error *err);

    /* The others write their rows of an export into a folder; then waits until all have. */
    tn_status (*export)(void *self, const char *folder, tn_error *err);
    tn_status (*exported)(void *self, tn_error *err);

    /* Sums of the others, and their progressive scores, which are coarse and replace those in `m`:
     * as of their last reports. */
    void (*sums)(void *self, tn_ranks_sums *out);
    tn_status (*scores)(void *self, tn_metrics *m, tn_error *err);

    /* Adds what the tables of the others hold, and, unless NULL, what they have read of `epoch`. */
    void (*counts)(void *self, tn_held *held, uint64_t epoch, tn_met *met);
} tn_ranks_ops;

typedef struct tn_ranks {
    const tn_ranks_ops *ops;
    void *self;
} tn_ranks;

extern const tn_ranks tn_ranks_alone;

/* Says what rank 0 leads. All of it must outlive the group. */
typedef struct tn_ranks_opts {
    tn_worker *worker;
    const tn_run_text *text;
    const tn_watch *watch;       /* NULL: nobody sees the table of peers */
    tn_checkpoints *checkpoints; /* save and load with all ranks from now on; NULL: none */
} tn_ranks_opts;

/* Opens the group of the worker's plan; of a plan of one process *out is tn_ranks_alone. On failure
 * it is that, too, and the others wait for this rank until `decline`. */
tn_status tn_ranks_open(tn_ranks *out, const tn_ranks_opts *opts, tn_error *err) TN_MUST_USE;

/* ---- the kind of group that the program is built with ---- */

/* The data that a rank which does not train is to score. */
typedef struct tn_rank_data {
    const tn_strs *paths;
    const tn_strs *fetch; /* nodes whose values rank 0 wants; NULL: none */
} tn_rank_data;

enum { TN_CHILDREN_MAX = 1024 };

/* Describes the processes that are started as a group. */
typedef struct tn_children_opts {
    const char *path;   /* file of the program */
    char *const *words; /* its argv, NULL-terminated */
    uint32_t n;         /* 1 .. TN_CHILDREN_MAX */
    uint64_t job;       /* names this group, anew with each call */
    double grace_s;     /* others are killed so long after the first has failed */
    bool part_cpus;     /* each child may use only an nth of the processors, for compute.pin */
    void (*stops)(sigset_t *out); /* signals that a child finds blocked until it watches them */
    /* After a child was killed the group starts again with the words `again` (NULL: it does not),
     * up to `restarts` times within `restart_s` seconds, each time with another job. */
    char *const *again;
    uint32_t restarts;
    double restart_s;
} tn_children_opts;

typedef struct tn_group_kind {
    /* Fills rank, size, here and membership of run->cluster, before the plan is made; what they
     * point at lives in b->arena. `tree` is the configuration that `run` was bound from. Faults go
     * to b->diag (TN_E_CONFIG): the rank is not known, or the configuration asks for what several
     * processes cannot do. `folder`, in run.dir, is where the group meets, apart from one that
     * trains there; NULL: in run.dir itself. */
    tn_status (*find_rank)(const tn_binder *b, const tn_tree *tree, tn_run *run, const char *folder,
                           tn_error *err);

    /* Refuses what several processes cannot do: faults go to b->diag. */
    void (*check)(const tn_binder *b, const tn_tree *tree, const tn_run *run);

    /* Before --peers starts processes on this machine: refuses it where this one is itself of a
     * group (TN_E_USAGE), raises the limit of open files where
     * they need it, and makes the folder where they meet. TN_E_CONFIG: the limit is too low;
     * TN_E_CKPT: others are at work there, or, `folder` being NULL, in run.dir itself. So faults
     * are reported once; the same locks refuse a process that comes a moment later. */
    tn_status (*prepare)(const tn_run *run, uint32_t peers, const char *folder, tn_error *err);

    /* Starts a program as a group of processes on this machine, after `prepare`, and returns when
     * none is left; *code is then that of the whole (cluster/launch/children.h). TN_E_IO: one could
     * not be started; none is left. TN_E_STOPPED: this process was asked to end (base/core/stop.h)
     * before it had any child. */
    tn_status (*start)(const tn_children_opts *opts, int *code, tn_error *err);

    /* Whether this process was started so by its parent. */
    bool (*is_child)(void);

    /* How many processes cluster.peers asks for on this machine, where no launcher has started this
     * one; 0: it does not say. Faults go to b->diag. */
    uint32_t (*peers_here)(const tn_binder *b, const tn_run *run);

    /* For a rank that fails before it has a group: opens one only to say so, and no rank waits for
     * it. Takes a second where they are there, and at most 10 s. Does nothing for a
     * process that is alone. */
    void (*decline)(const tn_run *run, tn_status status, const char *why);

    /* As tn_ranks_open, of a plan of several processes. */
    tn_status (*open)(tn_ranks *out, const tn_ranks_opts *opts, tn_error *err);

    /* Any rank but 0, until rank 0 has it end: `follow` trains, as tn_train, which calls it; of the
     * outcome only the steps and samples that this rank has learned from are set. `serve` reads its
     * part of the checkpoint that rank 0 says; then it scores its parts of the data, or, for an
     * export, writes its rows where rank 0 finds them; `data` may be NULL then. */
    tn_status (*follow)(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                        const tn_binder *b, tn_outcome *out, tn_error *err);
    tn_status (*serve)(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                       const tn_rank_data *data, const tn_binder *b, tn_error *err);

    /* Deals the parts that several readers have left of an epoch, to this process alone or to each
     * rank by rule. TN_E_DATA: the data are not those of the position. */
    tn_status (*deal)(tn_epoch_dealer *out, const tn_epoch_dealt *left, tn_error *err);
} tn_group_kind;

/* Returns the row of groups.def; without one tn_group_none, whose start, open, follow and serve are
 * NULL: there is no plan of several processes to call them for. */
const tn_group_kind *tn_group_built(void);

extern const tn_group_kind tn_group_none;
