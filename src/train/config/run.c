/* run.c - the table of all options, and the checks that need more than one of them. */
#include "train/config/run.h"

#include "base/core/number.h"
#include "base/keys/keyspace.h"
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "config/absent.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/source/remote.h"
#include "io/source/uri.h"
#include "metrics/calibrator.h"
#include "metrics/metrics.h"
#include "models/model.h"
#include "nn/gemm/gemm.h"
#include "nn/loss/loss.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/optim/schedule.h"
#include "train/config/data_checks.h"
#include "train/config/days.h"
#include "train/config/export_files.h"

#include <math.h>
#include <string.h>

/* checkpoint.every: auto saves after so many, which train within seconds; a save takes as long as
 * 10,000 of them. */
enum { SAVED_ROWS = 250000 };

enum { FILES_MAX = 8 }; /* words of export.graph */

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

static const tn_field bloom_fields[] = {
    TN_FIELD_U64(tn_filter_opts, keys, "100M", 1024, 1e12, "keys",
                 "that wait at a time; with a tenth more its counts are halved at a sweep"),
    TN_FIELD_F64(tn_filter_opts, error, "1e-3", 1e-9, 0.5, "",
                 "share of new keys that count too much by then"),
    TN_FIELD_END,
};
static const tn_field exact_fields[] = {TN_FIELD_END};
static const tn_choice filter_exact = {
    .name = "exact", .help = "24 bytes a key that waits, and its index", .fields = exact_fields};
const tn_choice tn_filter_bloom = {
    .name = "bloom",
    .help = "a counting Bloom filter: counts may be too high, never too low; threshold to 255",
    .fields = bloom_fields,
    .size = sizeof(tn_filter_opts)};
static const tn_choice *const filters[] = {&filter_exact, &tn_filter_bloom, NULL};

const tn_field tn_admission_fields[] = {
    TN_FIELD_U32(tn_admission_opts, threshold, "0", 0, 1e9, "occurrences",
                 "in earlier steps, from which on a key gets a whole row"),
    TN_FIELD_F64(tn_admission_opts, probability, "1", 0, 1, "",
                 "with which it gets it then, drawn in each step"),
    TN_FIELD_VARIANT(tn_admission_opts, filter, "exact", filters, "how keys that wait are counted"),
    TN_FIELD_STRS(tn_admission_opts, uses, "~",
                  "embedding inputs that wait, as [deep]; others learn at once; ~: all"),
    TN_FIELD_BOOL(tn_admission_opts, l1_shrk, "false",
                  "they wait, and read as zeros, while the weights of all other inputs are 0"),
    TN_FIELD_END,
};

static const char *const combine_words[] = {"or", "and", NULL};

const tn_field tn_expiry_fields[] = {
    TN_FIELD_F64(tn_expiry_opts, ttl_days, "~", 0, TN_DAY_MAX, "days",
                 "not seen for more of them (run.day)"),
    TN_FIELD_F64(tn_expiry_opts, score_below, "~", 0, 1e30, "",
                 "click * clicks + non_click * the rest, decayed, is less"),
    TN_FIELD_F64(tn_expiry_opts, show_below, "~", 0, 1e30, "occurrences", "decayed, are fewer"),
    TN_FIELD_F64(tn_expiry_opts, norm_below, "~", 0, 1e30, "", "L2 norm of its weights is less"),
    TN_FIELD_CHOICE(tn_expiry_opts, combine, "or", combine_words,
                    "a row leaves when one of these holds that are given, or all of them"),
    TN_FIELD_F64(tn_expiry_opts, click, "1", 0, 1e6, "", "weight of clicks in a row's score"),
    TN_FIELD_F64(tn_expiry_opts, non_click, "0.1", 0, 1e6, "", "weight of other occurrences"),
    TN_FIELD_END,
};

static const tn_field embedding_fields[] = {
    TN_FIELD_U32(tn_embedding_opts, dim, "8", 1, TN_DIM_MAX, "floats", "width of a slot's vector"),
    TN_FIELD_TREE_ONE(tn_embedding_opts, pool, "sum", "sum mean sqrtn max concat(k)"),
    TN_FIELD_TREE_ONE(tn_embedding_opts, init, "{uniform: [-0.01, 0.01]}",
                      "first values of vectors; of nfm within 0.1, of dlrm 0.05"),
    TN_FIELD_CHOICE(
        tn_embedding_opts, missing, "zero", missing_words,
        "a key without a row outside training: left out of its slot, or as it would begin"),
    TN_FIELD_TABLE(tn_embedding_opts, admission, tn_admission_opts, tn_admission_fields,
                   "when a key gets a row"),
    TN_FIELD_F64(tn_embedding_opts, decay, "0.98", 0, 1, "",
                 "what is left of a row's counts after a day of run.day"),
    TN_FIELD_TABLE(tn_embedding_opts, expiry, tn_expiry_opts, tn_expiry_fields,
                   "when a row leaves, at the end of an epoch"),
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
    {.kind = TN_KIND_TABLE,                                                                        \
     .key = #name,                                                                                 \
     .offset = offsetof(tn_run, section) + SECTION_##name * sizeof(void *),                        \
     .fallback = "{}",                                                                             \
     .unit = "",                                                                                   \
     .help = (about),                                                                              \
     .table = tn_section_##name,                                                                   \
     .apart = true},
#include "train/config/sections.def"
#undef TN_SECTION
    TN_FIELD_END,
};

static const tn_origin nowhere = {.source = "configuration"};

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

static const tn_origin *place(const tn_tree *tree, const char *path)
{
    const tn_tree *t = tn_tree_at(tree, path);
    return t != NULL ? &t->at : &nowhere;
}

static bool has_suffix(const char *text, const char *suffix, uint64_t *number)
{
    size_t n = strlen(text);
    size_t k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0 &&
           tn_read_u64(text, n - k, number) == TN_NUM_OK && *number > 0;
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
    tn_diag quiet = {0};
    const tn_binder b = {.diag = &quiet};
    const tn_field duration = {.kind = TN_KIND_DURATION, .key = "every", .min = 0, .max = 1e9};
    const tn_tree scalar = {.kind = TN_TREE_SCALAR, .text = text, .at = nowhere};
    bool good = tn_read_scalar(&b, &duration, &scalar, &out->seconds) && out->seconds > 0;
    tn_diag_done(&quiet);
    return good;
}

/* Uses rows for auto, so that the checkpoints do not depend on a clock. */
bool tn_every_read_save(const char *text, tn_every *out)
{
    const bool chosen = strcmp(text, "auto") == 0;
    *out = (tn_every){.epochs = 1, .rows = SAVED_ROWS};
    return chosen || tn_every_read(text, out);
}

static void check_day(const tn_binder *b, const tn_tree *tree, const char *text)
{
    uint32_t day = 0;
    if (!tn_day_read(text, &day)) {
        tn_diag_error(b->diag, place(tree, "run.day"),
                      "'run.day' is '%s', not a date from 1970-01-01 on like 2026-11-07, nor today",
                      text);
    }
}

static void check_every(const tn_binder *b, const tn_tree *tree, const char *path, const char *text)
{
    tn_every every;
    const bool saves = strcmp(path, "checkpoint.every") == 0;
    const bool good =
        text == NULL || (saves ? tn_every_read_save(text, &every) : tn_every_read(text, &every));
    if (!good) {
        tn_diag_error(b->diag, place(tree, path),
                      "'%s' is '%s', not like 1epoch, 5000steps, 15min or never%s", path, text,
                      saves ? ", nor auto" : "");
    }
}

bool tn_run_exports_days(const tn_run *run)
{
    const char *every = run->export.every;
    return every != NULL && (strcmp(every, "day") == 0 || strcmp(every, "hour") == 0);
}

static void check_export_every(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *text = r->export.every;
    tn_every every;
    if (text == NULL) {
        return;
    }
    const tn_origin *at = place(tree, "export.every");
    const bool over = tn_run_exports_days(r);
    const bool hours = r->data.n_days > 0 && tn_day_is_hour(r->data.day[0]);
    if (over && r->data.pattern.n == 0) {
        tn_diag_error(b->diag, at, "'export.every' is %s, and data.train has no {day:..}", text);
    } else if (over && hours != (strcmp(text, "hour") == 0)) {
        tn_diag_error(b->diag, at, "'export.every' is %s, and data.days are %s", text,
                      hours ? "hours" : "days");
    } else if (!tn_run_exports_days(r) && !tn_every_read(text, &every)) {
        tn_diag_error(b->diag, at,
                      "'export.every' is '%s', not like day, hour, 1epoch, 5000steps, 15min", text);
    } else if (r->export.to == NULL || r->export.to[0] == '\0') {
        tn_diag_error(b->diag, at, "'export.every' is %s, and export.to names no folder", text);
    }
}

/* Whether a path, as "../x" and "/x", leads out of the folder that it is joined to. */
static bool leads_out(const char *path)
{
    bool out = path[0] == '/';
    for (const char *step = path; step != NULL && !out; step = strchr(step, '/')) {
        step += *step == '/';
        out = strncmp(step, "..", 2) == 0 && (step[2] == '/' || step[2] == '\0');
    }
    return out;
}

/* Refuses what no store takes, before anything is learned. */
static void check_places(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    tn_error err = {0};
    if (r->run.dir == NULL && (r->run.name[0] == '\0' || leads_out(r->run.name))) {
        tn_diag_error(b->diag, place(tree, "run.name"),
                      "'run.name' is '%s', and names a folder in 'runs'", r->run.name);
        tn_diag_hint(b->diag, "run.dir=PATH is a folder anywhere");
    }
    if (r->run.dir != NULL && tn_uri_is(r->run.dir)) {
        tn_diag_error(b->diag, place(tree, "run.dir"),
                      "'run.dir' is '%s', and checkpoints are written to disks only", r->run.dir);
    }
    if (r->export.to != NULL && tn_uri_is(r->export.to) &&
        tn_remotes()->check_target(r->export.to, false, &err) != TN_OK) {
        tn_diag_error(b->diag, place(tree, "export.to"), "'export.to': %s", err.text);
    }
    if (r->eval.predictions != NULL && tn_uri_is(r->eval.predictions) &&
        tn_remotes()->check_target(r->eval.predictions, true, &err) != TN_OK) {
        tn_diag_error(b->diag, place(tree, "eval.predictions"), "'eval.predictions': %s", err.text);
    }
}

/* Refuses products that this machine does not have now rather than with the first graph. A lack of
 * memory is no fault of the configuration, and is reported then. */
static void check_compute(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    tn_products products;
    tn_error err = {0};
    const tn_status found = tn_products_find(&products, (tn_products_choice)r->compute.gemm, &err);
    if (found != TN_OK && found != TN_E_MEMORY) {
        tn_diag_error(b->diag, place(tree, "compute.gemm"), "'compute.gemm': %s", err.text);
    }
    if (r->compute.pin && tn_run_threads(r) > tn_cpu_count()) {
        tn_diag_error(b->diag, place(tree, "compute.pin"),
                      "'compute.pin' wants a processor per thread: %u threads, %u processors",
                      tn_run_threads(r), tn_cpu_count());
    }
    if (r->compute.bf16 && found == TN_OK && tn_bf16_products(&products, &err) != TN_OK) {
        tn_diag_error(b->diag, place(tree, "compute.bf16"), "'compute.bf16': %s", err.text);
    }
}

bool tn_run_trains_on_stdin(const tn_run *run)
{
    bool has = false;
    for (uint32_t i = 0; i < run->data.train.n; i++) {
        has = has || strcmp(run->data.train.item[i], "-") == 0;
    }
    return has;
}

static void check_stdin(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (r->train.epochs > 1 && r->train.epochs != TN_AUTO && tn_run_trains_on_stdin(r)) {
        tn_diag_error(b->diag, place(tree, "train.epochs"),
                      "train.epochs is %u, and data.train '-', standard input, can be read once",
                      r->train.epochs);
    }
}

static void check_reset(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (r->embedding.reset != TN_RESET_NEVER && r->checkpoint.delta_every != NULL) {
        tn_diag_error(b->diag, place(tree, "embedding.reset"),
                      "embedding.reset drops all rows, which checkpoint.delta_every cannot write");
    }
}

static void check_schedule(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_rule_opts *dense = r->train.optimizer.opts;
    const tn_origin *at = place(tree, "train.optimizer.schedule");
    const char *why = tn_schedule_check(&dense->schedule, 1);
    if (why != NULL) {
        tn_diag_error(b->diag, at, "'train.optimizer.schedule': %s", why);
    }
    if (tn_schedule_ends_with_run(r) && tn_run_trains_on_stdin(r)) {
        tn_diag_error(b->diag, at,
                      "schedule '%s' ends with the run, and how long data.train '-', standard "
                      "input, is nobody knows",
                      dense->schedule.choice->name);
        tn_diag_hint(b->diag, "set train.optimizer.schedule.steps or train.max_steps");
    }
}

/* Refuses options that end with the data, or with what it is worth: they have no meaning when a day
 * follows another. */
static void check_days(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (r->data.pattern.n == 0) {
        return;
    }
    const bool plateau = !isnan(r->train.reduce_on_plateau.factor);
    if (r->train.stop.monitor != NULL || plateau) {
        const char *what = plateau ? "train.reduce_on_plateau" : "train.stop";
        tn_diag_error(
            b->diag, place(tree, what),
            "'%s' compares evaluations of the same rows, and data.days brings others each "
            "day: a run over days learns every day to its end",
            what);
    }
    if (r->train.epochs == 0) {
        tn_diag_error(b->diag, place(tree, "train.epochs"),
                      "'train.epochs' is 0, and a run over days learns each of them");
    }
    if (tn_schedule_ends_with_run(r)) {
        const tn_rule_opts *dense = r->train.optimizer.opts;
        tn_diag_error(b->diag, place(tree, "train.optimizer.schedule"),
                      "schedule '%s' ends with the run, and a run over days has no end",
                      dense->schedule.choice->name);
        tn_diag_hint(b->diag, "set train.optimizer.schedule.steps or train.max_steps");
    }
    if (r->run.day != NULL) {
        tn_diag_error(b->diag, place(tree, "run.day"),
                      "'run.day' and data.days are both set: rows have the day of their data");
    }
}

static void check_words(const tn_binder *b, const tn_origin *at, const char *what,
                        const tn_strs *given, const char *const *known, uint32_t n_known)
{
    for (uint32_t i = 0; i < given->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < n_known && !found; k++) {
            found = strcmp(given->item[i], known[k]) == 0;
        }
        if (!found) {
            tn_diag_unknown(b->diag, at, what, given->item[i], known, n_known);
        }
    }
}

static void check_files(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *graphs[FILES_MAX] = {"native"};
    const char *dicts[FILES_MAX] = {"tnd", "tsv"};
    uint32_t n_graphs = 1;
    uint32_t n_dicts = 2;
    for (const tn_export_file *const *f = tn_all_export_files; *f != NULL; f++) {
        TN_ASSERT(n_graphs < FILES_MAX && n_dicts < FILES_MAX);
        if ((*f)->make != NULL) {
            graphs[n_graphs++] = (*f)->word;
        } else {
            dicts[n_dicts++] = (*f)->word;
        }
    }
    check_words(b, place(tree, "export.dict"), "kind of dictionary", &r->export.dict, dicts,
                n_dicts);
    check_words(b, place(tree, "export.graph"), "kind of graph", &r->export.graph, graphs,
                n_graphs);
}

/* The metric in "valid.auc"; NULL: there is none of that name. */
static const tn_metric *watched_metric(const char *monitor)
{
    static const char prefix[] = "valid.";
    size_t size = sizeof prefix - 1;
    return strncmp(monitor, prefix, size) == 0 ? tn_metric_find(monitor + size) : NULL;
}

const char *tn_run_grouped_metric(const tn_run *run)
{
    const char *const monitors[] = {run->train.stop.monitor, run->train.reduce_on_plateau.monitor};
    for (uint32_t i = 0; i < run->eval.metrics.n; i++) {
        const tn_metric *m = tn_metric_find(run->eval.metrics.item[i]);
        if (m != NULL && m->needs_groups) {
            return m->name;
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        const tn_metric *m = monitors[i] != NULL ? watched_metric(monitors[i]) : NULL;
        if (m != NULL && m->needs_groups) {
            return m->name;
        }
    }
    return NULL;
}

/* Says what else there is, since the names are many. */
static void refuse_metric(const tn_binder *b, const tn_origin *at, const tn_run *r,
                          const char *name)
{
    static const char *const scores[] = {"probabilities of a click", "scores that say 1 above 0",
                                         "numbers", "scores that order rows"};
    const tn_loss *loss = tn_loss_of(&r->loss);
    tn_text fit = {0};
    for (const tn_metric *const *m = tn_all_metrics; *m != NULL; m++) {
        if (tn_metric_fits((*m)->name, loss->target)) {
            tn_text_addf(&fit, "%s%s", fit.size > 0 ? ", " : "", (*m)->name);
        }
    }
    tn_diag_error(b->diag, at, "metric '%s' does not judge a model of loss '%s', which makes %s",
                  name, loss->choice.name, scores[loss->target]);
    tn_diag_hint(b->diag, "these do: %s", tn_text_str(&fit));
    tn_text_done(&fit);
}

static bool fits(const tn_run *r, const char *name)
{
    return tn_metric_find(name) == NULL || tn_metric_fits(name, tn_loss_of(&r->loss)->target);
}

static void check_monitor(const tn_binder *b, const tn_tree *tree, const tn_run *r,
                          const char *path, const char *monitor)
{
    const tn_metric *metric = monitor != NULL ? watched_metric(monitor) : NULL;
    if (monitor != NULL && metric == NULL) {
        tn_diag_error(b->diag, place(tree, path), "'%s' is not valid.<metric>, as valid.auc",
                      monitor);
    } else if (metric != NULL && !fits(r, metric->name)) {
        refuse_metric(b, place(tree, path), r, metric->name);
    } else if (metric != NULL && metric->best == TN_BEST_NONE) {
        tn_diag_error(b->diag, place(tree, path),
                      "'%s' cannot be watched: no value of %s is better than another", monitor,
                      metric->name);
        tn_diag_hint(b->diag, "valid.auc, valid.logloss and valid.copc, of which the nearest to 1 "
                              "is the best, can");
    }
}

/* Whether records may have groups without a column. */
static bool has_qid(const tn_run *r)
{
    const char *format = r->data.format != NULL ? r->data.format : "";
    return strcmp(format, "libsvm") == 0 || strcmp(format, "libfm") == 0;
}

/* Reports what the loss makes impossible. */
static void check_loss(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_loss *loss = tn_loss_of(&r->loss);
    const char *name = loss->choice.name;
    for (uint32_t i = 0; i < r->eval.metrics.n; i++) {
        if (!fits(r, r->eval.metrics.item[i])) {
            refuse_metric(b, place(tree, "eval.metrics"), r, r->eval.metrics.item[i]);
        }
    }
    if (loss->target == TN_TARGET_ORDER && r->data.group == NULL && !has_qid(r)) {
        tn_diag_error(b->diag,
                      place(tree, tn_tree_at(tree, "loss.type") != NULL ? "loss.type" : "loss"),
                      "loss '%s' needs data.group, the column whose value groups rows", name);
    }
    if (r->data.negative_sampling < 1 && !loss->corrects_sampling) {
        tn_diag_error(b->diag, place(tree, "data.negative_sampling"),
                      "'data.negative_sampling' is %g, and scores of loss '%s' cannot be corrected "
                      "for it",
                      r->data.negative_sampling, name);
        tn_diag_hint(b->diag, "'tnet-train --list-losses' says which can");
    }
    if (loss->target != TN_TARGET_CLICK && r->eval.calibrate != TN_CALIBRATE_AUTO &&
        r->eval.calibrate != TN_CALIBRATE_NONE) {
        tn_diag_error(b->diag, place(tree, "eval.calibrate"),
                      "'eval.calibrate' is %s, and a model of loss '%s' has no probabilities to "
                      "calibrate",
                      tn_calibrate_choices[r->eval.calibrate], name);
    }
}

static void check_watch(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *stop = r->train.stop.monitor;
    const char *plateau = r->train.reduce_on_plateau.monitor;
    check_monitor(b, tree, r, "train.stop.monitor", stop);
    check_monitor(b, tree, r, "train.reduce_on_plateau.monitor", plateau);
    if (stop != NULL && plateau != NULL && strcmp(stop, plateau) != 0) {
        tn_diag_error(b->diag, place(tree, "train.reduce_on_plateau.monitor"),
                      "train.stop watches '%s', and only one metric is watched", stop);
    }
    bool watched = stop != NULL || !isnan(r->train.reduce_on_plateau.factor);
    if (watched && r->data.valid.n == 0) {
        const char *path = stop != NULL ? "train.stop" : "train.reduce_on_plateau";
        tn_diag_error(b->diag, place(tree, path), "'%s' needs data.valid", path);
    }
}

static void check_metrics(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *names[128];
    uint32_t n = 0;
    for (const tn_metric *const *m = tn_all_metrics; *m != NULL && n < 128; m++) {
        names[n++] = (*m)->name;
    }
    TN_ASSERT(n < 128); /* none was left out */
    check_words(b, place(tree, "eval.metrics"), "metric", &r->eval.metrics, names, n);
    const char *grouped = tn_run_grouped_metric(r);
    const bool of_loss =
        tn_loss_of(&r->loss)->target == TN_TARGET_ORDER; /* this loss needs data.group */
    if (grouped != NULL && r->data.group == NULL && !has_qid(r) && !of_loss) {
        tn_diag_error(b->diag, place(tree, "eval.metrics"),
                      "metric '%s' needs data.group, the column whose value groups rows", grouped);
    }
    check_watch(b, tree, r);
}

/* Commands are made of the rows of tnd, and keys of text name groups. */
static void check_resp(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_export_opts *o = &r->export;
    const bool rows =
        tn_strs_has(&o->dict, "tnd") && (o->check_groups || o->redis_keys == TN_RESP_KEY8);
    if (tn_strs_has(&o->dict, "resp") && !rows) {
        tn_diag_error(b->diag, place(tree, "export.dict"),
                      "'export.dict' has resp, which is made of tnd with export.check_groups: "
                      "true, or export.redis_keys: key8");
    }
}

void tn_run_bind(const tn_binder *b, const tn_tree *tree, tn_run *out)
{
    tn_binder in_data = *b;
    in_data.path = "data";
    tn_fields_bind(b, tn_run_fields, tree, out);
    tn_days_bind(b, tree, &out->data);
    tn_format_check_data(&in_data, tn_tree_get(tree, "data"), &out->data);
    tn_format_check_slots(b, out->data.format, &out->slots);
    tn_data_check_slots(b, &out->data, &out->slots);
    /* Also where some option is at fault already, and has its default: all faults at once. */
    check_day(b, tree, out->run.day);
    check_every(b, tree, "eval.every", out->eval.every);
    check_every(b, tree, "checkpoint.every", out->checkpoint.every);
    check_every(b, tree, "checkpoint.delta_every", out->checkpoint.delta_every);
    check_export_every(b, tree, out);
    check_places(b, tree, out);
    if (out->export.every != NULL && strcmp(out->export.every, "never") == 0) {
        out->export.every = NULL;
    }
    if (out->log.tensorboard == TN_SWITCH_TRUE && tn_is_absent("tensorboard")) {
        tn_diag_error(b->diag, place(tree, "log.tensorboard"), TN_ABSENT_FORM, "tensorboard");
    }
    check_files(b, tree, out);
    check_resp(b, tree, out);
    check_metrics(b, tree, out);
    check_loss(b, tree, out);
    out->data.target = tn_loss_of(&out->loss)->target;
    if (out->data.target != TN_TARGET_CLICK) {
        out->eval.calibrate = TN_CALIBRATE_NONE;
    }
    check_stdin(b, tree, out);
    check_days(b, tree, out);
    check_schedule(b, tree, out);
    check_reset(b, tree, out);
    check_compute(b, tree, out);
    if (out->embedding.on_full == TN_FULL_EVICT && out->embedding.memory == TN_MEMORY_NONE) {
        tn_diag_error(b->diag, place(tree, "embedding.on_full"),
                      "'embedding.on_full' is evict, and embedding.memory is none: nothing is ever "
                      "full");
    }
}

const char *tn_run_monitor(const tn_run *run)
{
    const tn_train_opts *o = &run->train;
    const char *monitor = o->stop.monitor;
    if (monitor == NULL && !isnan(o->reduce_on_plateau.factor)) {
        monitor = o->reduce_on_plateau.monitor;
        const bool clicks = run->data.target == TN_TARGET_CLICK;
        const char *usual = clicks ? "valid.auc" : tn_loss_of(&run->loss)->watched;
        monitor = monitor != NULL ? monitor : usual;
    }
    return monitor != NULL ? monitor + strlen("valid.") : NULL;
}
