/* ckptstate.h - what checkpoint.c and resume.c share. */
#ifndef TN_TRAIN_CKPTSTATE_H
#define TN_TRAIN_CKPTSTATE_H

#include "base/clock.h"
#include "train/checkpoint.h"
#include "train/ckptdir.h"
#include "train/ckptparts.h"

struct tn_checkpoints {
    const tn_blueprint *plan;
    const tn_run_text *text;
    tn_ckptdir *files;
    tn_text dir;
    uint64_t run_id;
};

/* sparse, dense and structure of the manifest that `w` would write. Lives in the arena. */
tn_status tn_ckpt_describe(tn_manifest *m, const tn_worker *w, tn_arena *arena,
                           tn_error *err) TN_MUST_USE;

#endif
