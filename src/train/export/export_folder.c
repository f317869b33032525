/* export_folder.c - names folders, locks them, and removes what is left of killed exports. */
#include "train/export/export_folder.h"

#include "base/core/log.h"
#include "base/core/number.h"
#include "base/file/output_file.h"

#include <stdio.h>
#include <string.h>

enum { ID_DIGITS = 32, RANDOM_DIGITS = 16, ATTEMPTS = 4 };

bool tn_export_is_id(const char *name)
{
    return strlen(name) == ID_DIGITS && strspn(name, "0123456789abcdef") == ID_DIGITS;
}

/* "<32 hex digits>.<16 hex digits>.tmp": nothing else is ours to remove. */
static bool is_unfinished(const char *name)
{
    const size_t dot = ID_DIGITS;
    const size_t end = dot + 1 + RANDOM_DIGITS;
    uint64_t digits = 0;
    return strlen(name) == end + 4 && name[dot] == '.' && strcmp(name + end, ".tmp") == 0 &&
           tn_read_hex(name, 16, &digits) == TN_NUM_OK &&
           tn_read_hex(name + 16, 16, &digits) == TN_NUM_OK &&
           tn_read_hex(name + dot + 1, RANDOM_DIGITS, &digits) == TN_NUM_OK;
}

/* A process that writes there holds the lock. The export does not depend on this: no failure. */
static void remove_unfinished(const char *to, const char *name)
{
    tn_lock *lock = NULL;
    tn_error err = {0};
    char path[TN_PATH_SIZE];
    if (tn_path_join(to, name, path, &err) != TN_OK || tn_lock_folder(&lock, path, &err) != TN_OK) {
        return;
    }
    if (tn_remove_tree(path, &err) != TN_OK && tn_path_exists(path)) {
        tn_log(TN_LOG_WARN, "an unfinished export stays: %s", err.text);
    }
    tn_lock_release(lock);
}

tn_status tn_export_folder_sweep(const char *to, tn_error *err)
{
    tn_text names = {0};
    uint32_t n = 0;
    tn_status status = tn_dir_list(to, &names, &n, err);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        char path[TN_PATH_SIZE];
        if (is_unfinished(name)) {
            remove_unfinished(to, name);
        } else if (tn_is_unfinished(name, "LATEST") &&
                   tn_path_join(to, name, path, NULL) == TN_OK) {
            tn_unfinished_remove(path); /* another writer of it makes it anew */
        }
        name += strlen(name) + 1;
    }
    tn_text_done(&names);
    return status;
}

/* Makes d->tmp and locks it: d->made. Between the two, another process that sweeps may take the
 * lock and remove the folder; then d->made stays false. With `unlocked` a folder without a lock
 * will do, unless somebody holds its lock: where it cannot be locked, nobody removes folders. */
static tn_status make_locked(tn_export_folder *d, const char *to, const char *model_id,
                             bool unlocked, tn_error *err)
{
    char name[TN_PATH_SIZE];
    TN_ASSERT(d->lock == NULL && !d->made);
    (void)snprintf(name, sizeof name, "%s.%016llx.tmp", model_id,
                   (unsigned long long)tn_random_id());
    TN_TRY(tn_path_join(to, name, d->tmp, err));
    TN_TRY(tn_dir_make_new(d->tmp, err));
    const tn_status locked = tn_lock_folder(&d->lock, d->tmp, NULL);
    if (locked != TN_OK) {
        d->lock = NULL;
    }
    const bool will_do = locked == TN_OK || (unlocked && locked != TN_E_CKPT);
    d->made = tn_path_exists(d->tmp) && will_do;
    if (!d->made) {
        tn_lock_release(d->lock);
        d->lock = NULL;
        const tn_status removed = tn_remove_tree(d->tmp, NULL);
        (void)removed; /* it may be gone */
    }
    return TN_OK;
}

tn_status tn_export_folder_begin(tn_export_folder *d, const char *to, const char *model_id,
                                 tn_error *err)
{
    TN_ASSERT(tn_export_is_id(model_id));
    d->lock = NULL;
    d->made = false;
    TN_TRY(tn_output_check_folder(to, err));
    TN_TRY(tn_path_join(to, model_id, d->path, err));
    TN_TRY(tn_dir_make(to, err));
    TN_TRY(tn_export_folder_sweep(to, err));
    for (int attempt = 1; !d->made; attempt++) {
        TN_TRY(make_locked(d, to, model_id, attempt >= ATTEMPTS, err));
    }
    return TN_OK;
}

/* Whether two small files are equal; a missing one equals nothing. */
static bool same_index(const char *a, const char *b)
{
    const size_t most = (size_t)1 << 20;
    tn_text text[2] = {{0}, {0}};
    bool same = tn_file_read_all(a, most, &text[0], NULL) == TN_OK &&
                tn_file_read_all(b, most, &text[1], NULL) == TN_OK &&
                text[0].size == text[1].size &&
                memcmp(text[0].data, text[1].data, text[0].size) == 0;
    tn_text_done(&text[0]);
    tn_text_done(&text[1]);
    return same;
}

tn_status tn_export_folder_settle(tn_export_folder *d, bool *existed, tn_error *err)
{
    TN_ASSERT(d->made);
    char mine[TN_PATH_SIZE];
    char theirs[TN_PATH_SIZE];
    TN_TRY(tn_dir_sync(d->tmp, err));
    *existed = tn_path_exists(d->path);
    if (!*existed) {
        TN_TRY(tn_rename(d->tmp, d->path, err));
        d->made = false;
        return TN_OK;
    }
    TN_TRY(tn_path_join(d->tmp, "EXPORT.json", mine, err));
    TN_TRY(tn_path_join(d->path, "EXPORT.json", theirs, err));
    if (!same_index(mine, theirs)) {
        return tn_fail(err, TN_E_CKPT,
                       "'%s' is there already and not the same\nhint: remove it, or export to "
                       "another folder",
                       d->path);
    }
    TN_TRY(tn_remove_tree(d->tmp, err));
    d->made = false;
    return TN_OK;
}

void tn_export_folder_end(tn_export_folder *d, tn_error *err)
{
    if (d->made && tn_remove_tree(d->tmp, NULL) != TN_OK) {
        tn_error_context(err, "'%s' is left behind", d->tmp);
    }
    tn_lock_release(d->lock);
    d->lock = NULL;
    d->made = false;
}
