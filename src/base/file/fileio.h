/* fileio.h - the system calls under file.h, one function each. Only src/base/file*.c include this.
 * Each loops over EINTR, passes the failpoint "io.<call>" before the real call, words its own error
 * (TN_E_IO, "cannot <verb> '<path>': <reason>") and, in test builds, reports every change it made
 * to the watcher, in order and with the data, so that a replayer can build the directories that a
 * power cut might leave (test/support/crashlog.h).
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens with the flags of open(2), to which O_CLOEXEC is added, and the mode of a new file. */
tn_status tn_io_open(const char *path, int flags, mode_t mode, int *fd, tn_error *err) TN_MUST_USE;

/* Writes all of it at the descriptor's position, which is `at` bytes into the file. */
tn_status tn_io_write(int fd, const char *path, uint64_t at, const void *data, size_t size,
                      tn_error *err) TN_MUST_USE;

/* Reads up to `size` bytes from `at`, fewer only at the end of a file. Reads a pipe in order. */
tn_status tn_io_read(int fd, const char *path, uint64_t at, void *data, size_t *size,
                     tn_error *err) TN_MUST_USE;

/* Asks the disk to begin with these bytes; does not wait for it. */
void tn_io_start_writing(int fd, uint64_t at, uint64_t size);

tn_status tn_io_fsync(int fd, const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_io_truncate(int fd, const char *path, uint64_t size, tn_error *err) TN_MUST_USE;

/* Locks by `kind`, LOCK_EX or LOCK_SH; does not wait. Returns 0, or an errno: EWOULDBLOCK when it
 * is held. */
int tn_io_flock(int fd, int kind);
/* Closes the descriptor, which is gone whatever is returned. */
tn_status tn_io_close(int fd, const char *path, tn_error *err) TN_MUST_USE;
/* The same without a status: for files that were read, and for files that have failed already. */
void tn_io_drop(int fd, const char *path);

/* Makes a tn_file (file.h) from a descriptor that is open for writing, which it owns then, after a
 * failure too. A stream is neither synced nor removed: its bytes cannot be taken back. */
struct tn_file;
tn_status tn_file_take(struct tn_file **out, int fd, const char *path, bool stream,
                       tn_error *err) TN_MUST_USE;

typedef enum tn_file_op_kind {
    TN_FILE_CREATED,   /* by open; emptied when it was there */
    TN_FILE_WRITTEN,   /* data, size at `at` */
    TN_FILE_TRUNCATED, /* to `at` bytes */
    TN_FILE_SYNCED,    /* a file or a folder */
    TN_FILE_RENAMED,   /* path -> to */
    TN_FILE_UNLINKED,
    TN_DIR_MADE,
    TN_DIR_REMOVED,
} tn_file_op_kind;

typedef struct tn_file_op {
    tn_file_op_kind kind;
    const char *path; /* as the caller named it */
    const char *to;
    uint64_t at;
    const void *data;
    size_t size;
} tn_file_op;

/* Returns the errno of a failpoint, or 0: TN_FAIL_SHORT only makes sense for a write. */
int tn_io_injected(const char *point);
/* Words the failure of a call, an errno, or reports to the watcher what the call has done. */
tn_status tn_io_ended(int failure, const char *verb, tn_file_op op, tn_error *err) TN_MUST_USE;

#if defined(TN_FAILPOINTS)
/* `watch` is called under a lock after each successful change; NULL ends it. */
typedef void tn_file_watch_fn(void *ctx, const tn_file_op *op);
void tn_file_watch(tn_file_watch_fn *watch, void *ctx);
#endif
