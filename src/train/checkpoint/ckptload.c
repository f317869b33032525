/* ckptload.c - finds the newest checkpoint that is whole: the reading half of ckptdir.h. */
#include "train/checkpoint/ckptdir.h"

#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/math/sha256.h"
#include "ps/snapshot/snapshot.h"
#include "train/checkpoint/run_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- one folder: is it what its manifest says? ----
 *
 * Every file must have its size. Small files are read once and compared with their crc. A shard
 * file has a crc per block, which is checked while it is loaded; here it must only belong to this
 * checkpoint: run, step, layout, partitions, rows.
 */

static bool is_missing(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

/* A file that is not there is damage; its folder may lack with it, but not be a link to
 * nowhere. Whatever else keeps one from being opened (rights, descriptors, the disk, a server that
 * does not answer) says nothing about its bytes. */
static tn_status blame(tn_status status, const char *folder, const char *file, tn_error *err)
{
    const bool missing =
        status == TN_E_IO && is_missing(file) && (tn_path_is_dir(folder) || is_missing(folder));
    return missing ? tn_fail(err, TN_E_CKPT, "'%s' is not there", file) : status;
}

tn_status tn_ckpt_read_manifest(const char *path, tn_arena *arena, tn_manifest *out, tn_error *err)
{
    char file[TN_PATH_SIZE];
    tn_text text = {0};
    tn_run_sections *sections = TN_NEW(arena, tn_run_sections);
    TN_TRY(tn_path_join(path, "MANIFEST", file, err));
    tn_status status = tn_file_read_all(file, TN_MANIFEST_BYTES_MAX, &text, err);
    if (status == TN_OK) {
        out->sections = (tn_doc_part){tn_run_sections_rows, sections};
        status = tn_manifest_read(out, &text, arena, file, err);
    }
    tn_text_done(&text);
    return blame(status, path, file, err);
}

static tn_status check_crc(const tn_infile *f, uint32_t want, tn_error *err)
{
    uint32_t crc = 0;
    TN_TRY(tn_infile_crc(f, &crc, err));
    return crc == want
               ? TN_OK
               : tn_fail(err, TN_E_CKPT, "'%s' at bytes 0 to %llu: crc %08x, %08x in the manifest",
                         tn_infile_path(f), (unsigned long long)tn_infile_size(f), crc, want);
}

/* NULL, or in what the shard differs from the manifest. */
static const char *difference(const tn_manifest *m, const tn_manifest_file *file,
                              const tn_snapshot *s, const uint8_t *schema)
{
    const tn_snapshot_head *head = tn_snapshot_head_of(s);
    if (head->run_id != m->run_id || head->step != m->step) {
        return "of another run or step";
    }
    if (memcmp(head->schema, schema, TN_SNAPSHOT_SCHEMA_BYTES) != 0) {
        return "of another layout of rows";
    }
    if (head->partitions != m->sparse.partitions || head->first != file->first ||
        head->last != file->last) {
        return "of other partitions";
    }
    if (head->delta != (m->base != 0)) {
        return "of another kind";
    }
    return tn_snapshot_rows(s) != file->rows ? "of another number of rows" : NULL;
}

static tn_status check_shard(const char *name, const tn_manifest *m, const tn_manifest_file *file,
                             tn_error *err)
{
    uint8_t schema[TN_SNAPSHOT_SCHEMA_BYTES];
    tn_snapshot *s = NULL;
    TN_TRY(tn_row_schema_hash(&m->sparse, schema, err));
    TN_TRY(tn_snapshot_open(&s, name, err));
    const char *why = difference(m, file, s, schema);
    tn_snapshot_close(s);
    if (why != NULL) {
        return tn_fail(err, TN_E_CKPT, "'%s' is a file %s than its manifest's", name, why);
    }
    return TN_OK;
}

/* A file that is not as the manifest says is named. */
static tn_status check_file(const char *path, const tn_manifest *m, const tn_manifest_file *file,
                            tn_error *err)
{
    char name[TN_PATH_SIZE];
    tn_infile *f = NULL;
    TN_TRY(tn_path_join(path, file->name, name, err));
    TN_TRY(blame(tn_infile_open(&f, name, err), path, name, err));
    bool is_shard = strcmp(file->type, "sparse") == 0;
    tn_status status = TN_OK;
    if (tn_infile_size(f) != file->bytes) {
        status = tn_fail(err, TN_E_CKPT, "'%s' has %llu bytes, %llu in the manifest", name,
                         (unsigned long long)tn_infile_size(f), (unsigned long long)file->bytes);
    } else if (!is_shard) {
        status = check_crc(f, file->crc, err);
    }
    tn_infile_close(f);
    return status == TN_OK && is_shard ? check_shard(name, m, file, err) : status;
}

/* ---- the chain of a delta, and which checkpoint is taken ---- */

enum { CHAIN_MAX = 1024 }; /* deltas on one full checkpoint */

/* Links of a chain: the wanted checkpoint first, then its predecessors, the full one last. */
typedef struct chain {
    uint32_t n;
    struct {
        char path[TN_PATH_SIZE];
        tn_manifest manifest;
    } * link[CHAIN_MAX];
} chain;

uint64_t tn_ckptdir_ordinal(const char *name, bool *damaged)
{
    static const char prefix[] = "ckpt-";
    static const char suffix[] = TN_CKPT_DAMAGED;
    uint64_t ordinal = 0;
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || *digits == '0') {
        return 0;
    }
    size_t n = strcspn(digits, ".");
    const char *tail = digits + n + sizeof suffix - 1; /* nothing, or the number of one more */
    *damaged = strncmp(digits + n, suffix, sizeof suffix - 1) == 0 &&
               (*tail == '\0' || (*tail == '.' && tail[1] != '\0' &&
                                  tail[1 + strspn(tail + 1, "0123456789")] == '\0'));
    if ((digits[n] != '\0' && !*damaged) || tn_read_u64(digits, n, &ordinal) != TN_NUM_OK ||
        ordinal > INT64_MAX - 1) {
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

tn_status tn_ckptdir_list(const char *dir, tn_arena *arena, tn_ckpt_listing *out, tn_error *err)
{
    tn_text names = {0};
    uint32_t n_names = 0;
    tn_status status = tn_dir_list(dir, &names, &n_names, err);
    if (status == TN_OK) {
        uint64_t *found = TN_NEW_ARRAY(arena, uint64_t, n_names + 1);
        *out = (tn_ckpt_listing){.ordinal = found};
        const char *name = tn_text_str(&names);
        for (uint32_t i = 0; i < n_names; i++) {
            bool is_damaged = false;
            const uint64_t ordinal = tn_ckptdir_ordinal(name, &is_damaged);
            out->highest = ordinal > out->highest ? ordinal : out->highest;
            if (ordinal != 0 && is_damaged) {
                out->n_damaged++;
            } else if (ordinal != 0) {
                found[out->n++] = ordinal;
            }
            name += strlen(name) + 1;
        }
        TN_ASSERT(name == tn_text_str(&names) + names.size);
        qsort(found, out->n, sizeof *found, descending);
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
    TN_ASSERT(strlen(path) < TN_PATH_SIZE);
    c->link[c->n] = tn_arena_alloc(arena, 1, sizeof *c->link[0], 8);
    memcpy(c->link[c->n]->path, path, strlen(path) + 1);
    TN_TRY(tn_ckpt_read_manifest(path, arena, &c->link[c->n]->manifest, err));
    const tn_manifest *m = &c->link[c->n]->manifest;
    for (uint32_t i = 0; i < m->n_files; i++) {
        TN_TRY(check_file(path, m, &m->file[i], err));
    }
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
        TN_ASSERT(top->base < top->ordinal); /* so the chain ends */
        if (below->ordinal != top->base || below->crc != top->base_crc ||
            below->run_id != top->run_id) {
            return tn_fail(err, TN_E_CKPT, "'%s' is not the base of ckpt-%" PRIu64, base,
                           top->ordinal);
        }
    }
}

/* Checks that the manifest is in the folder of its ordinal; one may have been renamed by hand. */
static tn_status check_place(const char *path, const tn_manifest *m, tn_error *err)
{
    const char *slash = strrchr(path, '/');
    bool damaged = false;
    uint64_t named = tn_ckptdir_ordinal(slash != NULL ? slash + 1 : path, &damaged);
    if (named != 0 && named != m->ordinal) {
        return tn_fail(err, TN_E_CKPT, "'%s' holds checkpoint %" PRIu64, path, m->ordinal);
    }
    return TN_OK;
}

/* Loads a chain. *damaged: the failure is about the bytes of this checkpoint, or of one before it.
 */
static tn_status load(const char *path, const tn_ckpt_loader *loader, tn_arena *arena,
                      bool *damaged, tn_error *err)
{
    chain *c = TN_NEW(arena, chain);
    tn_status status = build_chain(path, arena, c, err);
    if (status == TN_OK) {
        status = check_place(path, &c->link[0]->manifest, err);
    }
    if (status == TN_E_CKPT && loader->seen) {
        status = TN_E_IO;
        if (err != NULL) {
            err->code = status;
        }
    }
    *damaged = status == TN_E_CKPT;
    TN_TRY(status);
    if (loader->fits != NULL) {
        TN_TRY(loader->fits(loader->ctx, &c->link[0]->manifest, err));
    }
    TN_ASSERT(c->n > 0 && c->link[c->n - 1]->manifest.base == 0); /* the full one is read first */
    for (uint32_t i = c->n; i > 0; i--) {
        status = loader->read(loader->ctx, c->link[i - 1]->path, &c->link[i - 1]->manifest, err);
        *damaged = status == TN_E_CKPT;
        TN_TRY(status);
    }
    return TN_OK;
}

/* Adds a hint for a checkpoint that is not damaged and yet cannot be loaded. */
static void advise(tn_status status, tn_error *err)
{
    const char *hint = status == TN_E_IO ? "nothing was removed; start again when it can be read"
                       : status == TN_E_LIMIT
                           ? "nothing was removed; the version that wrote it reads it"
                           : NULL;
    const size_t size = err != NULL ? strlen(err->text) : 0;
    if (hint != NULL && err != NULL && strstr(err->text, "\nhint: ") == NULL) {
        (void)snprintf(err->text + size, sizeof err->text - size, "\nhint: %s", hint);
    }
}

tn_status tn_ckptdir_load_one(const char *path, const tn_ckpt_loader *loader, tn_error *err)
{
    TN_ASSERT(loader->read != NULL);
    char plain[TN_PATH_SIZE]; /* without slashes at its end */
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    if (size >= sizeof plain) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    if (!loader->seen && is_missing(path)) {
        return tn_fail(err, TN_E_CKPT, "no checkpoint '%s'", path);
    }
    memcpy(plain, path, size);
    plain[size] = '\0';
    bool damaged = false;
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_status status = load(plain, loader, arena, &damaged, err);
    tn_arena_free(arena);
    advise(status, err);
    return status;
}

/* One of the directory's. TN_END: it is damaged and was logged. */
static tn_status try_one(const char *dir, uint64_t ordinal, const tn_ckpt_loader *loader,
                         tn_error *err)
{
    char path[TN_PATH_SIZE];
    TN_TRY(tn_ckptdir_path(dir, ordinal, path, err));
    tn_error why = {0};
    bool damaged = false;
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_status status = load(path, loader, arena, &damaged, &why);
    tn_arena_free(arena);
    if (status == TN_OK) {
        return TN_OK;
    }
    if (damaged && !loader->strict) {
        tn_log(TN_LOG_WARN, "ckpt-%" PRIu64 " is damaged, the one before is tried: %s", ordinal,
               why.text);
        return TN_END;
    }
    advise(status, &why);
    return tn_fail(err, status, "%s", why.text);
}

/* Before one is loaded, none is: a start without any is no start. */
static tn_status set_aside(const tn_ckptdir *owner, const uint64_t *damaged, uint32_t n,
                           tn_error *err)
{
    for (uint32_t i = 0; owner != NULL && i < n; i++) {
        TN_TRY(tn_ckptdir_set_aside(owner, damaged[i], err));
    }
    return TN_OK;
}

/* From the top down to one that is whole. */
static tn_status load_newest(const char *dir, const tn_ckpt_loader *loader, tn_arena *arena,
                             uint64_t *ordinal, tn_error *err)
{
    tn_ckpt_listing list;
    TN_TRY(tn_ckptdir_list(dir, arena, &list, err));
    for (uint32_t i = 0; i < list.n; i++) {
        tn_status status = try_one(dir, list.ordinal[i], loader, err);
        if (status == TN_OK) {
            TN_TRY(set_aside(loader->owner, list.ordinal, i, err));
            *ordinal = list.ordinal[i];
            return TN_OK;
        }
        TN_TRY(status == TN_END ? TN_OK : status);
    }
    if (list.n + list.n_damaged > 0) {
        return tn_fail(
            err, TN_E_CKPT, "no checkpoint in '%s' is whole, of %u that are there%s", dir,
            list.n + list.n_damaged,
            loader->owner != NULL ? "\nhint: --fresh begins anew, and keeps what is there" : "");
    }
    *ordinal = 0;
    return TN_OK;
}

tn_status tn_ckptdir_load(const char *dir, const tn_ckpt_loader *loader, uint64_t *ordinal,
                          tn_error *err)
{
    TN_ASSERT(loader->read != NULL);
    tn_arena *arena = tn_arena_new(4096);
    tn_status status = load_newest(dir, loader, arena, ordinal, err);
    tn_arena_free(arena);
    return status;
}

/* ---- the name of a model ---- */

/* Lists the files of a checkpoint and of its bases, down to the full one. */
static tn_status add_lists(const char *folder, tn_arena *arena, tn_text *out, tn_error *err)
{
    char link[TN_PATH_SIZE];
    tn_manifest m = {0};
    (void)snprintf(link, sizeof link, "%s", folder);
    for (;;) {
        TN_TRY(tn_ckpt_read_manifest(link, arena, &m, err));
        tn_manifest_add_learned(out, &m);
        if (m.base == 0) {
            return tn_text_check(out, "the files of a checkpoint", err);
        }
        char delta[TN_PATH_SIZE];
        memcpy(delta, link, sizeof delta);
        TN_TRY(tn_ckptdir_beside(delta, m.base, link, err));
    }
}

tn_status tn_ckpt_model_id(const char *path, char out[33], tn_error *err)
{
    enum { ID_DIGITS = 32 };
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_text files = {0};
    tn_status status = add_lists(path, arena, &files, err);
    if (status == TN_OK) {
        char hex[65];
        tn_sha256_hex_of(files.data, files.size, hex);
        (void)snprintf(out, ID_DIGITS + 1, "%.*s", ID_DIGITS, hex);
    }
    tn_text_done(&files);
    tn_arena_free(arena);
    return status;
}
