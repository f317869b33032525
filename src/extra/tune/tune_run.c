/* tune_run.c - the programs of the trials, rung by rung. */
#include "base/codec/json.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "config/tree.h"
#include "extra/tune/tune_private.h"
#include "metrics/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { STOPPED = 75 };               /* exit code of a run that paused, or was stopped */
enum { LEFT_S = 60, LOOK_MS = 100 }; /* how long one that was left may save, and between looks */

/* Returns the number of trials that begin a rung. */
static uint32_t rung_size(const tn_tune *t, uint32_t rung)
{
    uint32_t n = t->drawn;
    for (uint32_t i = 0; i < rung; i++) {
        n = n / t->section->eta > 1 ? n / t->section->eta : 1;
    }
    return n;
}

/* Returns the step at which a trial pauses for a rung; 0: at none, it is the last. */
static uint64_t pause_of(const tn_tune *t, const tn_trial *one, uint32_t rung)
{
    const double steps = ceil(t->rows * tn_rung_share(t, rung) / (double)one->batch);
    return rung + 1 == t->rungs ? 0 : steps > 1 ? (uint64_t)steps : 1;
}

/* Words of a command, one after the other. */
typedef struct words {
    const tn_tune *tune;
    uint32_t n, room;
    char **item;
} words;

static void add_word(words *w, const char *word)
{
    if (w->n + 1 >= w->room) {
        w->room = 2 * w->room + 32;
        char **item = TN_NEW_ARRAY(w->tune->arena, char *, w->room);
        for (uint32_t i = 0; i < w->n; i++) {
            item[i] = w->item[i];
        }
        w->item = item;
    }
    w->item[w->n++] = tn_tree_text(w->tune->arena, word, strlen(word));
    w->item[w->n] = NULL;
}

TN_PRINTF(2, 3) static void add_wordf(words *w, const char *fmt, ...)
{
    char text[TN_PATH_SIZE + 64];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add_word(w, text);
}

static void add_strs(words *w, const tn_strs *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        add_word(w, list->item[i]);
    }
}

/* Adds the trial's part of the machine. */
static void add_share(words *w)
{
    const tn_tune *t = w->tune;
    if (t->setup->run.train.threads == TN_WORD_U32(0)) {
        add_wordf(w, "train.threads=%" PRIu32, t->threads);
    }
    if (t->setup->run.data.readers == TN_AUTO) {
        add_wordf(w, "data.readers=%" PRIu32, t->threads > 2 ? t->threads / 2 : 1);
    }
}

/* Trains a trial up to the step of its rung. It publishes nothing, and keeps the rows of data.test
 * for the model that is chosen. */
static char *const *training_words(const tn_tune *t, uint32_t i, uint32_t rung)
{
    words w = {.tune = t};
    tn_text dir = {0};
    const tn_trial *one = t->trial[i];
    const uint64_t pause = pause_of(t, one, rung);
    add_wordf(&w, "%s/tnet-train", t->opts.folder);
    add_word(&w, "-q");
    if (pause > 0) {
        add_wordf(&w, "--pause=%" PRIu64, pause);
    }
    add_word(&w, t->opts.config);
    add_strs(&w, &t->opts.overrides);
    add_strs(&w, &one->values);
    add_wordf(&w, "run.dir=%s", tn_tune_folder(t, i, &dir));
    static const char *const own[] = {"data.test=~", "eval.predictions=~", "export.every=~",
                                      "checkpoint.resume=auto", "checkpoint.keep=1"};
    const tn_strs all = {sizeof own / sizeof own[0], own};
    add_strs(&w, &all);
    add_share(&w);
    tn_text_done(&dir);
    return w.item;
}

static char *const *judging_words(const tn_tune *t, uint32_t i)
{
    words w = {.tune = t};
    tn_text dir = {0};
    add_wordf(&w, "%s/tnet-eval", t->opts.folder);
    add_word(&w, "-q");
    add_word(&w, "--json");
    add_word(&w, tn_tune_folder(t, i, &dir));
    add_wordf(&w, "eval.metrics=[%s]", t->metric->name);
    add_share(&w);
    tn_text_done(&dir);
    return w.item;
}

static tn_status start(tn_tune *t, tn_job what, tn_error *err)
{
    uint32_t id = 0;
    while (t->job[id].work != TN_NOTHING) {
        id++;
    }
    t->job[id] = what;
    char *const *argv = what.work == TN_TRAINING ? training_words(t, what.trial, what.rung)
                                                 : judging_words(t, what.trial);
    return tn_programs_start(&t->programs, id, argv, err);
}

/* Notes a result, and says it. */
static tn_status note(tn_tune *t, tn_tune_result r, tn_error *err)
{
    tn_trial *one = t->trial[r.trial];
    r.values = one->values;
    one->result[r.rung] = r;
    one->reached = r.rung + 1;
    TN_TRY(tn_tune_journal_add(t->journal, &r, err));
    const uint32_t best = tn_tune_best(t);
    if (r.failure != NULL) {
        tn_log(TN_LOG_WARN, "trial %" PRIu32 " is left out: %s", r.trial, r.failure);
    } else {
        tn_log(TN_LOG_INFO, "trial %" PRIu32 ": %s %.6f after %" PRIu64 " steps%s", r.trial,
               t->goal, r.value, r.step, best == r.trial ? ", the best so far" : "");
    }
    return TN_OK;
}

TN_PRINTF(2, 3) static const char *sentence(const tn_tune *t, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return tn_tree_text(t->arena, text, strlen(text));
}

/* Reads the goal and the step from what tnet-eval printed. */
static void read_value(const tn_tune *t, const tn_text *out, tn_tune_result *r)
{
    const tn_json *root = NULL;
    tn_error why = {0};
    if (tn_json_parse(&root, tn_text_str(out), out->size, t->arena, "tnet-eval --json", &why) !=
        TN_OK) {
        r->failure = sentence(t, "%s", why.text);
        return;
    }
    const tn_json *of = t->task != NULL ? tn_json_get(root, t->task) : root;
    (void)tn_json_as_u64(tn_json_get(root, "step"), &r->step);
    if (!tn_json_as_f64(tn_json_get(of, t->metric->name), &r->value)) {
        r->failure = sentence(t, "%s is not defined on data.valid", t->goal);
    }
}

/* A program has failed. Where its values are the cause the trial is left out; where the machine or
 * the data are, this failure is no result, and ends all. */
static tn_status fail(tn_tune *t, tn_tune_result r, const char *program, const tn_program_end *end,
                      tn_error *err)
{
    if (end->code == 3 || end->code == 7 || end->code == 9) { /* config, memory, diverged */
        r.failure = sentence(t, "%s ended with code %d: %s", program, end->code, end->reason);
        return note(t, r, err);
    }
    const tn_status status = end->code == 4 ? TN_E_DATA : end->code == 5 ? TN_E_CKPT : TN_E_IO;
    return tn_fail(err, status,
                   "trial %" PRIu32 ": %s ended with code %d: %s\nhint: nothing is lost: the same "
                   "command goes on%s",
                   r.trial, program, end->code, end->reason,
                   end->code > 128 ? "; tune.parallel=1 takes the least memory" : "");
}

/* A program has ended: of one that trained the model is judged next. */
static tn_status take(tn_tune *t, const tn_program_end *end, tn_error *err)
{
    const tn_job done = t->job[end->id];
    const uint64_t pause = pause_of(t, t->trial[done.trial], done.rung);
    const bool paused = pause > 0 && end->code == STOPPED;
    t->job[end->id] = (tn_job){.work = TN_NOTHING};
    tn_tune_result r = {
        .trial = done.trial, .rung = done.rung, .value = (double)NAN, .ended = done.ended};
    if (end->code != 0 && !(done.work == TN_TRAINING && paused)) {
        return fail(t, r, done.work == TN_TRAINING ? "tnet-train" : "tnet-eval", end, err);
    }
    if (done.work == TN_TRAINING) {
        return start(t, (tn_job){done.trial, done.rung, TN_JUDGING, !paused}, err);
    }
    read_value(t, &end->out, &r);
    if (r.failure == NULL && !done.ended && r.step != pause) {
        return tn_fail(err, TN_E_IO,
                       "trial %" PRIu32 " was ended by a signal at step %" PRIu64 " of %" PRIu64
                       "\nhint: the same command goes on",
                       r.trial, r.step, pause);
    }
    return note(t, r, err);
}

/* Waits for a process that an earlier tnet-tune has left, and which still saves the trial. */
static tn_status wait_for_folder(const tn_tune *t, uint32_t i, tn_error *err)
{
    tn_text dir = {0};
    const char *path = tn_tune_folder(t, i, &dir);
    const double until = tn_clock_s() + LEFT_S;
    tn_status status = TN_OK;
    do {
        status = tn_path_exists(path) ? tn_lock_look(path, err) : TN_OK;
    } while (status != TN_OK && tn_clock_s() < until && !atomic_load(t->opts.stop) &&
             poll(NULL, 0, LOOK_MS) == 0);
    tn_text_done(&dir);
    return status;
}

/* Begins a trial of a rung, unless the journal has its result, or its run is over. */
static tn_status begin(tn_tune *t, uint32_t i, uint32_t rung, tn_error *err)
{
    const tn_trial *one = t->trial[i];
    const tn_tune_result *before = tn_trial_result(one, TN_LAST_RUNG);
    if (one->reached > rung) {
        return TN_OK;
    }
    if (before != NULL && before->ended) {
        tn_tune_result r = *before;
        r.rung = rung;
        return note(t, r, err);
    }
    TN_TRY(wait_for_folder(t, i, err));
    return start(t, (tn_job){i, rung, TN_TRAINING, false}, err);
}

static tn_status wait_for_one(tn_tune *t, tn_error *err)
{
    tn_program_end end;
    TN_TRY(tn_programs_wait(&t->programs, t->opts.stop, t->until, &end, err));
    const bool stopped = end.code != 0 && atomic_load(t->opts.stop); /* by the same signal */
    const tn_status status = stopped ? TN_E_STOPPED : take(t, &end, err);
    tn_text_done(&end.out);
    return status;
}

/* Runs some trials of a rung, as many at once as share the machine. */
static tn_status run_rung(tn_tune *t, const uint32_t *list, uint32_t n, uint32_t rung,
                          tn_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(begin(t, list[i], rung, err));
        while (t->programs.running >= t->parallel) {
            TN_TRY(wait_for_one(t, err));
        }
    }
    while (t->programs.running > 0) {
        TN_TRY(wait_for_one(t, err));
    }
    return TN_OK;
}

/* Ends what still runs. TN_E_STOPPED by the clock alone is no failure. */
static tn_status end_programs(tn_tune *t, tn_status status, bool *timed_out, tn_error *err)
{
    tn_programs_end(&t->programs);
    memset(t->job, 0, TN_PROGRAMS_MAX * sizeof *t->job);
    *timed_out = status == TN_E_STOPPED && !atomic_load(t->opts.stop);
    if (*timed_out || status != TN_E_STOPPED) {
        return *timed_out ? TN_OK : status;
    }
    return tn_fail(err, status,
                   "stopped by a signal; what was found is in '%s'\nhint: start the same command "
                   "again to go on",
                   t->dir);
}

/* Lists the trials of a rung: in the first one all, then the best of the rung before. */
static uint32_t *choose_trials(const tn_tune *t, uint32_t rung, uint32_t *n)
{
    const uint32_t most = rung_size(t, rung);
    uint32_t *list = tn_tune_order(t, t->drawn, rung > 0 ? rung - 1 : TN_LAST_RUNG);
    *n = 0;
    for (uint32_t i = 0; i < t->drawn && rung == 0; i++) {
        list[i] = i;
    }
    while (*n < most &&
           (rung == 0 || tn_trial_has_value(tn_trial_result(t->trial[list[*n]], rung - 1)))) {
        ++*n;
    }
    return list;
}

static tn_status run_all(tn_tune *t, tn_error *err)
{
    for (uint32_t rung = 0; rung < t->rungs; rung++) {
        uint32_t n = 0;
        const uint32_t *list = choose_trials(t, rung, &n);
        if (rung + 1 < t->rungs) {
            tn_log(TN_LOG_INFO, "rung %" PRIu32 " of %" PRIu32 ": %" PRIu32 " of %.0f rows each",
                   rung + 1, t->rungs, n, t->rows * tn_rung_share(t, rung));
        } else {
            tn_log(TN_LOG_INFO, "rung %" PRIu32 " of %" PRIu32 ": %" PRIu32 " to the end", rung + 1,
                   t->rungs, n);
        }
        TN_TRY(run_rung(t, list, n, rung, err));
    }
    return TN_OK;
}

tn_status tn_tune_run(tn_tune *t, bool *timed_out, tn_error *err)
{
    t->until = isnan(t->section->time) ? (double)INFINITY : tn_clock_s() + t->section->time;
    const tn_status status = run_all(t, err);
    return end_programs(t, status, timed_out, err);
}

/* Makes "key=value" of the members of a JSON object; a string is its text. */
static tn_status read_given(tn_tune *t, const char *json, tn_strs *out, tn_error *err)
{
    const tn_json *root = NULL;
    const tn_status status = tn_json_parse(&root, json, strlen(json), t->arena, "--try", err);
    if (status != TN_OK || root->kind != TN_JSON_OBJECT) {
        return tn_fail(err, TN_E_USAGE,
                       "--try needs a JSON object of options and values\nhint: as "
                       "'{\"train.optimizer.lr\": 0.003}'");
    }
    words w = {.tune = t};
    for (const tn_json *at = root->first; at != NULL; at = at->next) {
        const size_t size = at->kind == TN_JSON_STRING ? strlen(at->string) : at->end - at->begin;
        const char *value = at->kind == TN_JSON_STRING ? at->string : json + at->begin;
        add_wordf(&w, "%s=%.*s", at->key, (int)size, value);
    }
    *out = (tn_strs){w.n, (const char *const *)w.item};
    return TN_OK;
}

tn_status tn_tune_try(tn_tune *t, const char *json, double *value, tn_error *err)
{
    tn_strs values = {0};
    bool timed_out = false;
    const uint32_t i = t->n;
    TN_TRY(read_given(t, json, &values, err));
    if (i == 2 * TN_TRIALS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "'%s' has %d trials: no more are taken", t->dir, (int)i);
    }
    TN_TRY(tn_tune_add(t, &values, err));
    t->until = (double)INFINITY;
    const tn_status status = run_rung(t, &i, 1, t->rungs - 1, err);
    TN_TRY(end_programs(t, status, &timed_out, err));
    const tn_tune_result *r = tn_trial_result(t->trial[i], TN_LAST_RUNG);
    TN_ASSERT(r != NULL);
    *value = r->value;
    return r->failure == NULL ? TN_OK : tn_fail(err, TN_E_DATA, "%s", r->failure);
}
