/* reader_cache.c - the binary cache of what a reader reads: used when it fits, else made on the
 * way.
 *
 * data.cache is a convenience: whatever is wrong with it is one line in the log, and the data is
 * read as if there were none. A cache that was asked for by name (opts.make_cache) is a duty: what
 * is wrong with it ends the reader.
 */
#include "io/read/reader_private.h"

#include "base/core/log.h"
#include "base/file/output_file.h"
#include "base/math/key.h"
#include "io/read/cache.h"
#include "io/read/fileset.h"
#include "io/source/remote.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <stdio.h>
#include <string.h>

#define BESIDE ".tnet-cache" /* `auto`: a folder beside the first file */

/* `auto`: a cache is written once and read by every later pass, so that it takes two of them to pay
 * for itself (an estimate); it takes half of the free room at most. */
enum { PASSES_MIN = 3, SHARE_OF_ROOM = 2 };

static bool is_auto(const tn_reader *r)
{
    return r->schema->data->cache != NULL && strcmp(r->schema->data->cache, "auto") == 0;
}

static bool is_wanted(const tn_reader *r)
{
    const char *cache = r->schema->data->cache;
    const bool beside = is_auto(r) && r->files->file[0].object != NULL; /* .. which is no disk */
    return r->opts.use_cache && r->opts.cut_for <= 1 && cache != NULL && !beside &&
           strcmp(cache, "none") != 0 && strcmp(cache, "off") != 0;
}

/* A source that comes once cannot be compared with a cache later. */
static bool has_stream(const tn_fileset *files)
{
    for (uint32_t i = 0; i < files->n; i++) {
        if (files->file[i].once) {
            return true;
        }
    }
    return false;
}

static tn_status name_folder(const tn_reader *r, char out[TN_PATH_SIZE], tn_error *err)
{
    const char *cache = r->schema->data->cache;
    const char *first = r->files->file[0].path;
    const char *slash = strrchr(first, '/');
    int n = !is_auto(r) ? snprintf(out, TN_PATH_SIZE, "%s", cache)
                        : snprintf(out, TN_PATH_SIZE, "%.*s" BESIDE,
                                   slash != NULL ? (int)(slash - first) + 1 : 2,
                                   slash != NULL ? first : "./");
    return n > 0 && n < TN_PATH_SIZE ? TN_OK : tn_fail(err, TN_E_LIMIT, "its path is too long");
}

/* <folder>/<16 hex>.tnb: one name for the same files, read in the same way. */
static tn_status name_cache(const tn_reader *r, const char *folder, char out[TN_PATH_SIZE],
                            tn_error *err)
{
    tn_text text = {0};
    tn_cache_shape(r->schema, &text);
    tn_text_add_u64le(&text, r->schema->data->part_bytes);
    for (uint32_t i = 0; i < r->files->n; i++) {
        const tn_file_entry *f = &r->files->file[i];
        tn_text_add(&text, f->path, strlen(f->path) + 1);
        if (f->object != NULL && f->object->tag != NULL) { /* another version, another cache */
            tn_text_add(&text, f->object->tag, strlen(f->object->tag) + 1);
        }
    }
    tn_status status = tn_text_check(&text, "the name of a binary cache", err);
    if (status == TN_OK) {
        char name[32];
        (void)snprintf(name, sizeof name, "%016llx.tnb",
                       (unsigned long long)tn_xxh64(text.data, text.size, 0));
        status = tn_path_join(folder, name, out, err);
    }
    tn_text_done(&text);
    return status;
}

/* The same sources in the same order, cut into the same parts. */
static bool stands_for(const tn_fileset *cache, const tn_fileset *files)
{
    if (cache->n != files->n || cache->n_parts != files->n_parts) {
        return false;
    }
    for (uint32_t i = 0; i < files->n; i++) {
        const tn_file_entry *a = &cache->file[i];
        const tn_file_entry *b = &files->file[i];
        if (strcmp(a->path, b->path) != 0 || a->size != b->size ||
            a->compression != b->compression) {
            return false;
        }
    }
    for (uint32_t i = 0; i < files->n_parts; i++) {
        const tn_part_info *a = &cache->part[i];
        const tn_part_info *b = &files->part[i];
        if (a->source != b->source || a->first != b->first || a->end != b->end) {
            return false;
        }
    }
    return true;
}

/* Puts the cache in the place of the files, if it is there and fits; else `why` it does not. */
static bool use(tn_reader *r, const char *path, tn_error *why)
{
    tn_fileset *cache = NULL;
    const tn_strs paths = {1, &path};
    if (tn_fileset_new(&cache, &paths, r->schema, 1, why) != TN_OK) {
        return false;
    }
    if (!stands_for(cache, r->files)) {
        tn_fileset_free(cache);
        return tn_fail(why, TN_E_DATA, "binary cache '%s' is of other files", path) == TN_OK;
    }
    cache->spare = true;
    tn_fileset_free(r->files);
    r->files = cache;
    return true;
}

/* The sources bound from above what a cache takes, roughly; a full disk harms more than this. */
static tn_status check_room(const tn_reader *r, const char *folder, tn_error *err)
{
    uint64_t room = 0;
    TN_TRY(tn_dir_make(folder, err));
    TN_TRY(tn_disk_free(folder, &room, err));
    return room / (is_auto(r) ? SHARE_OF_ROOM : 1) >= r->files->bytes
               ? TN_OK
               : tn_fail(err, TN_E_IO, "'%s': the disk has no room for it", folder);
}

/* Rather than out of date. */
static bool is_damaged(const char *path)
{
    tn_cache *cache = NULL;
    tn_error why = {0};
    tn_status status = tn_cache_open(&cache, path, &why);
    tn_cache_close(cache);
    return status != TN_OK;
}

static tn_status find_or_begin(tn_reader *r, tn_error *err)
{
    char folder[TN_PATH_SIZE];
    char path[TN_PATH_SIZE];
    tn_error why = {0};
    TN_TRY(name_folder(r, folder, err));
    TN_TRY(name_cache(r, folder, path, err));
    tn_cache_sweep(folder);
    bool there = tn_path_exists(path);
    if (there && use(r, path, &why)) {
        return TN_OK;
    }
    bool whole = r->opts.from.part == 0 && r->opts.dealer == NULL && r->opts.shares <= 1;
    if (!whole) { /* the next epoch makes it */
        return TN_OK;
    }
    if (is_auto(r) && r->opts.passes < PASSES_MIN) {
        if (there) {
            tn_log(TN_LOG_INFO, "a binary cache is not read: %s", why.text);
        }
        return TN_OK;
    }
    TN_TRY(check_room(r, folder, err));
    TN_TRY(tn_cache_create(&r->cache, path, NULL, r->schema, r->files, err));
    if (there) {
        tn_log(is_damaged(path) ? TN_LOG_WARN : TN_LOG_INFO, "making binary cache '%s' anew: %s",
               path, why.text);
    }
    return TN_OK;
}

/* What the user may not expect to find beside the data. */
static void say_made(const tn_reader *r)
{
    char folder[TN_PATH_SIZE];
    char path[TN_PATH_SIZE];
    tn_infile *made = NULL;
    if (name_folder(r, folder, NULL) == TN_OK && name_cache(r, folder, path, NULL) == TN_OK &&
        tn_infile_open(&made, path, NULL) == TN_OK) {
        tn_log(TN_LOG_INFO,
               "made binary cache '%s', %.1f MB, which later passes read in place of the data; "
               "data.cache=none makes none",
               path, 1e-6 * (double)tn_infile_size(made));
        tn_infile_close(made);
    }
}

tn_status tn_reader_begin_cache(tn_reader *r, tn_error *err)
{
    tn_error why = {0};
    bool is_cache = r->files->caches != NULL;
    if (r->opts.make_cache != NULL) {
        if (is_cache) {
            return tn_fail(err, TN_E_USAGE, "'%s' is made of data, not of binary caches",
                           r->opts.make_cache);
        }
        const tn_output_with with = {.announce = r->opts.announce};
        return tn_cache_create(&r->cache, r->opts.make_cache, &with, r->schema, r->files, err);
    }
    if (!is_wanted(r) || is_cache) {
        return TN_OK;
    }
    if (has_stream(r->files)) {
        tn_log(TN_LOG_WARN, "no binary cache is made: '%s' cannot be read twice",
               r->files->file[0].path);
    } else if (find_or_begin(r, &why) != TN_OK) {
        tn_log(TN_LOG_WARN, "no binary cache is made: %s", why.text);
    }
    return TN_OK;
}

static tn_status give_up(tn_reader *r, const tn_error *why, tn_error *err)
{
    tn_cache_abandon(r->cache);
    r->cache = NULL;
    if (r->opts.make_cache != NULL) {
        return tn_fail(err, why->code, "%s", why->text);
    }
    tn_log(TN_LOG_WARN, "no binary cache is made: %s", why->text);
    return TN_OK;
}

tn_status tn_reader_add_to_cache(tn_reader *r, uint32_t part, const tn_work *work, tn_error *err)
{
    tn_error why = {0};
    tn_status status = tn_cache_add(r->cache, part, &work->packed, work->parsed.rows->n, &why);
    return status == TN_OK ? TN_OK : give_up(r, &why, err);
}

tn_status tn_reader_end_cache(tn_reader *r, tn_error *err)
{
    tn_error why = {0};
    if (r->cache == NULL) {
        return TN_OK;
    }
    tn_cache_writer *cache = r->cache;
    r->cache = NULL; /* gone either way */
    if (tn_cache_commit(cache, &why) != TN_OK) {
        return give_up(r, &why, err);
    }
    if (r->opts.make_cache == NULL) {
        say_made(r);
    }
    return TN_OK;
}
