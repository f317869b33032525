/* tensornet_files.c - finds the files of a TensorNet checkpoint and inflates them. */
#include "extra/tensornet/tensornet_files.h"

#include "base/codec/json.h"
#include "base/core/number.h"
#include "io/schema/dataopts.h"
#include "io/source/source.h"
#include "train/config/days.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BYTES_MAX ((size_t)1 << 36) /* most bytes of a file, inflated */

enum { PIECE = 1 << 20, DT_BYTES_MAX = 1 << 16 };

static tn_status no_such(const char *what, const char *path, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "there is no %s '%s'", what, path);
}

/* ---- bytes ---- */

static tn_status inflate_all(tn_source *s, bool gzip, tn_text *out, tn_error *err)
{
    tn_bytes first = {0};
    TN_TRY(tn_source_peek(s, &first, err));
    if (gzip && (first.size < 2 || memcmp(first.data, "\x1f\x8b", 2) != 0)) {
        return tn_fail(err, TN_E_CKPT, "%s:@0: error: not a gzip file", tn_source_path(s));
    }
    TN_TRY(gzip ? tn_source_decompress(s, TN_COMPRESSION_GZIP, err) : TN_OK);
    size_t n = PIECE;
    while (n == PIECE) {
        const size_t before = out->size;
        char *room = tn_text_grow(out, PIECE);
        if (room == NULL) {
            return tn_text_check(out, tn_source_path(s), err);
        }
        TN_TRY(tn_source_read(s, room, PIECE, &n, err));
        out->size = before + n;
    }
    return TN_OK;
}

static tn_status read_bytes(const char *path, bool gzip, tn_text *out, tn_error *err)
{
    tn_source *s = NULL;
    tn_text_clear(out);
    out->size_max = BYTES_MAX;
    if (!tn_path_exists(path) || tn_path_is_dir(path)) {
        return no_such("file", path, err);
    }
    TN_TRY(tn_source_open(&s, path, 0, NULL, err));
    tn_status status = inflate_all(s, gzip, out, err);
    tn_source_close(s);
    if ((status == TN_E_DATA || status == TN_E_LIMIT) && err != NULL) {
        err->code = TN_E_CKPT; /* gzip says that it was cut or changed */
    }
    return status == TN_E_DATA || status == TN_E_LIMIT ? TN_E_CKPT : status;
}

tn_status tn_tensornet_file(const tn_tensornet_dir *d, const char *name, bool gzip,
                            char path[TN_PATH_SIZE], tn_text *out, tn_error *err)
{
    TN_TRY(tn_path_join(d->path, name, path, err));
    return read_bytes(path, gzip, out, err);
}

/* ---- the day ---- */

static tn_status read_dt(const char *path, char dt[64], tn_error *err)
{
    tn_text text = {0};
    const tn_json *json = NULL;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_status status = tn_file_read_all(path, DT_BYTES_MAX, &text, err);
    if (status == TN_OK) {
        status = tn_json_parse(&json, tn_text_str(&text), text.size, arena, path, err);
    }
    const char *value = status == TN_OK ? tn_json_as_str(tn_json_get(json, "dt")) : NULL;
    if (status == TN_OK && (value == NULL || value[0] == '\0' || value[0] == '.' ||
                            strlen(value) >= 64 || strchr(value, '/') != NULL)) {
        status = tn_fail(err, TN_E_CKPT,
                         "'%s' does not say which day is to be loaded, {\"dt\": "
                         "\"2020-05-10\"}",
                         path);
    }
    if (status == TN_OK) {
        (void)snprintf(dt, 64, "%s", value);
    }
    tn_text_done(&text);
    tn_arena_free(arena);
    return status;
}

tn_status tn_tensornet_dir_open(tn_tensornet_dir *out, const char *dir, tn_error *err)
{
    char file[TN_PATH_SIZE];
    *out = (tn_tensornet_dir){0};
    if (!tn_path_is_dir(dir)) {
        return no_such("folder", dir, err);
    }
    TN_TRY(tn_path_join(dir, "_checkpoint", file, err));
    if (tn_path_exists(file)) {
        TN_TRY(read_dt(file, out->dt, err));
        TN_TRY(tn_path_join(dir, out->dt, out->path, err));
    } else {
        const char *slash = strrchr(dir, '/');
        (void)snprintf(out->path, sizeof out->path, "%s", dir);
        (void)snprintf(out->dt, sizeof out->dt, "%.63s", slash != NULL ? slash + 1 : dir);
    }
    TN_TRY(tn_path_join(out->path, "sparse_table", file, err));
    if (!tn_path_is_dir(file)) {
        return tn_fail(err, TN_E_CKPT,
                       "'%s' is no TensorNet checkpoint: there is neither "
                       "'_checkpoint' nor 'sparse_table'",
                       dir);
    }
    out->is_dated = strcmp(out->dt, "today") != 0 && tn_day_read(out->dt, &out->day);
    return TN_OK;
}

/* ---- ranks and blocks ---- */

tn_status tn_tensornet_ranks(const tn_tensornet_dir *d, const char *layer, uint32_t *n,
                             tn_error *err)
{
    char table[TN_PATH_SIZE];
    char path[TN_PATH_SIZE];
    tn_text names = {0};
    TN_TRY(tn_path_join(d->path, "sparse_table", table, err));
    TN_TRY(tn_path_join(table, layer, path, err));
    if (!tn_path_is_dir(path)) {
        return no_such("folder", path, err);
    }
    TN_TRY(tn_dir_list(path, &names, n, err));
    uint64_t highest = 0;
    uint32_t folders = 0;
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < *n; i++, name += strlen(name) + 1) {
        uint64_t rank = 0;
        if (strncmp(name, "rank_", 5) == 0 &&
            tn_read_u64(name + 5, strlen(name + 5), &rank) == TN_NUM_OK) {
            folders++;
            highest = rank > highest ? rank : highest;
        }
    }
    tn_text_done(&names);
    *n = folders;
    if (folders == 0 || folders > TN_TENSORNET_RANKS_MAX || highest != folders - 1) {
        return tn_fail(err, TN_E_CKPT, "'%s' has %u folders of ranks, the highest is rank_%" PRIu64,
                       path, folders, highest);
    }
    return TN_OK;
}

/* Whether a file called `name` is that block. */
static bool is_block(const char *name, uint32_t block)
{
    char want[32];
    static const char *const forms[] = {"block_%u.gz", "sparse_block_%u.gz",
                                        "sparse_block_%u_bin.gz"};
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *digit = strchr(forms[i], '%');
        const int head = (int)(digit - forms[i]);
        (void)snprintf(want, sizeof want, "%.*s%u%s", head, forms[i], block, digit + 2);
        if (strcmp(name, want) == 0) {
            return true;
        }
    }
    return false;
}

static tn_status find_block(const char *folder, uint32_t block, char path[TN_PATH_SIZE],
                            tn_error *err)
{
    tn_text names = {0};
    uint32_t n = 0;
    const char *found = NULL;
    const char *second = NULL;
    TN_TRY(tn_dir_list(folder, &names, &n, err));
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        if (is_block(name, block)) {
            second = found;
            found = name;
        }
    }
    tn_status status = TN_OK;
    if (found == NULL) {
        status = tn_fail(err, TN_E_CKPT, "'%s' has no file of block %u", folder, block);
    } else if (second != NULL) {
        status = tn_fail(err, TN_E_CKPT, "'%s' has two files of block %u, '%s' and '%s'", folder,
                         block, second, found);
    } else {
        status = tn_path_join(folder, found, path, err);
    }
    tn_text_done(&names);
    return status;
}

tn_status tn_tensornet_block(const tn_tensornet_dir *d, const tn_tensornet_place *at,
                             char path[TN_PATH_SIZE], tn_text *out, tn_error *err)
{
    char name[TN_PATH_SIZE];
    char folder[TN_PATH_SIZE];
    TN_ASSERT(at->block < TN_TENSORNET_BLOCKS);
    (void)snprintf(name, sizeof name, "sparse_table/%.255s/rank_%u", at->layer, at->rank);
    TN_TRY(tn_path_join(d->path, name, folder, err));
    if (!tn_path_is_dir(folder)) {
        return no_such("folder", folder, err);
    }
    TN_TRY(find_block(folder, at->block, path, err));
    return read_bytes(path, true, out, err);
}
