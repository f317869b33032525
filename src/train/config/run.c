/* run.c - the table of all options, and what follows from some of them. */
#include "train/config/run.h"

#include "base/core/number.h"
#include "base/keys/keyspace.h"
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "metrics/calibrator.h"
#include "models/model.h"
#include "nn/loss/loss.h"
#include "ps/optim/optim.h"
#include "ps/optim/schedule.h"
#include "train/config/days.h"

#include <math.h>
#include <string.h>

/* checkpoint.every: auto saves after so many, which train within seconds; a save takes as long as
 * 10,000 of them. */
enum { SAVED_ROWS = 250000 };

static const char *const all_words[] = {"all", NULL};
static const char *const inf_words[] = {"inf", NULL};
static const char *const missing_words[] = {"zero", "init", NULL};
static const char *const restore_words[] = {"best", "last", NULL};
static const char *const auc_words[] = {"histogram", "exact", NULL};
static const char *const on_error_words[] = {"stop", "warn", NULL};
static const char *const memory_words[] = {"auto", "none", NULL};
static const char *const reset_words[] = {"never", "epoch", NULL};
static const char *const on_full_words[] = {"stop", "evict", NULL};
static const char *const wire_words[] = {"f32", "fp16", "bf16", NULL};
static const char *const gemm_words[] = {"auto", "own", "openblas", NULL};
static const char *const switch_words[] = {"auto", "true", "false", NULL};
static const char *const redis_keys_words[] = {"text", "key8", NULL};
static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};
const char *const tn_value_words[] = {"f32", "bf16", "fp16", "int8", "int4", "1bit", NULL};

static const tn_field run_fields[] = {
    TN_FIELD_STR(tn_run_opts, name, "run", "names runs/<name>/, log lines and the exported model"),
    TN_FIELD_STR(tn_run_opts, dir, "~", "checkpoints, logs and summary; ~: runs/<name>"),
    TN_FIELD_U64(tn_run_opts, seed, "42", 0, 0x1p53, "", "of everything that is drawn"),
    TN_FIELD_BOOL(tn_run_opts, deterministic, "true", "same bits at any number of threads"),
    TN_FIELD_STR(tn_run_opts, day, "~",
                 "last-seen day of rows: a date, 2026-11-07; today: the clock's; ~: 0, "
                 "so that nothing depends on the clock"),
    TN_FIELD_END,
};

/* Defines the options of a row policy (ps/table/row_policy.h). */
#define ROW_POLICY(name, about)                                                                    \
    TN_FIELD_APART(#name, offsetof(tn_embedding_opts, rows.of[TN_POLICY_##name]),                  \
                   tn_row_options_##name, about)

static const tn_field embedding_fields[] = {
    TN_FIELD_U32(tn_embedding_opts, dim, "8", 1, TN_DIM_MAX, "floats", "width of a slot's vector"),
    TN_FIELD_TREE_ONE(tn_embedding_opts, pool, "sum", "sum mean sqrtn max concat(k)"),
    TN_FIELD_TREE_ONE(tn_embedding_opts, init, "{uniform: [-0.01, 0.01]}",
                      "first values of vectors; of nfm within 0.1, of dlrm 0.05"),
    TN_FIELD_CHOICE(
        tn_embedding_opts, missing, "zero", missing_words,
        "a key without a row outside training: left out of its slot, or as it would begin"),
    ROW_POLICY(admission, "when a key gets a row"),
    TN_FIELD_F64(tn_embedding_opts, decay, "0.98", 0, 1, "",
                 "what is left of a row's counts after a day of run.day"),
    ROW_POLICY(expiry, "when a row leaves, at the end of an epoch"),
    TN_FIELD_BOOL(tn_embedding_opts, cvm, "false",
                  "show and click of keys before the batch as inputs, beside the numbers"),
    TN_FIELD_SIZEW(tn_embedding_opts, memory, "auto", 1e5, 0x1p50, memory_words,
                   "cap of the table; auto: 80 % of cgroup, ulimit -v or RAM, less all else"),
    TN_FIELD_CHOICE(tn_embedding_opts, on_full, "stop", on_full_words,
                    "at the cap: save and end with code 7, or let the rows leave that score least"),
    TN_FIELD_CHOICE(tn_embedding_opts, reset, "never", reset_words,
                    "rows begin anew with each epoch, and dense weights go on (MEDA)"),
    TN_FIELD_END,
};

static const tn_field clip_fields[] = {
    TN_FIELD_F64(tn_clip_opts, global, "~", 0, 1e30, "", "norm of all gradients of a step"),
    TN_FIELD_F64(tn_clip_opts, row, "~", 0, 1e30, "", "norm of one row's gradient"),
    TN_FIELD_F64(tn_clip_opts, value, "~", 0, 1e30, "", "size of one gradient"),
    TN_FIELD_END,
};

static const tn_field stop_fields[] = {
    TN_FIELD_STR(tn_stop_opts, monitor, "~",
                 "valid.<metric> that must get better; ~: no early stop"),
    TN_FIELD_U32(tn_stop_opts, patience, "2", 1, 1e6, "evaluations", "without a better one"),
    TN_FIELD_F64(tn_stop_opts, min_delta, "1e-6", 0, 1e6, "", "less is not better"),
    TN_FIELD_CHOICE(tn_stop_opts, restore, "best", restore_words, "which model stays"),
    TN_FIELD_END,
};

static const tn_field plateau_fields[] = {
    TN_FIELD_F64(tn_plateau_opts, factor, "~", 0, 1, "", "of the learning rate; ~: never reduced"),
    TN_FIELD_U32(tn_plateau_opts, patience, "1", 1, 1e6, "evaluations", "without a better one"),
    TN_FIELD_F64(tn_plateau_opts, min_lr, "1e-6", 0, 1e3, "", "never below"),
    TN_FIELD_STR(tn_plateau_opts, monitor, "~",
                 "~: that of train.stop, else valid.auc, or what fits the loss"),
    TN_FIELD_END,
};

static const char *const auto_word[] = {"auto", NULL};

static const tn_field train_fields[] = {
    TN_FIELD_U32W(tn_train_opts, epochs, "auto", 0, 1e6, "", auto_word,
                  "passes over the data; auto: one of 2,000 steps or more, else until a stop on "
                  "data.valid, without it at most 4, of lr 20"),
    TN_FIELD_U32W(tn_train_opts, batch, "auto", 1, 1 << 20, "rows", auto_word,
                  "of one step; auto: 256 of fewer than 100,000 rows (without data.valid 250,000), "
                  "else 1024"),
    TN_FIELD_U32W(tn_train_opts, threads, "all", 1, 1024, "threads", all_words,
                  "that share each step"),
    TN_FIELD_VARIANT(tn_train_opts, optimizer, "{type: adam, lr: 1e-3}", tn_optim_choices,
                     "rule of the dense weights"),
    TN_FIELD_TREE_OF(tn_train_opts, sparse, "~", "type",
                     "rule of the rows: one for all, or {<input>: rule, ..}; ~: " TN_ROW_RULE
                     ", for vectors of fm, fwfm and deepfm with a smaller lr where rows have many "
                     "values"),
    TN_FIELD_TREE_ONE(
        tn_train_opts, value_sizes, "~",
        "rows learn as if values (x_j) were divided by these: {SLOT: SIZE}, or {SLOT: "
        "{others: SIZE, INDEX: SIZE, ..}}"),
    TN_FIELD_STRS(tn_train_opts, freeze, "~",
                  "layers, or dense parameters by names with *, that keep the values which "
                  "checkpoint.from gives them"),
    TN_FIELD_TABLE(tn_train_opts, clip, tn_clip_opts, clip_fields, "bounds of gradients"),
    TN_FIELD_TABLE(tn_train_opts, stop, tn_stop_opts, stop_fields, "early stop"),
    TN_FIELD_TABLE(tn_train_opts, reduce_on_plateau, tn_plateau_opts, plateau_fields,
                   "smaller steps when nothing gets better"),
    TN_FIELD_U64(tn_train_opts, max_steps, "~", 0, 0x1p53, "steps", "end after"),
    TN_FIELD_DURATION(tn_train_opts, max_time, "~", 0, 1e9, "end after"),
    TN_FIELD_U32(tn_train_opts, prefetch, "2", 1, 1024, "steps", "read and localized ahead"),
    TN_FIELD_END,
};

static const tn_field eval_fields[] = {
    TN_FIELD_STR(tn_eval_opts, every, "1epoch", "how often data.valid is evaluated"),
    TN_FIELD_F64S(tn_eval_opts, at, "~", 1, 1e15,
                  "steps of the first pass behind which it is evaluated as well; up to the last of "
                  "them nothing counts against train.stop or train.reduce_on_plateau"),
    TN_FIELD_U32(tn_eval_opts, batch, "4096", 1, 1 << 20, "rows", "of one step"),
    TN_FIELD_STRS(tn_eval_opts, metrics, "[auc, logloss, ne, ctr, pctr, copc, ece]",
                  "what is shown; losses of other things than clicks have defaults that fit them"),
    TN_FIELD_CHOICE(tn_eval_opts, auc, "histogram", auc_words, "exact keeps every score in memory"),
    TN_FIELD_U32(tn_eval_opts, top_k, "10", 1, 1e6, "rows",
                 "that ndcg, mrr, recall and hit_rate see of each group, those of the highest "
                 "scores"),
    TN_FIELD_STRS(tn_eval_opts, slices, "~", "slots whose values get metrics of their own"),
    TN_FIELD_U64(tn_eval_opts, slices_min_rows, "100", 1, 1e15, "rows", "fewer join 'other'"),
    TN_FIELD_STR(tn_eval_opts, predictions, "~",
                 "file that gets every score of data.test; or s3://, gs://, webhdfs://"),
    TN_FIELD_CHOICE(
        tn_eval_opts, calibrate, "auto", tn_calibrate_choices,
        "a map from scores to probabilities, fitted on data.valid when training ends, "
        "for tnet-eval and tnet-export; auto: platt, held to the scores where it gains little"),
    TN_FIELD_END,
};

static const tn_field checkpoint_fields[] = {
    TN_FIELD_STR(
        tn_checkpoint_opts, every, "auto",
        "1epoch, 5000steps, 15min; never; auto: an epoch, or several that have 250,000 rows"),
    TN_FIELD_U32(tn_checkpoint_opts, keep, "3", 1, 1e6, "checkpoints", "that stay"),
    TN_FIELD_STR(tn_checkpoint_opts, delta_every, "~", "changes only, in between"),
    TN_FIELD_STR(tn_checkpoint_opts, resume, "auto", "auto, never, or the path of a checkpoint"),
    TN_FIELD_TREE(
        tn_checkpoint_opts, from, "~",
        "begin with other weights: PATH of a checkpoint or run, {path, rows, dense, rename}, "
        "{tensornet: {dir, map}}, {vw: FILE}, {xlearn: FILE}, or files {rows: dict.tsv, dense: "
        "x.safetensors}"),
    TN_FIELD_CHOICE(tn_checkpoint_opts, on_error, "stop", on_error_words,
                    "when a checkpoint cannot be written, or an export of export.every"),
    TN_FIELD_DURATION(tn_checkpoint_opts, grace, "20s", 0, 1e6, "for saving after a stop signal"),
    TN_FIELD_BOOL(tn_checkpoint_opts, strict, "false", "the newest checkpoint or none"),
    TN_FIELD_END,
};

static const tn_field cluster_fields[] = {
    TN_FIELD_TREE(tn_cluster_opts, peers, "auto", "equal processes: a number, addresses or auto"),
    TN_FIELD_F64W(tn_cluster_opts, staleness, "0", 0, 1e6, "steps", inf_words,
                  "that a peer may run ahead; inf: asynchronous"),
    TN_FIELD_CHOICE(tn_cluster_opts, values, "f32", wire_words,
                    "how rows, gradients and weights travel between peers"),
    TN_FIELD_DURATION(tn_cluster_opts, start_timeout, "120s", 0, 1e6, "for all peers to start"),
    TN_FIELD_STR(tn_cluster_opts, restarts, "3/1h",
                 "how often peers of one machine start again after a process was killed, within "
                 "what time; 0: never"),
    TN_FIELD_TREE(tn_cluster_opts, security, "~", "keys and allow-list beyond this host"),
    TN_FIELD_END,
};

static const tn_field compute_fields[] = {
    TN_FIELD_CHOICE(tn_compute_opts, gemm, "auto", gemm_words, "who makes matrix products"),
    TN_FIELD_BOOL(tn_compute_opts, bf16, "false", "products in bfloat16; needs AVX512_BF16"),
    TN_FIELD_CHOICE(tn_compute_opts, huge_pages, "auto", switch_words, "for the table"),
    TN_FIELD_BOOL(tn_compute_opts, pin, "false",
                  "each thread of the team to a processor of its own"),
    TN_FIELD_END,
};

static const tn_field log_fields[] = {
    TN_FIELD_CHOICE(tn_log_opts, progress, "auto", switch_words, "a bar; auto: on a terminal"),
    TN_FIELD_DURATION(tn_log_opts, every, "10s", 0, 1e6,
                      "between lines and records; 0s: every step"),
    TN_FIELD_CHOICE(tn_log_opts, tensorboard, "auto", switch_words,
                    "event files for TensorBoard, in the folder tb; auto: where it was built"),
    TN_FIELD_BOOL(tn_log_opts, jsonl, "true", "metrics.jsonl"),
    TN_FIELD_CHOICE(tn_log_opts, level, "info", level_words, "what is logged"),
    TN_FIELD_END,
};

static const tn_field export_fields[] = {
    TN_FIELD_STR(tn_export_opts, to, "export",
                 "folder, or s3://, gs://, webhdfs://; the model goes to <to>/<model id>"),
    TN_FIELD_STR(tn_export_opts, every, "~",
                 "day, hour, 1epoch, 5000steps, 15min: a run publishes there while it trains"),
    TN_FIELD_STRS(tn_export_opts, dict, "tnd", "tnd, tsv, resp"),
    TN_FIELD_CHOICE(tn_export_opts, redis_keys, "text", redis_keys_words,
                    "of resp; text: group and sign, key8: 8 bytes, the table key"),
    TN_FIELD_CHOICE(tn_export_opts, values, "f32", tn_value_words, "of the dictionary"),
    TN_FIELD_F64(
        tn_export_opts, loss_max, "0.001", 0, 1, "",
        "AUC that export.values may cost on data.valid; COPC may move by ten times as much"),
    TN_FIELD_STRS(tn_export_opts, graph, "native", "native, which is always written, onnx"),
    TN_FIELD_F64(tn_export_opts, min_score, "~", 0, 1e30, "", "rows below are left out"),
    TN_FIELD_BOOL(tn_export_opts, state, "false", "optimizer state in dict.tsv"),
    TN_FIELD_BOOL(tn_export_opts, check_groups, "true", "store each row's group"),
    TN_FIELD_END,
};

#define TN_SECTION(name, about) extern const tn_field tn_section_##name[];
#include "train/config/sections.def"
#undef TN_SECTION

enum {
#define TN_SECTION(name, about) SECTION_##name,
#include "train/config/sections.def"
#undef TN_SECTION
    SECTIONS
};
_Static_assert((int)SECTIONS <= (int)TN_SECTIONS_MAX, "tn_run.section is too short");

const tn_field tn_run_fields[] = {
    TN_FIELD_TABLE(tn_run, run, tn_run_opts, run_fields, "the run as a whole"),
    TN_FIELD_TABLE(tn_run, data, tn_data_opts, tn_data_fields, "what is read"),
    TN_FIELD_TABLES(tn_run, slots, tn_slot_opts, "~", tn_slot_fields, "what the model may see"),
    TN_FIELD_TREE(tn_run, sequences, "~",
                  "histories: {name: {slots: [lists of one length], target: [their pairs], "
                  "max_len: 50, keep: last | first, uneven: error | cut}}"),
    TN_FIELD_TREE(
        tn_run, tasks, "~",
        "several labels: {name: {label: column, loss: .., weight: number, learned or {column: ..}, "
        "of: task, where: task}}; see docs/tasks.md"),
    TN_FIELD_TABLE(tn_run, embedding, tn_embedding_opts, embedding_fields, "defaults of all slots"),
    TN_FIELD_VARIANT_WITH(tn_run, model, "widedeep", tn_model_choices, tn_model_common,
                          tn_model_common_fields, "the network"),
    TN_FIELD_VARIANT_WITH(tn_run, loss, TN_LOSS_DEFAULT, tn_loss_choices, tn_loss_common,
                          tn_loss_common_fields, "what is minimised"),
    TN_FIELD_TABLE(tn_run, train, tn_train_opts, train_fields, "how it is trained"),
    TN_FIELD_TABLE(tn_run, eval, tn_eval_opts, eval_fields, "how it is judged"),
    TN_FIELD_TABLE(tn_run, checkpoint, tn_checkpoint_opts, checkpoint_fields, "how it is saved"),
    TN_FIELD_TABLE(tn_run, cluster, tn_cluster_opts, cluster_fields, "several processes"),
    TN_FIELD_TABLE(tn_run, compute, tn_compute_opts, compute_fields, "the machine"),
    TN_FIELD_TABLE(tn_run, log, tn_log_opts, log_fields, "what is shown and kept"),
    TN_FIELD_TABLE(tn_run, export, tn_export_opts, export_fields, "what serving gets"),
#define TN_SECTION(name, about)                                                                    \
    TN_FIELD_APART(#name, offsetof(tn_run, section[SECTION_##name]), tn_section_##name, about),
#include "train/config/sections.def"
#undef TN_SECTION
    TN_FIELD_END,
};

void tn_run_dir(const tn_run_opts *run, tn_text *out)
{
    if (run->dir != NULL) {
        tn_text_adds(out, run->dir);
    } else {
        tn_text_addf(out, "runs/%s", run->name);
    }
}

uint32_t tn_run_threads(const tn_run *run)
{
    uint32_t cpus = tn_cpu_count();
    uint32_t asked = run->train.threads;
    TN_ASSERT(asked == TN_WORD_U32(0) || (asked >= 1 && asked <= TN_TEAM_THREADS_MAX));
    return asked == TN_WORD_U32(0) ? (cpus < TN_TEAM_THREADS_MAX ? cpus : TN_TEAM_THREADS_MAX)
                                   : asked;
}

bool tn_schedule_ends_with_run(const tn_run *run)
{
    const tn_rule_opts *dense = run->train.optimizer.opts;
    return run->train.max_steps == TN_UNSET_U64 && tn_schedule_check(&dense->schedule, 0) != NULL &&
           tn_schedule_check(&dense->schedule, 1) == NULL;
}

static bool has_suffix(const char *text, const char *suffix, uint64_t *number)
{
    size_t n = strlen(text);
    size_t k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0 &&
           tn_read_u64(text, n - k, number) == TN_NUM_OK && *number > 0;
}

/* Reads a duration above 0. */
static bool read_duration(const char *text, double *seconds)
{
    tn_diag quiet = {0};
    const tn_binder b = {.diag = &quiet};
    const tn_field duration = {.kind = TN_KIND_DURATION, .key = "every", .min = 0, .max = 1e9};
    const tn_tree scalar = {.kind = TN_TREE_SCALAR, .text = text};
    const bool good = tn_read_scalar(&b, &duration, &scalar, seconds) && *seconds > 0;
    tn_diag_done(&quiet);
    return good;
}

bool tn_restarts_read(const char *text, uint32_t *n, double *within_s)
{
    const size_t digits = strspn(text, "0123456789");
    uint64_t count = 0;
    *n = 0;
    *within_s = 0;
    if (strcmp(text, "0") == 0) {
        return true;
    }
    const bool good = tn_read_u64(text, digits, &count) == TN_NUM_OK && count >= 1 &&
                      count <= TN_RESTARTS_MAX && text[digits] == '/' &&
                      read_duration(text + digits + 1, within_s);
    *n = (uint32_t)count;
    return good;
}

bool tn_every_read(const char *text, tn_every *out)
{
    uint64_t n = 0;
    *out = (tn_every){0};
    if (has_suffix(text, "epochs", &n) || has_suffix(text, "epoch", &n)) {
        out->epochs = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        return true;
    }
    if (has_suffix(text, "steps", &n) || has_suffix(text, "step", &n)) {
        out->steps = n;
        return true;
    }
    if (strcmp(text, "never") == 0) {
        return true;
    }
    return read_duration(text, &out->seconds);
}

/* Uses rows for auto, so that the checkpoints do not depend on a clock. */
bool tn_every_read_save(const char *text, tn_every *out)
{
    const bool chosen = strcmp(text, "auto") == 0;
    *out = (tn_every){.epochs = 1, .rows = SAVED_ROWS};
    return chosen || tn_every_read(text, out);
}

bool tn_run_exports_days(const tn_run *run)
{
    const char *every = run->export.every;
    return every != NULL && (strcmp(every, "day") == 0 || strcmp(every, "hour") == 0);
}

bool tn_run_trains_on_stdin(const tn_run *run)
{
    bool has = false;
    for (uint32_t i = 0; i < run->data.train.n; i++) {
        has = has || strcmp(run->data.train.item[i], "-") == 0;
    }
    return has;
}

bool tn_run_has_clicks(const tn_run *run)
{
    const tn_tasks *tasks = run->data.tasks;
    bool clicks = tn_loss_of(&run->loss)->target == TN_TARGET_CLICK;
    for (uint32_t k = 0; tasks != NULL && k < tasks->n; k++) {
        clicks = clicks || tasks->task[k].target == TN_TARGET_CLICK;
    }
    return clicks;
}

const char *tn_run_watched(const tn_run *run)
{
    return run->data.tasks != NULL && tn_run_has_clicks(run) ? "valid.tasks.ne"
                                                             : tn_loss_of(&run->loss)->watched;
}

const char *tn_run_monitor(const tn_run *run)
{
    const tn_train_opts *o = &run->train;
    const char *monitor = o->stop.monitor;
    if (monitor == NULL && !isnan(o->reduce_on_plateau.factor)) {
        monitor = o->reduce_on_plateau.monitor;
        const bool clicks = run->data.target == TN_TARGET_CLICK && run->several == NULL;
        const char *usual = clicks ? "valid.auc" : tn_run_watched(run);
        monitor = monitor != NULL ? monitor : usual;
    }
    return monitor != NULL ? monitor + strlen("valid.") : NULL;
}
