/* webhook.c - sends every evaluation of a run to whoever waits for it: to a file that they read. */
#include "base/file/file.h"
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
    TN_FIELD_STR(webhook_opts, to, "~", "file that every evaluation is appended to; ~: none"),
    TN_FIELD_END_OF(webhook_opts),
};

static void close_hook(void *self)
{
    tn_appender **to = self;
    tn_append_close(*to);
}

static tn_status open_hook(void *self, tn_run_now *now, tn_error *err)
{
    const webhook_opts *o = tn_run_section(now->run, tn_section_webhook);
    if (o->to == NULL) {
        return TN_OK;
    }
    TN_TRY(tn_output_check(o->to, now->watch->inputs, err));
    return tn_append_open(self, o->to, err);
}

static tn_status hear_eval(void *self, const tn_run_record *record, tn_error *err)
{
    tn_appender **to = self;
    if (*to == NULL || strcmp(record->kind, "eval") != 0) {
        return TN_OK;
    }
    return tn_append(*to, record->line->data, record->line->size, err);
}

extern const tn_module tn_module_webhook;
const tn_module tn_module_webhook = {.name = "webhook",
                                     .size = sizeof(tn_appender *),
                                     .at = {[TN_AT_LOAD] = open_hook},
                                     .hear = hear_eval,
                                     .close = close_hook};
