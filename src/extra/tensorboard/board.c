/* board.c - the module that draws the records of a run for TensorBoard. */
#include "extra/tensorboard/tensorboard.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/run.h"
#include "train/run/module.h"
#include "train/run/saver.h"
#include "train/step/worker.h"

static void close_board(void *self)
{
    tn_tensorboard **b = self;
    tn_tensorboard_close(*b, false);
}

static tn_status open_board(void *self, tn_run_now *now, tn_error *err)
{
    tn_tensorboard **b = self;
    (void)err;
    const tn_tensorboard_opts opts = {.dir = tn_checkpoints_dir(now->saver->checkpoints),
                                      .text = now->text,
                                      .worker = now->worker,
                                      .first = now->resumed != NULL ? now->worker->steps + 1 : 0};
    if (now->run->log.tensorboard != TN_SWITCH_FALSE) {
        *b = tn_tensorboard_open(&opts);
    }
    return TN_OK;
}

static tn_status draw_record(void *self, const tn_run_record *record, tn_error *err)
{
    tn_tensorboard **b = self;
    (void)err;
    tn_tensorboard_record(*b, record->line);
    if (record->metrics != NULL) {
        tn_tensorboard_eval(*b, record->data, record->metrics, record->step);
    }
    if (record->well) {
        tn_tensorboard_close(*b, true);
        *b = NULL;
    }
    return TN_OK;
}

extern const tn_module tn_module_tensorboard;
const tn_module tn_module_tensorboard = {.name = "tensorboard",
                                         .size = sizeof(tn_tensorboard *),
                                         .at = {[TN_AT_LOAD] = open_board},
                                         .hear = draw_record,
                                         .close = close_board};
