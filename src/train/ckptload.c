/* ckptload.c - finding the newest checkpoint that is whole; the reading half of ckptdir.h. */
#include "base/log.h"
#include "base/number.h"
#include "train/ckptcheck.h"
#include "train/ckptdir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_MAX = 1024 }; /* deltas on one full checkpoint */

/* A checkpoint and what it stands on: the wanted one first, the full one last. */
typedef struct chain {
    uint32_t n;
    struct {
        char path[TN_PATH_SIZE];
        tn_manifest manifest;
    } * link[CHAIN_MAX];
} chain;

/* The ordinal in "ckpt-42"; 0: another name. */
static uint64_t ordinal_of(const char *name)
{
    static const char prefix[] = "ckpt-";
    uint64_t ordinal = 0;
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || *digits == '0' ||
        tn_read_u64(digits, strlen(digits), &ordinal) != TN_NUM_OK || ordinal > INT64_MAX - 1) {
        return 0;
    }
    return ordinal;
}

static int descending(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return *a > *b ? -1 : *a < *b;
}

tn_status tn_ckptdir_list(const char *dir, tn_arena *arena, const uint64_t **out, uint32_t *n,
                          tn_error *err)
{
    tn_text names = {0};
    uint32_t n_names = 0;
    tn_status status = tn_dir_list(dir, &names, &n_names, err);
    if (status == TN_OK) {
        uint64_t *list = TN_NEW_ARRAY(arena, uint64_t, n_names);
        uint32_t count = 0;
        const char *name = tn_text_str(&names);
        for (uint32_t i = 0; i < n_names; i++) {
            uint64_t ordinal = ordinal_of(name);
            if (ordinal != 0) {
                list[count++] = ordinal;
            }
            name += strlen(name) + 1;
        }
        qsort(list, count, sizeof *list, descending);
        *out = list;
        *n = count;
    }
    tn_text_done(&names);
    return status;
}

tn_status tn_ckptdir_beside(const char *path, uint64_t ordinal, char out[TN_PATH_SIZE],
                            tn_error *err)
{
    size_t dir_size = strlen(path);
    while (dir_size > 1 && path[dir_size - 1] == '/') {
        dir_size--;
    }
    while (dir_size > 0 && path[dir_size - 1] != '/') {
        dir_size--;
    }
    if (dir_size >= TN_PATH_SIZE) {
        dir_size = TN_PATH_SIZE - 1; /* and does not fit */
    }
    int length = snprintf(out, TN_PATH_SIZE, "%.*sckpt-%" PRIu64, (int)dir_size, path, ordinal);
    if (length < 0 || length >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    return TN_OK;
}

/* Reads the manifest at `path` as the next link and checks that its files are all there. */
static tn_status add_link(chain *c, const char *path, tn_arena *arena, tn_error *err)
{
    if (c->n == CHAIN_MAX) {
        return tn_fail(err, TN_E_CKPT, "'%s' stands on more than %d deltas", path, CHAIN_MAX);
    }
    c->link[c->n] = tn_arena_alloc(arena, 1, sizeof *c->link[0], 8);
    memcpy(c->link[c->n]->path, path, strlen(path) + 1);
    TN_TRY(tn_ckpt_read_manifest(path, arena, &c->link[c->n]->manifest, err));
    TN_TRY(tn_ckpt_check_files(path, &c->link[c->n]->manifest, err));
    c->n++;
    return TN_OK;
}

static tn_status build_chain(const char *path, tn_arena *arena, chain *c, tn_error *err)
{
    TN_TRY(add_link(c, path, arena, err));
    for (;;) {
        const tn_manifest *top = &c->link[c->n - 1]->manifest;
        if (top->base == 0) {
            return TN_OK;
        }
        char base[TN_PATH_SIZE];
        TN_TRY(tn_ckptdir_beside(path, top->base, base, err));
        TN_TRY(add_link(c, base, arena, err));
        const tn_manifest *below = &c->link[c->n - 1]->manifest;
        if (below->ordinal != top->base || below->crc != top->base_crc ||
            below->run_id != top->run_id) {
            return tn_fail(err, TN_E_CKPT, "'%s' is not the base of ckpt-%" PRIu64, base,
                           top->ordinal);
        }
    }
}

/* Whether the manifest stands where its ordinal says; a folder may have been renamed by hand. */
static tn_status check_place(const char *path, const tn_manifest *m, tn_error *err)
{
    const char *slash = strrchr(path, '/');
    uint64_t named = ordinal_of(slash != NULL ? slash + 1 : path);
    if (named != 0 && named != m->ordinal) {
        return tn_fail(err, TN_E_CKPT, "'%s' holds checkpoint %" PRIu64, path, m->ordinal);
    }
    return TN_OK;
}

/* *is_final: the failure is about more than this checkpoint. */
static tn_status load(const char *path, const tn_ckpt_loader *loader, tn_arena *arena,
                      bool *is_final, tn_error *err)
{
    chain *c = TN_NEW(arena, chain);
    *is_final = false;
    TN_TRY(build_chain(path, arena, c, err));
    TN_TRY(check_place(path, &c->link[0]->manifest, err));
    *is_final = true;
    if (loader->fits != NULL) {
        TN_TRY(loader->fits(loader->ctx, &c->link[0]->manifest, err));
    }
    for (uint32_t i = c->n; i > 0; i--) {
        tn_status status =
            loader->read(loader->ctx, c->link[i - 1]->path, &c->link[i - 1]->manifest, err);
        *is_final = status != TN_E_CKPT && status != TN_E_IO;
        TN_TRY(status);
    }
    return TN_OK;
}

tn_status tn_ckptdir_load_one(const char *path, const tn_ckpt_loader *loader, tn_error *err)
{
    char plain[TN_PATH_SIZE]; /* without slashes behind it */
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    if (size >= sizeof plain) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    memcpy(plain, path, size);
    plain[size] = '\0';
    bool is_final = false;
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_status status = load(plain, loader, arena, &is_final, err);
    tn_arena_free(arena);
    if (status == TN_E_IO && !is_final) {
        if (err != NULL) {
            err->code = TN_E_CKPT;
        }
        status = TN_E_CKPT;
    }
    return status;
}

/* One of the directory's. TN_END: it is damaged and was logged. */
static tn_status try_one(const char *dir, uint64_t ordinal, const tn_ckpt_loader *loader,
                         tn_error *err)
{
    char name[32];
    char path[TN_PATH_SIZE];
    int length = snprintf(name, sizeof name, "ckpt-%" PRIu64, ordinal);
    TN_ASSERT(length > 0 && (size_t)length < sizeof name);
    TN_TRY(tn_path_join(dir, name, path, err));
    tn_error why = {0};
    bool is_final = false;
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_status status = load(path, loader, arena, &is_final, &why);
    tn_arena_free(arena);
    if (status == TN_OK) {
        return TN_OK;
    }
    if (!is_final && !loader->strict && status != TN_E_MEMORY) {
        tn_log(TN_LOG_WARN, "%s is damaged, the one before is tried: %s", name, why.text);
        return TN_END;
    }
    return tn_fail(err, is_final || status == TN_E_MEMORY ? status : TN_E_CKPT, "%s", why.text);
}

tn_status tn_ckptdir_load(const char *dir, const tn_ckpt_loader *loader, uint64_t *ordinal,
                          tn_error *err)
{
    const uint64_t *present = NULL;
    uint32_t n = 0;
    tn_arena *arena = tn_arena_new(4096);
    tn_status status = tn_ckptdir_list(dir, arena, &present, &n, err);
    uint64_t found = 0;
    uint32_t damaged = 0;
    for (uint32_t i = 0; i < n && status == TN_OK && found == 0; i++) {
        status = try_one(dir, present[i], loader, err);
        found = status == TN_OK ? present[i] : 0;
        if (status == TN_END) {
            status = TN_OK;
            damaged++;
        }
    }
    tn_arena_free(arena);
    TN_TRY(status);
    if (found == 0 && damaged > 0) {
        return tn_fail(err, TN_E_CKPT, "no checkpoint in '%s' is whole, of %u that are there", dir,
                       damaged);
    }
    *ordinal = found;
    return TN_OK;
}
