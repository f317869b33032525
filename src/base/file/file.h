/* file.h - everything that is written to disk goes through here.
 *
 * Durable files: create exclusively, write, fsync the descriptor that wrote,
 * close, rename, fsync the folder. Every call loops over short writes and EINTR,
 * checks close, and passes a failpoint (test builds) named "io.<call>"; a failed fsync or
 * close is never repeated: the file is removed and written anew under another name
 * by the caller. A script in .ci/ refuses any other open for writing in src/.
 *
 *     tn_file *f = NULL;
 *     TN_TRY(tn_file_create(&f, path, err));          O_CREAT|O_EXCL|O_CLOEXEC, 0644
 *     TN_TRY(tn_file_write(f, data, size, err));      buffered; after a failure: abandon
 *     TN_TRY(tn_file_commit(f, err));                 flush, fsync, close; frees f either way
 *
 * Errors are TN_E_IO with path and reason. One thread per handle, but tn_infile_read: any.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_PATH_SIZE = 4096 }; /* longest path and its NUL */

typedef struct tn_file tn_file;

tn_status tn_file_create(tn_file **out, const char *path, tn_error *err) TN_MUST_USE;
/* The same with mode 0600, for secrets: nobody else can have opened it. */
tn_status tn_file_create_private(tn_file **out, const char *path, tn_error *err) TN_MUST_USE;
/* Creates a file without a name, for data that is read again later (tn_file_map), on the disk of
 * `beside`. It disappears when it is abandoned or when the process ends. */
tn_status tn_file_create_nameless(tn_file **out, const char *beside, tn_error *err) TN_MUST_USE;
tn_status tn_file_write(tn_file *f, const void *data, size_t size, tn_error *err) TN_MUST_USE;
uint64_t tn_file_size(const tn_file *f); /* bytes written so far */
uint32_t tn_file_crc(const tn_file *f);  /* CRC-32C of them */
/* Flushes, syncs and closes. On failure the file is removed. */
tn_status tn_file_commit(tn_file *f, tn_error *err) TN_MUST_USE;
void tn_file_abandon(tn_file *f); /* closes and removes; NULL is fine */

/* A log that grows by whole records, one write(2) each: metrics.jsonl. A last line that was cut
 * by a crash first gets its newline. A record that cannot be written whole leaves no trace. */
typedef struct tn_appender tn_appender;
tn_status tn_append_open(tn_appender **out, const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_append(tn_appender *a, const void *record, size_t size, tn_error *err) TN_MUST_USE;
void tn_append_close(tn_appender *a); /* NULL is fine */

/* Replaces one small file by tmp, fsync, rename, fsync of the folder. */
tn_status tn_file_replace(const char *path, const void *data, size_t size,
                          tn_error *err) TN_MUST_USE;

/* Returns whether `name` is "<of>.<16 hex digits>.tmp", as unfinished things are named. */
enum { TN_UNFINISHED_TAIL = 21 };
bool tn_is_unfinished(const char *name, const char *of);

/* Makes a folder and its parents; it may exist. TN_E_USAGE: a name that no disk would take. */
tn_status tn_dir_make(const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_dir_make_new(const char *path, tn_error *err) TN_MUST_USE; /* one level; must not */
/* Makes one level with mode 0700. A folder that exists must belong to this user alone; a link is
 * not followed. */
tn_status tn_dir_make_private(const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_dir_sync(const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_rename(const char *from, const char *to,
                    tn_error *err) TN_MUST_USE; /* and sync parent */
/* Removes a file; a missing one counts as removed. Neither function syncs the parent: a crash may
 * undo a removal. */
tn_status tn_remove_file(const char *path, tn_error *err) TN_MUST_USE;
void tn_remove_in_handler(const char *path); /* for signal handlers: the system call alone */
tn_status tn_remove_tree(const char *path, tn_error *err) TN_MUST_USE; /* links are not followed */

/* Copies a folder with all files and folders in it to a new one, whose name appears when all of it
 * is on disk. Names that `takes` refuses, where it is not NULL, are left out at every level, and so
 * is what is neither file nor folder. TN_E_USAGE: `to` is there already. */
tn_status tn_copy_tree(const char *from, const char *to, bool (*takes)(const char *name),
                       tn_error *err) TN_MUST_USE;

/* Lists the names in a folder, sorted bytewise, each ended by NUL in `out`; *n is how many. */
tn_status tn_dir_list(const char *path, tn_text *out, uint32_t *n, tn_error *err) TN_MUST_USE;
tn_status tn_disk_free(const char *path, uint64_t *bytes, tn_error *err) TN_MUST_USE;
/* Fails with TN_E_IO when the disk of `path` has no room for so many bytes. */
tn_status tn_disk_need(const char *path, uint64_t bytes, tn_error *err) TN_MUST_USE;

/* Reads the whole file, at most size_max bytes (else TN_E_LIMIT). Appends to `out`. */
tn_status tn_file_read_all(const char *path, size_t size_max, tn_text *out,
                           tn_error *err) TN_MUST_USE;

/* A file mapped for reading; unmap with tn_unmap. An empty file maps to size 0. */
typedef struct tn_map {
    const char *data;
    size_t size;
} tn_map;
tn_status tn_map_file(tn_map *out, const char *path, tn_error *err) TN_MUST_USE;
void tn_unmap(tn_map *map);
/* Maps the bytes that were written to a nameless file so far. */
tn_status tn_file_map(tn_map *out, tn_file *f, tn_error *err) TN_MUST_USE;

/* A file read in pieces at any place. A failing disk is an error here, in a map it is SIGBUS. */
typedef struct tn_infile tn_infile;
tn_status tn_infile_open(tn_infile **out, const char *path, tn_error *err) TN_MUST_USE;
uint64_t tn_infile_size(const tn_infile *f); /* when it was opened */
const char *tn_infile_path(const tn_infile *f);
/* Reads exactly `size` bytes; fewer are TN_E_IO. */
tn_status tn_infile_read(const tn_infile *f, uint64_t at, void *data, size_t size,
                         tn_error *err) TN_MUST_USE;
/* Computes the CRC-32C of all its bytes. */
tn_status tn_infile_crc(const tn_infile *f, uint32_t *out, tn_error *err) TN_MUST_USE;
/* Computes a hash that differs between files whatever their names and times: *hash is the first 8
 * bytes of a SHA-256 over the file, of a long one over its head, its tail and samples at places
 * that its size decides. */
tn_status tn_infile_sample(const tn_infile *f, uint64_t *hash, tn_error *err) TN_MUST_USE;
void tn_infile_close(tn_infile *f); /* NULL is fine */

bool tn_path_exists(const char *path);
bool tn_path_is_dir(const char *path);
/* Writes "dir/name"; TN_E_LIMIT when too long. */
tn_status tn_path_join(const char *dir, const char *name, char out[TN_PATH_SIZE],
                       tn_error *err) TN_MUST_USE;

/* Fails with `code` when a path is too long with `more` bytes appended. */
tn_status tn_path_check(const char *path, size_t more, tn_status code, tn_error *err) TN_MUST_USE;
/* Writes the folder that holds `path`: "a/b" -> "a", "b" -> ".", "/b" -> "/". */
tn_status tn_path_parent(const char *path, char out[TN_PATH_SIZE], tn_error *err) TN_MUST_USE;

/* flock(LOCK_EX | LOCK_NB). Held: TN_E_CKPT "in use by pid P on host H", from the OWNER file beside
 * it. A killed holder loses it. */
typedef struct tn_lock tn_lock;
tn_status tn_lock_take(tn_lock **out, const char *dir, uint64_t session, tn_error *err) TN_MUST_USE;
/* The same lock on a folder itself, without an OWNER file. Held: TN_E_CKPT. */
tn_status tn_lock_folder(tn_lock **out, const char *dir, tn_error *err) TN_MUST_USE;
/* The same lock on the file dir/name, which is made and stays. Held: TN_E_CKPT. */
tn_status tn_lock_name(tn_lock **out, const char *dir, const char *name, tn_error *err) TN_MUST_USE;
/* Removes the entries of a locked folder whose names `is_ours` accepts, with their contents;
 * entries that changed after the lock was taken stay. */
tn_status tn_lock_sweep(const tn_lock *lock, const char *dir, bool (*is_ours)(const char *name),
                        tn_error *err) TN_MUST_USE;
void tn_lock_release(tn_lock *lock); /* NULL is fine */

/* Reports whether another process holds the lock right now; these functions create nothing, and the
 * answer may be old at once. tn_lock_look: the lock of tn_lock_take, TN_E_CKPT with its message
 * when it is held; tn_lock_is_held: the lock of tn_lock_name. */
tn_status tn_lock_look(const char *dir, tn_error *err) TN_MUST_USE;
bool tn_lock_is_held(const char *dir, const char *name);

/* Returns 64 bits from getrandom(2), never 0: for sessions, incarnations, run ids. */
uint64_t tn_random_id(void);
