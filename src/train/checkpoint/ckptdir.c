/* ckptdir.c - owning the run directory, and saving: tmp, sync, rename, sync. */
#include "train/checkpoint/ckptdir.h"

#include "base/core/alloc.h"
#include "base/core/failpoint.h"
#include "base/core/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct tn_ckptdir {
    tn_lock *lock;
    uint64_t session;
    uint64_t ordinal;       /* being written; 0: none */
    uint64_t committed;     /* the newest of this process, there or not */
    char tmp[TN_PATH_SIZE]; /* folder */
    char dir[TN_PATH_SIZE];
};

/* A named place for chaos tests; a release has none. */
static tn_status pass(const char *point, tn_error *err)
{
    int failure = tn_failpoint(point);
    return failure == 0 ? TN_OK : tn_fail(err, TN_E_IO, "failed on request at '%s'", point);
}

enum { TEXT_BYTES_MAX = 1 << 24 }; /* bytes at most of a small file of the run directory */

/* "ckpt-<digits>.<16 hex>.tmp", or an unfinished file of those that a run writes by renaming:
 * nothing else is ours to remove. */
static bool is_unfinished(const char *name)
{
    static const char *const own[] = {"OWNER",      "LATEST",     "summary.json",
                                      "trace.json", "peers.root", "calibration.json",
                                      TN_RUN_YAML};
    static const char head[] = "ckpt-";
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (tn_is_unfinished(name, own[i])) {
            return true;
        }
    }
    char ckpt[sizeof head + 20];
    const size_t digits = strncmp(name, head, sizeof head - 1) == 0
                              ? strspn(name + sizeof head - 1, "0123456789")
                              : 0;
    (void)snprintf(ckpt, sizeof ckpt, "%.*s", (int)(sizeof head - 1 + digits), name);
    return digits > 0 && digits <= 20 && tn_is_unfinished(name, ckpt);
}

/* Updates LATEST for people and scripts. The checkpoint is saved already, so a failure is only
 * logged. */
/* Unless it is what the file says already. */
static tn_status keep_text(const tn_ckptdir *d, const char *name, const char *text, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_text there = {0};
    TN_TRY(tn_path_join(d->dir, name, path, err));
    const bool says_so = tn_file_read_all(path, TEXT_BYTES_MAX, &there, NULL) == TN_OK &&
                         strcmp(tn_text_str(&there), text) == 0;
    tn_text_done(&there);
    return says_so ? TN_OK : tn_file_replace(path, text, strlen(text), err);
}

static void write_latest(const tn_ckptdir *d, uint64_t ordinal, uint32_t crc)
{
    char line[64];
    tn_error err = {0};
    int length = snprintf(line, sizeof line, "ckpt-%" PRIu64 " %08x\n", ordinal, crc);
    TN_ASSERT(length > 0 && (size_t)length < sizeof line);
    if (keep_text(d, "LATEST", line, &err) != TN_OK) {
        tn_log(TN_LOG_WARN, "ckpt-%" PRIu64 " is saved, but LATEST is not: %s", ordinal, err.text);
    }
}

void tn_ckptdir_keep_places(const tn_ckptdir *d, const char *text)
{
    tn_error err = {0};
    if (keep_text(d, TN_RUN_YAML, text, &err) != TN_OK) {
        tn_log(TN_LOG_WARN, TN_RUN_YAML " is not written: %s", err.text);
    }
}

/* A kill may have come between a checkpoint's rename and its name in LATEST. */
static void mend_latest(const tn_ckptdir *d)
{
    char path[TN_PATH_SIZE];
    tn_manifest m = {0};
    tn_ckpt_listing list = {0};
    tn_arena *arena = tn_arena_new(1 << 14);
    if (tn_ckptdir_list(d->dir, arena, &list, NULL) == TN_OK && list.n > 0 &&
        tn_ckptdir_path(d->dir, list.ordinal[0], path, NULL) == TN_OK &&
        tn_ckpt_read_manifest(path, arena, &m, NULL) == TN_OK) {
        write_latest(d, list.ordinal[0], m.crc);
    }
    tn_arena_free(arena);
}

tn_status tn_ckptdir_open(tn_ckptdir **out, const char *dir, tn_error *err)
{
    *out = NULL;
    if (strlen(dir) >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_USAGE, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       dir);
    }
    tn_ckptdir *d = NULL;
    TN_TRY(TN_ALLOC(d, 1, "a run directory", err));
    memcpy(d->dir, dir, strlen(dir) + 1);
    d->session = tn_random_id();
    tn_status status = tn_dir_make(dir, err);
    if (status == TN_OK) {
        status = tn_lock_take(&d->lock, dir, d->session, err);
    }
    if (status == TN_OK) {
        status = tn_lock_sweep(d->lock, dir, is_unfinished, err);
    }
    if (status != TN_OK) {
        tn_ckptdir_close(d);
        return status;
    }
    mend_latest(d);
    *out = d;
    return TN_OK;
}

void tn_ckptdir_close(tn_ckptdir *d)
{
    if (d != NULL) {
        tn_ckptdir_abandon(d);
        tn_lock_release(d->lock);
        tn_free(d);
    }
}

tn_status tn_ckptdir_path(const char *dir, uint64_t ordinal, char out[TN_PATH_SIZE], tn_error *err)
{
    char name[32];
    (void)snprintf(name, sizeof name, "ckpt-%" PRIu64, ordinal);
    return tn_path_join(dir, name, out, err);
}

/* Makes the path of a checkpoint that is being written, or removed. */
static tn_status tmp_path(const tn_ckptdir *d, uint64_t ordinal, char out[TN_PATH_SIZE],
                          tn_error *err)
{
    char name[64];
    (void)snprintf(name, sizeof name, "ckpt-%" PRIu64 ".%016" PRIx64 ".tmp", ordinal, d->session);
    return tn_path_join(d->dir, name, out, err);
}

static tn_status check_space(const tn_ckptdir *d, uint64_t bytes, tn_error *err)
{
    uint64_t room = 0;
    uint64_t need = bytes + bytes / 20;
    TN_TRY(tn_disk_free(d->dir, &room, err));
    if (need > room) {
        return tn_fail(err, TN_E_IO,
                       "no room for a checkpoint in '%s': %" PRIu64 " bytes free, %" PRIu64
                       " needed",
                       d->dir, room, need);
    }
    return TN_OK;
}

tn_status tn_ckptdir_begin(tn_ckptdir *d, uint64_t bytes, uint64_t *ordinal, tn_error *err)
{
    TN_ASSERT(d->ordinal == 0);
    TN_TRY(pass("ckpt.begin", err));
    TN_TRY(check_space(d, bytes, err));
    tn_arena *arena = tn_arena_new(4096);
    tn_ckpt_listing list = {0};
    tn_status status = tn_ckptdir_list(d->dir, arena, &list, err);
    tn_arena_free(arena);
    TN_TRY(status);
    const uint64_t next = 1 + (list.highest > d->committed ? list.highest : d->committed);
    TN_TRY(tmp_path(d, next, d->tmp, err));
    TN_TRY(tn_remove_tree(d->tmp, err)); /* an abandoned folder that could not be removed */
    TN_TRY(tn_dir_make_new(d->tmp, err));
    d->ordinal = next;
    *ordinal = next;
    return TN_OK;
}

const char *tn_ckptdir_folder(const tn_ckptdir *d)
{
    TN_ASSERT(d->ordinal != 0);
    return d->tmp;
}

tn_status tn_ckpt_put(const char *folder, const char *name, tn_ckpt_write *make, void *ctx,
                      tn_error *err)
{
    TN_ASSERT(strchr(name, '/') == NULL);
    char path[TN_PATH_SIZE];
    char again[TN_PATH_SIZE];
    char name_again[256];
    int length = snprintf(name_again, sizeof name_again, "%s.again", name);
    TN_ASSERT(length > 0 && (size_t)length < sizeof name_again);
    TN_TRY(tn_path_join(folder, name, path, err));
    TN_TRY(tn_path_join(folder, name_again, again, err));
    tn_status status = make(ctx, path, err);
    if (status != TN_E_IO) {
        return status;
    }
    /* After a failed fsync the kernel has dropped the pages: only a new file can be trusted. */
    TN_TRY(make(ctx, again, err));
    return tn_rename(again, path, err);
}

typedef struct text_job {
    const tn_text *text;
    tn_manifest_file *file;
} text_job;

static tn_status write_text(void *ctx, const char *path, tn_error *err)
{
    const text_job *job = ctx;
    tn_file *f = NULL;
    TN_TRY(tn_file_create(&f, path, err));
    tn_status status = tn_file_write(f, tn_text_str(job->text), job->text->size, err);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    job->file->bytes = tn_file_size(f);
    job->file->crc = tn_file_crc(f);
    return tn_file_commit(f, err);
}

tn_status tn_ckpt_put_text(const char *folder, const char *name, const tn_text *text,
                           tn_manifest_file *out, tn_error *err)
{
    tn_manifest_file nobodys;
    text_job job = {text, out != NULL ? out : &nobodys};
    return tn_ckpt_put(folder, name, write_text, &job, err);
}

tn_status tn_ckptdir_commit(tn_ckptdir *d, const tn_text *manifest, uint32_t crc, tn_error *err)
{
    TN_ASSERT(d->ordinal != 0);
    TN_ASSERT(manifest->size > 0 && !manifest->failed);
    char final[TN_PATH_SIZE];
    TN_TRY(tn_ckptdir_path(d->dir, d->ordinal, final, err));
    TN_TRY(pass("ckpt.before_manifest", err));
    TN_TRY(tn_ckpt_put_text(d->tmp, "MANIFEST", manifest, NULL, err));
    TN_TRY(tn_dir_sync(d->tmp, err));
    TN_TRY(pass("ckpt.before_rename", err));
    TN_TRY(tn_rename(d->tmp, final, err));
    d->committed = d->ordinal;
    d->ordinal = 0;
    write_latest(d, d->committed, crc);
    return pass("ckpt.after_rename", err);
}

void tn_ckptdir_abandon(tn_ckptdir *d)
{
    if (d->ordinal == 0) {
        return;
    }
    tn_error err = {0};
    d->ordinal = 0;
    if (tn_remove_tree(d->tmp, &err) != TN_OK) {
        tn_log(TN_LOG_WARN, "an unfinished checkpoint stays until the next start: %s", err.text);
    }
}

tn_status tn_ckptdir_set_aside(const tn_ckptdir *d, uint64_t ordinal, tn_error *err)
{
    enum { TRIES = 1000 };
    char from[TN_PATH_SIZE];
    TN_TRY(tn_ckptdir_path(d->dir, ordinal, from, err));
    for (uint32_t i = 1; i <= TRIES; i++) {
        char name[64];
        char again[16];
        char to[TN_PATH_SIZE];
        (void)snprintf(again, sizeof again, ".%u", i);
        (void)snprintf(name, sizeof name, "ckpt-%" PRIu64 TN_CKPT_DAMAGED "%s", ordinal,
                       i > 1 ? again : "");
        TN_TRY(tn_path_join(d->dir, name, to, err));
        if (tn_path_exists(to)) {
            continue;
        }
        TN_TRY(tn_rename(from, to, err));
        tn_log(TN_LOG_WARN, "ckpt-%" PRIu64 " is kept as '%s', which nothing reads or removes",
               ordinal, to);
        return TN_OK;
    }
    return tn_fail(err, TN_E_IO, "more than %d damaged checkpoints %" PRIu64 " in '%s'", TRIES,
                   ordinal, d->dir);
}

typedef struct entry {
    uint64_t ordinal, base;
    uint32_t crc;
    bool whole; /* as far as manifests show, down to the full one */
    bool kept;
} entry;

static entry *find(entry *list, uint32_t n, uint64_t ordinal)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].ordinal == ordinal) {
            return &list[i];
        }
    }
    return NULL;
}

/* Takes list[i] for whole or sets it aside; its predecessors were looked at before. */
static tn_status look_at(const tn_ckptdir *d, entry *list, uint32_t n, uint32_t i, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_manifest m = {0};
    tn_error why = {0};
    entry *e = &list[i];
    TN_TRY(tn_ckptdir_path(d->dir, e->ordinal, path, err));
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = tn_ckpt_read_manifest(path, arena, &m, &why);
    tn_arena_free(arena);
    if (status != TN_OK && status != TN_E_CKPT) {
        return tn_fail(err, status, "%s", why.text);
    }
    if (status == TN_OK) {
        const entry *base = m.base != 0 ? find(list, n, m.base) : NULL;
        e->base = m.base;
        e->crc = m.crc;
        e->whole = m.base == 0 || (base != NULL && base->whole && base->crc == m.base_crc);
        (void)snprintf(why.text, sizeof why.text, "ckpt-%" PRIu64 ", its base, is not whole",
                       m.base);
    }
    if (e->whole) {
        return TN_OK;
    }
    tn_log(TN_LOG_WARN, "ckpt-%" PRIu64 " is damaged: %s", e->ordinal, why.text);
    return tn_ckptdir_set_aside(d, e->ordinal, err);
}

/* Marks this one and its predecessors. */
static void keep_chain(entry *list, uint32_t n, entry *e)
{
    while (e != NULL && e->whole) {
        e->kept = true;
        e = e->base != 0 ? find(list, n, e->base) : NULL;
    }
}

/* Without its final name first: a folder that bears one is complete, whenever we are killed. */
static tn_status remove_checkpoint(const tn_ckptdir *d, uint64_t ordinal, tn_error *err)
{
    char final[TN_PATH_SIZE];
    char tmp[TN_PATH_SIZE];
    TN_TRY(tn_ckptdir_path(d->dir, ordinal, final, err));
    TN_TRY(tmp_path(d, ordinal, tmp, err));
    TN_TRY(tn_rename(final, tmp, err));
    return tn_remove_tree(tmp, err);
}

static tn_status prune(const tn_ckptdir *d, uint32_t keep, uint64_t best, tn_arena *arena,
                       tn_error *err)
{
    tn_ckpt_listing present;
    TN_TRY(tn_ckptdir_list(d->dir, arena, &present, err));
    const uint32_t n = present.n;
    entry *list = TN_NEW_ARRAY(arena, entry, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        TN_ASSERT(i == 0 || present.ordinal[i - 1] > present.ordinal[i]); /* the newest first */
        list[i].ordinal = present.ordinal[i];
    }
    for (uint32_t i = n; i > 0; i--) { /* bases come before their deltas */
        TN_TRY(look_at(d, list, n, i - 1, err));
    }
    uint32_t left = keep > 0 ? keep : 1;
    for (uint32_t i = 0; i < n && left > 0; i++) {
        if (list[i].whole) {
            keep_chain(list, n, &list[i]);
            left--;
        }
    }
    keep_chain(list, n, best != 0 ? find(list, n, best) : NULL);
    for (uint32_t i = 0; i < n; i++) { /* deltas before their bases, whenever we are killed */
        if (list[i].whole && !list[i].kept) {
            TN_TRY(remove_checkpoint(d, list[i].ordinal, err));
        }
    }
    return TN_OK;
}

tn_status tn_ckptdir_prune(tn_ckptdir *d, uint32_t keep, uint64_t best, tn_error *err)
{
    TN_TRY(pass("ckpt.before_prune", err));
    tn_arena *arena = tn_arena_new(4096);
    tn_status status = prune(d, keep, best, arena, err);
    tn_arena_free(arena);
    return status;
}

/* ---- beginning anew ---- */

/* The first name that nothing bears. */
static tn_status make_aside(const char *dir, tn_text *out, tn_error *err)
{
    for (uint32_t i = 1;; i++) {
        tn_text_clear(out);
        tn_text_addf(out, "%s/earlier-%" PRIu32, dir, i);
        TN_TRY(tn_text_check(out, "run.dir", err));
        if (!tn_path_exists(tn_text_str(out))) {
            return tn_dir_make_new(tn_text_str(out), err);
        }
    }
}

/* Into the folder `aside`, which is made for the first. */
static tn_status move_aside(const char *dir, const char *name, tn_text *aside, tn_error *err)
{
    char from[TN_PATH_SIZE];
    char to[TN_PATH_SIZE];
    TN_TRY(aside->size == 0 ? make_aside(dir, aside, err) : TN_OK);
    TN_TRY(tn_path_join(dir, name, from, err));
    TN_TRY(tn_path_join(tn_text_str(aside), name, to, err));
    return tn_path_exists(from) ? tn_rename(from, to, err) : TN_OK;
}

/* Files of a run besides checkpoints with final names. */
static bool is_left(const char *name)
{
    static const char *const own[] = {"LATEST", "metrics.jsonl",    "summary.json",
                                      "tb",     "calibration.json", TN_RUN_YAML};
    bool is_one = false;
    is_one = tn_ckptdir_ordinal(name, &is_one) != 0 && is_one;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        is_one = is_one || strcmp(name, own[i]) == 0;
    }
    return is_one;
}

static tn_status move_all(const char *dir, const tn_ckpt_listing *list, const tn_text *names,
                          tn_text *aside, tn_error *err)
{
    for (uint32_t i = 0; i < list->n; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "ckpt-%" PRIu64, list->ordinal[i]);
        TN_TRY(move_aside(dir, name, aside, err));
    }
    const char *end = tn_text_str(names) + names->size;
    for (const char *name = tn_text_str(names); name < end; name += strlen(name) + 1) {
        TN_TRY(is_left(name) ? move_aside(dir, name, aside, err) : TN_OK);
    }
    return TN_OK;
}

tn_status tn_ckptdir_begin_anew(tn_ckptdir *d, tn_error *err)
{
    tn_text names = {0};
    tn_text aside = {0};
    tn_ckpt_listing list;
    uint32_t n_names = 0;
    tn_arena *arena = tn_arena_new(4096);
    tn_status status = tn_ckptdir_list(d->dir, arena, &list, err);
    status = status == TN_OK ? tn_dir_list(d->dir, &names, &n_names, err) : status;
    status = status == TN_OK ? move_all(d->dir, &list, &names, &aside, err) : status;
    if (status == TN_OK && aside.size > 0) {
        tn_log(TN_LOG_INFO, "begins anew; the run before is kept in '%s'", tn_text_str(&aside));
    }
    tn_text_done(&aside);
    tn_text_done(&names);
    tn_arena_free(arena);
    return status;
}
