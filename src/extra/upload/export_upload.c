/* export_upload.c - sends the files of an export, its index last. */
#include "base/core/arena.h"
#include "base/core/log.h"
#include "dict/dict_deltas.h"
#include "io/source/remote.h"
#include "serve/export_index.h"
#include "train/export/export_folder.h"
#include "train/export/export_target.h"

#include <stdio.h>
#include <string.h>

#define INDEX "EXPORT.json"

enum { PIECE_BYTES = 1 << 16 };

/* ---- is it there? ---- */

/* Into `out`, or, where that is NULL, into `file`. */
static tn_status read_object(tn_remote *r, const tn_remote_object *object, const atomic_bool *stop,
                             tn_text *out, tn_file *file, tn_error *err)
{
    tn_remote_stream *s = NULL;
    TN_TRY(tn_remotes()->stream_open(&s, r, object, 0, stop, err));
    tn_status status = TN_OK;
    char data[PIECE_BYTES];
    for (size_t n = 1; n > 0 && status == TN_OK;) {
        status = tn_remotes()->stream_read(s, data, sizeof data, &n, err);
        if (status == TN_OK && out != NULL) {
            tn_text_add(out, data, n);
            status = tn_text_check(out, INDEX, err);
        } else if (status == TN_OK) {
            status = tn_file_write(file, data, n, err);
        }
    }
    tn_remotes()->stream_close(s);
    return status;
}

/* A file that the store does not show counts as missing: it is sent, and the store says why not. */
static tn_status find_index(const tn_export_target *t, const char *uri, const tn_text *ours,
                            const atomic_bool *stop, bool *there, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_remote_object object = {.uri = uri, .size = UINT64_MAX};
    tn_error why = {0};
    tn_text theirs = {.size_max = TN_EXPORT_INDEX_BYTES_MAX};
    tn_status status = tn_remotes()->probe(t->remote, &object, arena, &why);
    *there = status == TN_OK;
    if (*there) {
        status = read_object(t->remote, &object, stop, &theirs, NULL, &why);
    }
    const bool same =
        theirs.size == ours->size && memcmp(tn_text_str(&theirs), ours->data, ours->size) == 0;
    tn_text_done(&theirs);
    tn_arena_free(arena);
    if (!*there && status == TN_E_DATA) {
        return TN_OK;
    }
    TN_TRY(status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why.text));
    return same ? TN_OK
                : tn_fail(err, TN_E_CKPT,
                          "'%.*s' is there already and not the same\nhint: remove it, or export to "
                          "another place",
                          (int)(strlen(uri) - strlen("/" INDEX)), uri);
}

/* ---- sending ---- */

static tn_status send_file(const tn_export_target *t, const char *from, const char *to,
                           const char *name, const atomic_bool *stop, tn_error *err)
{
    char path[TN_PATH_SIZE];
    char uri[TN_PATH_SIZE];
    TN_TRY(tn_path_join(from, name, path, err));
    TN_TRY(tn_uri_join(to, name, uri, err));
    return tn_remotes()->put(t->remote, path, uri, stop, err);
}

/* All files but the index. */
static tn_status send_files(const tn_export_target *t, const char *from, const char *to,
                            const atomic_bool *stop, tn_error *err)
{
    tn_text names = {0};
    uint32_t n = 0;
    tn_status status = tn_dir_list(from, &names, &n, err);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        if (strcmp(name, INDEX) != 0) {
            status = send_file(t, from, to, name, stop, err);
        }
        name += strlen(name) + 1;
    }
    tn_text_done(&names);
    return status;
}

static tn_status send_export(const tn_export_target *t, const char *model_id,
                             const atomic_bool *stop, bool *sent, tn_error *err)
{
    char from[TN_PATH_SIZE];
    char to[TN_PATH_SIZE];
    char index[TN_PATH_SIZE];
    tn_text ours = {0};
    bool there = false;
    TN_ASSERT(t->remote != NULL && tn_export_is_id(model_id));
    TN_TRY(tn_path_join(t->folder, model_id, from, err));
    TN_TRY(tn_uri_join(t->to, model_id, to, err));
    TN_TRY(tn_path_join(from, INDEX, index, err));
    tn_status status = tn_file_read_all(index, TN_EXPORT_INDEX_BYTES_MAX, &ours, err);
    status = status == TN_OK ? tn_uri_join(to, INDEX, index, err) : status;
    status = status == TN_OK ? find_index(t, index, &ours, stop, &there, err) : status;
    tn_text_done(&ours);
    if (status == TN_OK && !there) {
        status = send_files(t, from, to, stop, err);
        status = status == TN_OK ? send_file(t, from, to, INDEX, stop, err) : status;
    }
    *sent = status == TN_OK && !there;
    return status;
}

static tn_status send_latest(const tn_export_target *t, const atomic_bool *stop, tn_error *err)
{
    TN_ASSERT(t->remote != NULL);
    return send_file(t, t->folder, t->to, "LATEST", stop, err);
}

/* ---- the base of a delta ---- */

typedef struct fetching {
    tn_remote *remote;
    tn_arena *arena;
    const char *from; /* "<to>/<model id>" */
    tn_export_folder folder;
} fetching;

/* As read_object. */
static tn_status fetch_object(const fetching *f, const char *name, tn_text *out, tn_file *file,
                              tn_error *err)
{
    char uri[TN_PATH_SIZE];
    tn_remote_object object = {.uri = uri, .size = UINT64_MAX};
    TN_TRY(tn_uri_join(f->from, name, uri, err));
    TN_TRY(tn_remotes()->probe(f->remote, &object, f->arena, err));
    return read_object(f->remote, &object, NULL, out, file, err);
}

static tn_status fetch_file(const fetching *f, const tn_export_entry *entry, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_file *file = NULL;
    TN_TRY(tn_path_join(f->folder.tmp, entry->name, path, err));
    TN_TRY(tn_file_create(&file, path, err));
    tn_status status = fetch_object(f, entry->name, NULL, file, err);
    if (status == TN_OK &&
        (tn_file_size(file) != entry->bytes || tn_file_crc(file) != entry->crc)) {
        status =
            tn_fail(err, TN_E_CKPT, "'%s/%s' is damaged: its size or crc is not that of " INDEX,
                    f->from, entry->name);
    }
    if (status != TN_OK) {
        tn_file_abandon(file);
        return status;
    }
    return tn_file_commit(file, err);
}

static tn_status fetch_files(fetching *f, const tn_text *text, const char *model_id, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_export_index index = {0};
    TN_TRY(tn_path_join(f->from, INDEX, path, err));
    TN_TRY(tn_document_read(&tn_export_index_document, &index, text, f->arena, path, err));
    if (strcmp(index.model_id, model_id) != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s' is of another model", path);
    }
    for (uint32_t i = 0; i < index.n_files; i++) {
        TN_TRY(fetch_file(f, &index.file[i], err));
    }
    TN_TRY(tn_path_join(f->folder.tmp, INDEX, path, err));
    return tn_file_replace(path, text->data, text->size, err);
}

/* Makes room for what was fetched whole, where a copy lies that is not. */
static tn_status settle(tn_export_folder *d, tn_error *err)
{
    bool existed = false;
    if (tn_path_exists(d->path)) {
        tn_log(TN_LOG_WARN, "'%s' is damaged, and fetched again", d->path);
        TN_TRY(tn_remove_tree(d->path, err));
    }
    return tn_export_folder_settle(d, &existed, err);
}

/* The whole export, as it was sent: the copy serves as one that was made here does. */
static tn_status fetch(const tn_export_target *t, const char *model_id, tn_error *err)
{
    char from[TN_PATH_SIZE];
    tn_text index = {.size_max = TN_EXPORT_INDEX_BYTES_MAX};
    TN_TRY(tn_uri_join(t->to, model_id, from, err));
    fetching f = {.remote = t->remote, .from = from, .arena = tn_arena_new(1 << 12)};
    tn_status status = fetch_object(&f, INDEX, &index, NULL, err);
    if (status == TN_E_DATA) {
        tn_error_context(err, "the base of the delta is neither in '%s/%s' nor in the store",
                         t->folder, model_id);
    }
    if (status == TN_OK) {
        status = tn_export_folder_begin(&f.folder, t->folder, model_id, err);
        status = status == TN_OK ? fetch_files(&f, &index, model_id, err) : status;
        status = status == TN_OK ? settle(&f.folder, err) : status;
        tn_export_folder_end(&f.folder, err);
    }
    tn_text_done(&index);
    tn_arena_free(f.arena);
    if (status == TN_OK) {
        tn_log(TN_LOG_INFO, "fetched '%s', which the delta stands on", from);
    }
    return status;
}

/* The dictionary of a copy; NULL: there is none, or it is damaged. */
static tn_dict *open_copy(const char *folder, tn_verify verify)
{
    char path[TN_PATH_SIZE];
    tn_dict *d = NULL;
    return tn_path_join(folder, "dict.tnd", path, NULL) == TN_OK &&
                   tn_dict_open(&d, path, verify, NULL) == TN_OK
               ? d
               : NULL;
}

/* Finds the id of a dictionary's base; false: it is a full one, or its reader will say what is
 * wrong with it. */
static bool stands_on(const char *folder, char id[TN_MODEL_HEX])
{
    tn_dict *d = open_copy(folder, TN_VERIFY_NONE);
    if (d == NULL) {
        return false;
    }
    const tn_dict_header *head = tn_dict_head(d);
    const bool is_delta = (head->flags & TN_DICT_DELTA) != 0;
    if (is_delta) {
        tn_dict_hex(head->base_id, id);
    }
    tn_dict_close(d);
    return is_delta;
}

/* A damaged copy that the store cannot replace stays: its reader will say what is wrong with it. */
static tn_status have_copy(const tn_export_target *t, const char *folder, const char *id,
                           tn_error *err)
{
    tn_error why = {0};
    tn_dict *whole = open_copy(folder, TN_VERIFY_FULL);
    if (whole != NULL) {
        tn_dict_close(whole);
        return TN_OK;
    }
    const tn_status status = fetch(t, id, &why);
    const bool refused = status == TN_E_DATA || status == TN_E_LIMIT || status == TN_E_CKPT;
    if (status == TN_OK || (refused && tn_path_exists(folder))) {
        return TN_OK;
    }
    return tn_fail(err, refused ? TN_E_CKPT : status, "%s", why.text);
}

static tn_status fetch_base(const tn_export_target *t, const char *model_id, tn_error *err)
{
    char id[TN_MODEL_HEX];
    char path[TN_PATH_SIZE];
    bool more = true;
    TN_ASSERT(t->remote != NULL && tn_export_is_id(model_id));
    (void)snprintf(id, sizeof id, "%s", model_id);
    for (uint32_t i = 0; more && i <= TN_DICT_DELTAS_MAX; i++) {
        TN_TRY(tn_path_join(t->folder, id, path, err));
        TN_TRY(have_copy(t, path, id, err));
        more = stands_on(path, id);
    }
    return TN_OK;
}

/* ---- what is needed no more ---- */

static void prune(const tn_export_target *t, const char *model_id)
{
    char path[TN_PATH_SIZE];
    tn_text names = {0};
    tn_error err = {0};
    uint32_t n = 0;
    TN_ASSERT(tn_export_is_id(model_id));
    if (t->remote == NULL || tn_dir_list(t->folder, &names, &n, NULL) != TN_OK) {
        n = 0;
    }
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++) {
        if (tn_export_is_id(name) && strcmp(name, model_id) != 0 &&
            tn_path_join(t->folder, name, path, NULL) == TN_OK &&
            tn_remove_tree(path, &err) != TN_OK) {
            tn_log(TN_LOG_WARN, "what was sent of an older export stays: %s", err.text);
        }
        name += strlen(name) + 1;
    }
    tn_text_done(&names);
}

extern const tn_upload tn_upload_upload;
const tn_upload tn_upload_upload = {
    .send = send_export, .send_latest = send_latest, .fetch_base = fetch_base, .prune = prune};
