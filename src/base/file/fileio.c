/* fileio.c - system calls on files, with failpoints, errors in words, and a watcher for tests. */
#include "base/file/fileio.h"

#include "base/core/failpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#if defined(TN_FAILPOINTS)

/* State of test builds only. */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static tn_file_watch_fn *watcher; /* watch_lock */
static void *watcher_ctx;         /* watch_lock */

void tn_file_watch(tn_file_watch_fn *watch, void *ctx)
{
    pthread_mutex_lock(&watch_lock);
    watcher = watch;
    watcher_ctx = ctx;
    pthread_mutex_unlock(&watch_lock);
}

static void tell(const tn_file_op *op)
{
    pthread_mutex_lock(&watch_lock);
    if (watcher != NULL) {
        watcher(watcher_ctx, op);
    }
    pthread_mutex_unlock(&watch_lock);
}

#else

static void tell(const tn_file_op *op)
{
    (void)op;
}

#endif

/* Reports a refused call, and names the folder where that is what is missing. */
static tn_status refused(const char *verb, const char *path, int failure, tn_error *err)
{
    const char *name = strrchr(path, '/');
    char folder[4096] = "";
    if (failure == ENOENT && strcmp(verb, "create") == 0 && name != NULL &&
        (size_t)(name - path) < sizeof folder) {
        memcpy(folder, path, (size_t)(name - path));
    }
    if (folder[0] != '\0' && access(folder, F_OK) != 0) {
        return tn_fail(err, TN_E_IO,
                       "there is no folder '%s' to write into\nhint: 'mkdir -p %s' makes it",
                       folder, folder);
    }
    return tn_fail(err, TN_E_IO, "cannot %s '%s': %s", verb, path, strerrordesc_np(failure));
}

tn_status tn_io_ended(int failure, const char *verb, tn_file_op op, tn_error *err)
{
    if (failure != 0) {
        return refused(verb, op.path, failure, err);
    }
    tell(&op);
    return TN_OK;
}

int tn_io_injected(const char *point)
{
    int failure = tn_failpoint(point);
    return failure == TN_FAIL_SHORT ? 0 : failure;
}

tn_status tn_io_open(const char *path, int flags, mode_t mode, int *fd, tn_error *err)
{
    bool creates = (flags & O_CREAT) != 0;
    const char *verb = creates ? "create" : "open";
    int failure = tn_io_injected(creates ? "io.create" : "io.open");
    if (failure != 0) {
        return refused(verb, path, failure, err);
    }
    bool was_there = creates && access(path, F_OK) == 0;
    int opened;
    do {
        opened = open(path, flags | O_CLOEXEC, mode);
    } while (opened < 0 && errno == EINTR);
    if (opened < 0) {
        return refused(verb, path, errno, err);
    }
    if (creates && !was_there) {
        tell(&(tn_file_op){.kind = TN_FILE_CREATED, .path = path});
    }
    *fd = opened;
    return TN_OK;
}

/* Calls write(2) once, perhaps shortened by a failpoint. */
static ssize_t write_once(int fd, const char *data, size_t size)
{
    int failure = tn_failpoint("io.write");
    if (failure > 0) {
        errno = failure;
        return -1;
    }
    if (failure == TN_FAIL_SHORT && size > 1) {
        size /= 2;
    }
    return write(fd, data, size);
}

tn_status tn_io_write(int fd, const char *path, uint64_t at, const void *data, size_t size,
                      tn_error *err)
{
    const char *from = data;
    while (size > 0) {
        ssize_t n = write_once(fd, from, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return refused("write", path, n == 0 ? ENOSPC : errno, err);
        }
        size_t written = (size_t)n;
        TN_ASSERT(written <= size);
        tell(&(tn_file_op){
            .kind = TN_FILE_WRITTEN, .path = path, .at = at, .data = from, .size = written});
        from += written;
        at += written;
        size -= written;
    }
    return TN_OK;
}

void tn_io_start_writing(int fd, uint64_t at, uint64_t size)
{
    /* This is a hint: the fsync reports errors of the disk. */
    (void)sync_file_range(fd, (off_t)at, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

tn_status tn_io_read(int fd, const char *path, uint64_t at, void *data, size_t *size, tn_error *err)
{
    char *to = data;
    size_t got = 0;
    while (got < *size) {
        int failure = tn_io_injected("io.read");
        ssize_t n = -1;
        errno = failure;
        if (failure == 0) {
            n = pread(fd, to + got, *size - got, (off_t)(at + got));
        }
        if (n < 0 && errno == ESPIPE) { /* a pipe gives its bytes in order, and once */
            n = read(fd, to + got, *size - got);
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return refused("read", path, errno, err);
        }
        if (n == 0) {
            break;
        }
        TN_ASSERT((size_t)n <= *size - got);
        got += (size_t)n;
    }
    *size = got;
    return TN_OK;
}

tn_status tn_io_fsync(int fd, const char *path, tn_error *err)
{
    int failure = tn_io_injected("io.fsync");
    while (failure == 0 && fsync(fd) != 0) {
        failure = errno == EINTR ? 0 : errno; /* interrupted is not failed: nothing was dropped */
    }
    return tn_io_ended(failure, "sync", (tn_file_op){.kind = TN_FILE_SYNCED, .path = path}, err);
}

tn_status tn_io_truncate(int fd, const char *path, uint64_t size, tn_error *err)
{
    int failure = tn_io_injected("io.truncate");
    while (failure == 0 && ftruncate(fd, (off_t)size) != 0) {
        failure = errno == EINTR ? 0 : errno;
    }
    return tn_io_ended(failure, "truncate",
                       (tn_file_op){.kind = TN_FILE_TRUNCATED, .path = path, .at = size}, err);
}

tn_status tn_io_close(int fd, const char *path, tn_error *err)
{
    TN_ASSERT(fd >= 0);
    int failure = tn_io_injected("io.close");
    if (close(fd) != 0 && failure == 0 && errno != EINTR) { /* Linux has closed it even then */
        failure = errno;
    }
    return failure != 0 ? refused("close", path, failure, err) : TN_OK;
}

void tn_io_drop(int fd, const char *path)
{
    tn_status closed = tn_io_close(fd, path, NULL);
    (void)closed;
}

int tn_io_flock(int fd, int kind)
{
    TN_ASSERT(fd >= 0);
    int failure = EINTR;
    while (failure == EINTR) {
        failure = flock(fd, kind | LOCK_NB) != 0 ? errno : 0;
    }
    return failure;
}
