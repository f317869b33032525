/* ckptstate.h - the checkpoints of a run, as checkpoint.c and resume.c share them. */
#pragma once

#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/checkpoint/ckpt_peers.h"
#include "train/checkpoint/ckptdir.h"

#include <semaphore.h>

/* Texts, the head of a shard file and its index. */
enum { TN_CKPT_SMALL_BYTES = 64 << 10 };

/* Files that a thread writes while steps go on. */
typedef struct tn_ckpt_writing {
    tn_thread_fn *write; /* with `of` */
    void *of;
    tn_thread *thread; /* NULL: it was written at once, or is joined */
    tn_status status;  /* outcome, once it is joined */
    tn_error err;
    _Atomic bool written;
    bool is_open;  /* nobody has said yet whether there is to be a checkpoint */
    bool dropped;  /* there is not to be one; read after `decided` */
    sem_t decided; /* posted once, when somebody has */
} tn_ckpt_writing;

struct tn_checkpoints {
    const tn_model_plan *plan;
    const tn_run_text *text;
    tn_ckptdir *files;
    tn_text dir;
    uint64_t run_id;
    tn_saved base; /* predecessor of the next delta, here and of this run; ordinal 0: none */
    uint64_t *base_histogram; /* owned */
    tn_ckpt_peers peers;      /* announce NULL: alone */

    /* The save that runs. All belongs to its thread until that is joined. */
    tn_moment *moment; /* NULL: none */
    bool announced;    /* to the others */
    bool later;        /* nothing is written before tn_checkpoints_end or _drop */
    tn_ckpt_writing writing;
    tn_saved saved;
    uint64_t best;  /* never pruned */
    bool keeps_all; /* nothing is pruned */
    double begin;
    bool lost_rows; /* the disk refused rows, which are not kept */
};

/* Sets what a manifest says of a checkpoint. */
void tn_checkpoints_name(tn_saved *out, const tn_manifest *m);
