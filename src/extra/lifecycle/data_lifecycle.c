/* data_lifecycle.c - tnet-data lifecycle: what rules of leaving would keep of a model. */
#include "cli/data_tool.h"
#include "cli/signals.h"
#include "config/field.h"
#include "extra/lifecycle/lifecycle_preview.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/step/worker.h"

#include <stdio.h>

typedef struct lifecycle_flags {
    const char *checkpoint;
    tn_strs data;
    uint64_t rows;
} lifecycle_flags;

static const tn_field lifecycle_fields[] = {
    TN_FLAG_STR(lifecycle_flags, checkpoint, "PATH",
                "a checkpoint, or a run directory (~: the newest of this run)"),
    TN_FIELD_STRS(lifecycle_flags, data, "[]",
                  "what to evaluate; may be given again (~: data.valid, else data.test)"),
    TN_FIELD_U64(lifecycle_flags, rows, "100k", 1, 1e15, "rows",
                 "of these, for each column, at most"),
    TN_FIELD_END,
};

/* *rows: to judge by, where these are wanted. NULL: there are none. */
static const tn_strs *choose_data(const tn_setup *s, const lifecycle_flags *f, const char *path,
                                  tn_valid_rows *rows)
{
    const tn_run *run = &s->run;
    const bool named = f->data.n > 0;
    const bool found = !named && tn_checkpoint_valid_rows(path, run, s->arena, rows, NULL) == TN_OK;
    const tn_strs *test = run->data.test.n > 0 ? &run->data.test : NULL;
    return named ? &f->data : found ? &rows->paths : test;
}

static tn_status lifecycle(tn_setup *s, const tn_options *options, const void *flags, tn_error *err)
{
    const lifecycle_flags *f = flags;
    tn_worker *w = NULL;
    tn_text dir = {0};
    tn_text text = {0};
    s->reads = true;
    s->from = f->checkpoint;
    TN_TRY(tn_main_load(s, options, err));
    s->run.checkpoint.resume = "must";
    TN_TRY(tn_setup_plan(s, err));
    const tn_worker_opts opts = {.compares = true};
    TN_TRY(tn_worker_new(&w, s->plan, &opts, &s->binder, err));
    tn_run_dir(&s->run.run, &dir);
    const char *path = s->from != NULL ? s->from : tn_text_str(&dir);
    tn_valid_rows rows = {.day = 0};
    const tn_eval_request request = {.paths = choose_data(s, f, path, &rows),
                                     .rows_max = f->rows,
                                     .held = f->data.n == 0 && rows.held,
                                     .stop = tn_signals_watch_stop()};
    tn_status status = tn_lifecycle_preview(w, path, &request, &text, err);
    status = status == TN_OK ? tn_text_check(&text, "tables", err) : status;
    if (status == TN_OK) {
        (void)fputs(tn_text_str(&text), stdout);
    }
    tn_text_done(&text);
    tn_text_done(&dir);
    tn_worker_free(w);
    return status;
}

extern const tn_data_tool tn_data_tool_lifecycle;
const tn_data_tool tn_data_tool_lifecycle = {
    .program =
        {.name = "tnet-data lifecycle",
         .summary = "say what a threshold, a ttl, a score or a cap would keep of a model",
         .words = "CONFIG|RUN [key=value ..]",
         .flags = lifecycle_fields,
         .config = tn_run_fields,
         .words_min = 1,
         .words_max = 1,
         .example = "tnet-data lifecycle configs/widedeep.yaml",
         .notes = "For every slot: rows, bytes, and the share of occurrences that they cover;\n"
                  "then the AUC of an evaluation without the rows that would leave: by some usual\n"
                  "values of each rule, and by what is configured. Nothing is changed.\n"},
    .flags_size = sizeof(lifecycle_flags),
    .work = lifecycle,
};
