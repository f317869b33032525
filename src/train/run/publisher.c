/* publisher.c - exports a saved checkpoint on a thread, chooses its base, prints a line of it. */
#include "train/run/publisher.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/failpoint.h"
#include "base/file/output_file.h"
#include "base/thread/threads.h"
#include "config/diag.h"
#include "dict/dictvalue.h"
#include "io/source/remote.h"
#include "train/checkpoint/ckptdir.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/export/export.h"
#include "train/export/export_folder.h"
#include "train/export/export_target.h"
#include "train/report/report.h"
#include "train/step/model_plan.h"

#include <stdio.h>
#include <string.h>

/* Files that name the newest export: LATEST for readers, SENT the one that readers of a store know.
 */
#define LATEST "LATEST"
#define SENT "SENT"

enum { NICE = 10 };      /* training goes first */
enum { FAILED_MAX = 3 }; /* in a row: as of checkpoints */

struct tn_publisher {
    tn_publisher_opts opts;
    const tn_run *run;
    tn_export_target target; /* export.to */
    tn_report *report;
    uint32_t failed; /* in a row */
    tn_thread *thread;
    bool busy;
    bool owes;            /* a signal has ended one */
    _Atomic bool written; /* the thread has no more to do */

    /* The export at hand. All belongs to its thread until that is joined. */
    char name[32]; /* ckpt-4 */
    char checkpoint[TN_PATH_SIZE];
    char before[TN_MODEL_ID_TEXT]; /* the newest export of the run; "": none */
    bool is_delta;
    bool is_known; /* it was there, and was the newest */
    bool is_sent;  /* to a URI, where it was not there */
    tn_error why;  /* text: why it is no delta */
    tn_exported made;
    tn_status status;
    tn_error err;
};

tn_status tn_publisher_open(tn_publisher **out, const tn_publisher_opts *opts, tn_error *err)
{
    const tn_run *run = opts->plan->run;
    tn_publisher *p = NULL;
    *out = NULL;
    if (run->export.every == NULL) {
        return TN_OK;
    }
    TN_TRY(TN_ALLOC(p, 1, "a publisher", err));
    p->opts = *opts;
    p->run = run;
    tn_status status = tn_export_target_open(&p->target, run->export.to, run, err);
    status = status == TN_OK ? tn_output_check_folder(p->target.folder, err) : status;
    if (status != TN_OK) {
        tn_publisher_close(p);
        return status;
    }
    *out = p;
    return TN_OK;
}

void tn_publisher_set_report(tn_publisher *p, tn_report *report)
{
    if (p != NULL) {
        p->report = report;
    }
}

void tn_publisher_close(tn_publisher *p)
{
    if (p == NULL) {
        return;
    }
    tn_status status = tn_thread_join(p->thread, NULL);
    (void)status; /* tn_publisher_end has returned its status */
    tn_export_target_close(&p->target);
    tn_free(p);
}

bool tn_publisher_needs_checkpoints(const tn_publisher *p)
{
    return p != NULL && (p->busy || p->owes);
}

/* ---- one export, on its thread ---- */

/* Exports on `base`, an earlier export; NULL: it holds all rows. */
static tn_status export_on(tn_publisher *p, const char *base, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    const tn_export_request request = {.checkpoint = p->checkpoint,
                                       .to = p->target.folder,
                                       .delta_from = base,
                                       .binder = &b,
                                       .stop = p->opts.stop,
                                       .aside = true};
    const tn_status status = tn_export(p->opts.plan, &request, &p->made, err);
    tn_diag_done(&diag);
    tn_arena_free(arena);
    return status;
}

/* Returns whether the export before is at fault: it is gone, damaged, the last of its chain, or has
 * this very model and is not there any more. A fault of the checkpoint comes again without it. */
static bool is_refusal(tn_status status)
{
    return status == TN_E_CKPT || status == TN_E_CONFIG;
}

static tn_status export_new(tn_publisher *p, tn_error *err)
{
    tn_error *why = &p->why;
    if (p->before[0] == '\0') {
        (void)snprintf(why->text, sizeof why->text, "the first of this run");
    } else if (!tn_strs_has(&p->run->export.dict, "tnd")) {
        (void)snprintf(why->text, sizeof why->text, "export.dict has no tnd");
    } else {
        tn_status status = tn_export_fetch_base(&p->target, p->before, why);
        status = status == TN_OK ? export_on(p, p->before, why) : status;
        if (!is_refusal(status)) {
            p->is_delta = status == TN_OK;
            return status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why->text);
        }
        why->text[strcspn(why->text, "\n")] = '\0';
    }
    return export_on(p, NULL, err);
}

/* Whether the export at hand is there: in the folder, or, as the newest of the run, where it was
 * sent. */
static tn_status find_made(tn_publisher *p, tn_error *err)
{
    tn_error why = {0};
    p->made.existed = tn_path_exists(p->made.path);
    if (p->made.existed || p->target.remote == NULL || strcmp(p->before, p->made.model_id) != 0) {
        return TN_OK;
    }
    const tn_status status = tn_export_fetch_base(&p->target, p->made.model_id, &why);
    p->made.existed = status == TN_OK;
    return status == TN_OK || is_refusal(status) ? TN_OK : tn_fail(err, status, "%s", why.text);
}

static tn_status pass(const char *point, tn_error *err)
{
    const int failure = tn_failpoint(point);
    return failure == 0 ? TN_OK : tn_fail(err, TN_E_IO, "failed on request at '%s'", point);
}

/* Sends an export. LATEST is sent even if it was known: nobody knows whether it was sent before a
 * kill. An export that was made before and is sent now gets its line, too. */
static tn_status send(tn_publisher *p, tn_error *err)
{
    const tn_export_target *t = &p->target;
    if (t->remote == NULL) {
        return TN_OK;
    }
    TN_TRY(t->upload->send(t, p->made.model_id, p->opts.stop, &p->is_sent, err));
    TN_TRY(t->upload->send_latest(t, p->opts.stop, err));
    TN_TRY(tn_export_set_name(t->folder, SENT, p->made.model_id, err));
    if (!p->is_delta && !p->made.existed) {
        t->upload->prune(t, p->made.model_id);
    }
    return tn_uri_join(t->to, p->made.model_id, p->made.path, err);
}

/* An export of that model stays as it is: a run that was killed, or begun anew, comes here again.
 * Its name is given when it is whole. */
static tn_status publish(tn_publisher *p, tn_error *err)
{
    const char *to = p->target.folder;
    TN_ASSERT(p->busy && p->made.model_id[0] == '\0');
    TN_TRY(pass("export.begin", err));
    TN_TRY(tn_ckpt_model_id(p->checkpoint, p->made.model_id, err));
    TN_TRY(tn_path_join(to, p->made.model_id, p->made.path, err));
    TN_TRY(find_made(p, err));
    TN_TRY(p->made.existed ? tn_export_folder_sweep(to, err) : export_new(p, err));
    TN_TRY(pass("export.before_latest", err));
    const bool known = tn_export_names(to, LATEST, p->made.model_id);
    TN_TRY(known ? TN_OK : tn_export_set_name(to, LATEST, p->made.model_id, err));
    TN_TRY(send(p, err));
    p->is_known = known && p->made.existed && !p->is_sent;
    return TN_OK;
}

static tn_status publish_behind(void *arg, tn_error *err)
{
    tn_publisher *p = arg;
    (void)err;
    tn_thread_step_back(NICE);
    p->status = publish(p, &p->err);
    atomic_store(&p->written, true);
    return TN_OK;
}

tn_status tn_publisher_begin(tn_publisher *p, uint64_t ordinal, tn_error *err)
{
    const tn_status before = tn_publisher_end(p, err);
    TN_TRY(before == TN_E_STOPPED ? TN_OK : before);
    TN_ASSERT(!p->busy && ordinal != 0);
    TN_TRY(tn_ckptdir_path(p->opts.dir, ordinal, p->checkpoint, err));
    (void)snprintf(p->name, sizeof p->name, "ckpt-%llu", (unsigned long long)ordinal);
    memcpy(p->before, p->opts.state->kept.export.newest, sizeof p->before);
    p->made = (tn_exported){.existed = false};
    p->why = (tn_error){.text = ""};
    p->is_delta = false;
    p->is_known = false;
    p->is_sent = false;
    p->busy = true;
    atomic_store(&p->written, false);
    if (tn_thread_start(&p->thread, "tn-export", publish_behind, p, NULL) != TN_OK) {
        p->status = publish(p, &p->err); /* then training waits */
        atomic_store(&p->written, true);
    }
    return TN_OK;
}

/* ---- what became of it ---- */

static tn_status tell(tn_publisher *p, tn_error *err)
{
    const tn_exported *made = &p->made;
    TN_ASSERT(p->report != NULL && !(p->is_delta && made->existed));
    char line[TN_PATH_SIZE + sizeof p->why.text + 400];
    if (made->existed) {
        (void)snprintf(line, sizeof line, "'%s' is the newest export, of %s; it was %s", made->path,
                       p->name, p->is_sent ? "made before, and is sent now" : "there already");
    } else {
        (void)snprintf(line, sizeof line,
                       "published '%s' of %s: %llu rows, %.1f MB in %.1f s; %s%s%s", made->path,
                       p->name, (unsigned long long)made->rows, (double)made->bytes / 1e6,
                       made->seconds, p->is_delta ? "changes since '" : "all rows, ",
                       p->is_delta ? p->before : p->why.text, p->is_delta ? "'" : "");
        tn_text said = {0};
        if (made->loss.bytes > 0 && p->run->export.values != TN_DICT_F32) {
            tn_export_loss_say(&made->loss, p->run, &said);
            const size_t size = strlen(line);
            (void)snprintf(line + size, sizeof line - size, "; %s", tn_text_str(&said));
        }
        tn_text_done(&said);
    }
    return tn_report_event(p->report, p->opts.state, "info", line, err);
}

/* As of a checkpoint: an end, or only a line. */
static tn_status fail_export(tn_publisher *p, tn_error *err)
{
    tn_error_context(&p->err, "%s is not exported", p->name);
    if (p->run->checkpoint.on_error == 0 || ++p->failed >= FAILED_MAX) {
        return tn_fail(err, p->status, "%s", p->err.text);
    }
    return tn_report_event(p->report, p->opts.state, "warn", p->err.text, err);
}

tn_status tn_publisher_end(tn_publisher *p, tn_error *err)
{
    if (p == NULL || !p->busy) {
        return TN_OK;
    }
    tn_publish_state *state = &p->opts.state->kept.export;
    tn_status joined = tn_thread_join(p->thread, err);
    p->thread = NULL;
    p->busy = false;
    TN_TRY(joined);
    if (p->status == TN_E_STOPPED) {
        p->owes = true;
        return tn_fail(err, TN_E_STOPPED, "%s", p->err.text);
    }
    if (p->status != TN_OK) {
        return fail_export(p, err);
    }
    p->failed = 0;
    TN_ASSERT(strlen(p->made.model_id) + 1 == sizeof state->newest);
    memcpy(state->newest, p->made.model_id, sizeof state->newest);
    return p->is_known ? TN_OK : tell(p, err);
}

tn_status tn_publisher_note(tn_publisher *p, tn_error *err)
{
    if (p == NULL || !p->busy || !atomic_load(&p->written)) {
        return TN_OK;
    }
    const tn_status status = tn_publisher_end(p, err);
    return status == TN_E_STOPPED ? TN_OK : status; /* the trainer sees the signal, too */
}

/* ---- after a kill ---- */

/* The marked checkpoints whose exports may be missing. */
typedef struct owed {
    const uint64_t *ordinal; /* descending, from the newest down to one whose export is there */
    uint32_t n;
    uint64_t newest;           /* checkpoint of the directory, marked or not; 0: none */
    bool passes_waiting;       /* set by the caller: not those that await a calibration */
    bool there;                /* an export is there: that of the last ordinal */
    char id[TN_MODEL_ID_TEXT]; /* model id of the last ordinal */
    tn_publish_state manifest; /* the export's section in its manifest */
} owed;

/* Adds checkpoint `ordinal` of the run directory if it is marked. What is damaged is passed over:
 * nobody goes on from it. */
static tn_status look(const char *dir, const char *folder, uint64_t ordinal, uint64_t *to,
                      owed *out, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_manifest m = {0};
    TN_TRY(tn_ckptdir_path(dir, ordinal, path, err));
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = tn_ckpt_read_manifest(path, arena, &m, err);
    const tn_publish_state was =
        status == TN_OK ? tn_run_sections_of(&m)->kept.export : (tn_publish_state){0};
    tn_arena_free(arena);
    if (was.due && !(was.awaits && out->passes_waiting)) {
        status = tn_ckpt_model_id(path, out->id, err);
        if (status == TN_OK) {
            to[out->n++] = ordinal;
            out->manifest = was;
            TN_TRY(tn_path_join(folder, out->id, path, err));
            out->there = tn_path_exists(path);
        }
    }
    return status == TN_E_CKPT ? TN_OK : status;
}

static tn_status list_owed(const char *dir, const char *folder, uint64_t highest, tn_arena *arena,
                           owed *out, tn_error *err)
{
    tn_ckpt_listing list = {0};
    *out = (owed){.passes_waiting = out->passes_waiting};
    TN_TRY(tn_ckptdir_list(dir, arena, &list, err));
    uint64_t *to = TN_NEW_ARRAY(arena, uint64_t, list.n + 1);
    out->ordinal = to;
    out->newest = list.n > 0 ? list.ordinal[0] : 0;
    for (uint32_t i = 0; i < list.n && !out->there; i++) {
        if (list.ordinal[i] <= highest) {
            TN_TRY(look(dir, folder, list.ordinal[i], to, out, err));
        }
    }
    TN_ASSERT(out->n <= list.n && (out->n > 0 || !out->there));
    return TN_OK;
}

/* Names the export that is there again; the chain goes on from it, or from the base that the oldest
 * one was to have. */
tn_status tn_publisher_owe(tn_publisher *p, uint64_t highest, tn_error *err)
{
    owed o = {.passes_waiting = true}; /* the trainer fits their map first */
    if (p == NULL) {
        return TN_OK;
    }
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_status status = list_owed(p->opts.dir, p->target.folder, highest, arena, &o, err);
    if (status == TN_OK && o.n > 0) {
        memcpy(p->opts.state->kept.export.newest, o.manifest.newest, sizeof o.manifest.newest);
    }
    for (uint32_t n = status == TN_OK ? o.n : 0; status == TN_OK && n > 0; n--) {
        status = tn_publisher_begin(p, o.ordinal[n - 1], err);
    }
    tn_arena_free(arena);
    return status;
}

bool tn_publisher_is_owed(const tn_run *run)
{
    tn_export_target target;
    owed o = {.n = 0};
    tn_text dir = {0};
    if (run->export.every == NULL ||
        tn_export_target_open(&target, run->export.to, run, NULL) != TN_OK) {
        return false;
    }
    const char *mark = target.remote != NULL ? SENT : LATEST; /* the last that is written */
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_run_dir(&run->run, &dir);
    const bool known =
        tn_path_is_dir(tn_text_str(&dir)) &&
        list_owed(tn_text_str(&dir), target.folder, UINT64_MAX, arena, &o, NULL) == TN_OK;
    /* All words but `day` publish the end of a run: its last checkpoint is marked. */
    const bool ended = tn_run_exports_days(run) || o.newest == (o.n > 0 ? o.ordinal[0] : 0);
    const bool paid =
        ended && (o.n == 0 || (o.n == 1 && o.there && tn_export_names(target.folder, mark, o.id)));
    tn_text_done(&dir);
    tn_arena_free(arena);
    tn_export_target_close(&target);
    return known && !paid;
}
