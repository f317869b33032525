/* webhook.c - sends every evaluation of a run to whoever waits for it: to a file that they read. */
#include "base/file/output_file.h"
#include "config/field.h"
#include "train/config/run.h"
#include "train/run/module.h"

#include <string.h>

typedef struct webhook_opts {
    const char *to;
} webhook_opts;

extern const tn_field tn_section_webhook[];
const tn_field tn_section_webhook[] = {
    TN_FIELD_STR(webhook_opts, to, "~", "file, FIFO or socket that gets every evaluation; ~: none"),
    TN_FIELD_END_OF(webhook_opts),
};

static void close_hook(void *self)
{
    tn_output **to = self;
    tn_output_abandon(*to); /* NULL after the end of a run */
}

static tn_status open_hook(void *self, tn_run_now *now, tn_error *err)
{
    const webhook_opts *o = tn_run_section(now->run, tn_section_webhook);
    const tn_output_with with = {.inputs = now->watch->inputs, .stop = now->watch->stop};
    return o->to != NULL ? tn_output_open(self, o->to, &with, err) : TN_OK;
}

static tn_status hear_eval(void *self, const tn_run_record *record, tn_error *err)
{
    tn_output **to = self;
    if (*to != NULL && strcmp(record->kind, "eval") == 0) {
        return tn_output_write(*to, record->line->data, record->line->size, err);
    }
    if (*to != NULL && strcmp(record->kind, "end") == 0) {
        tn_output *whole = *to;
        *to = NULL;
        return tn_output_commit(whole, err);
    }
    return TN_OK;
}

extern const tn_module tn_module_webhook;
const tn_module tn_module_webhook = {.name = "webhook",
                                     .size = sizeof(tn_output *),
                                     .at = {[TN_AT_LOAD] = open_hook},
                                     .hear = hear_eval,
                                     .close = close_hook};
