/* journal.c - the module that writes the records of a run to metrics.jsonl. */
#include "base/codec/json.h"
#include "train/checkpoint/checkpoint.h"
#include "train/report/metrics_jsonl.h"
#include "train/run/module.h"
#include "train/run/saver.h"
#include "train/step/host.h"

static void close_file(void *self)
{
    tn_journal_close(self);
}

/* Opens the file, and writes that the run has started, or goes on. */
static tn_status open_file(void *self, tn_run_now *now, tn_error *err)
{
    tn_journal *j = self;
    const tn_run *run = now->run;
    const tn_checkpoints *dir = now->saver->checkpoints;
    const tn_journal_at at = {.step = now->worker->steps};
    char path[TN_PATH_SIZE];
    if (!run->log.jsonl) {
        return TN_OK;
    }
    TN_TRY(tn_path_join(tn_checkpoints_dir(dir), "metrics.jsonl", path, err));
    TN_TRY(tn_journal_open(j, path, err));
    tn_text *t = tn_journal_begin(j, "start", &at);
    tn_json_str(t, "version", TN_VERSION);
    tn_json_hex64(t, "run_id", tn_checkpoints_run_id(dir));
    tn_json_str(t, "config_hash", now->text->hash);
    tn_json_str(t, "resumed_from", now->resumed != NULL ? now->resumed->name : NULL);
    tn_json_u64(t, "peers", now->plan->owners.n_peers);
    tn_json_u64(t, "threads", tn_run_threads(run));
    tn_json_str(t, "cpu", tn_host_cpu());
    tn_json_u64(t, "seed", run->run.seed);
    return tn_journal_end(j, err);
}

static tn_status write_line(void *self, const tn_run_record *record, tn_error *err)
{
    const tn_journal *j = self;
    return j->file != NULL ? tn_append(j->file, record->line->data, record->line->size, err)
                           : TN_OK;
}

extern const tn_module tn_module_jsonl;
const tn_module tn_module_jsonl = {.name = "jsonl",
                                   .size = sizeof(tn_journal),
                                   .at = {[TN_AT_LOAD] = open_file},
                                   .hear = write_line,
                                   .close = close_file};
