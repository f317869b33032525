/* file.c - a file that is written once, from front to back, and then stands. */
#include "base/file.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* The disk begins to work after this many bytes, instead of at the fsync: a large file is written
 * while the next part of it is made. */
enum { BUFFER_BYTES = 256 << 10, AT_ONCE_BYTES = 8 << 20 };

struct tn_file {
    int fd;
    bool failed; /* the descriptor is worth nothing any more */
    uint32_t crc;
    uint64_t size;   /* bytes taken, buffered ones included */
    uint64_t begun;  /* of them, those that the disk was told to write */
    size_t buffered; /* at the end of them */
    char path[TN_PATH_SIZE];
    char buffer[BUFFER_BYTES];
};

typedef tn_status open_fn(const char *path, int flags, int *fd, tn_error *err);

static tn_status create(tn_file **out, const char *path, open_fn *open_new, tn_error *err)
{
    *out = NULL;
    if (strlen(path) >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    tn_file *f = tn_try_alloc(1, sizeof *f, "a file buffer", err);
    if (f == NULL) {
        return TN_E_MEMORY;
    }
    memcpy(f->path, path, strlen(path) + 1);
    tn_status status = open_new(path, O_WRONLY | O_CREAT | O_EXCL, &f->fd, err);
    if (status != TN_OK) {
        tn_free(f);
        return status;
    }
    *out = f;
    return TN_OK;
}

tn_status tn_file_create(tn_file **out, const char *path, tn_error *err)
{
    return create(out, path, tn_io_open, err);
}

tn_status tn_file_create_private(tn_file **out, const char *path, tn_error *err)
{
    return create(out, path, tn_io_open_private, err);
}

/* Writes what stands at the front of the file's untouched rest. */
static tn_status write_through(tn_file *f, uint64_t at, const void *data, size_t size,
                               tn_error *err)
{
    tn_status status = tn_io_write(f->fd, f->path, at, data, size, err);
    f->failed = f->failed || status != TN_OK;
    if (status == TN_OK && at + size - f->begun >= AT_ONCE_BYTES) {
        tn_io_start_writing(f->fd, f->begun, at + size - f->begun);
        f->begun = at + size;
    }
    return status;
}

static tn_status flush(tn_file *f, tn_error *err)
{
    size_t size = f->buffered;
    TN_ASSERT(size <= f->size);
    f->buffered = 0;
    return write_through(f, f->size - size, f->buffer, size, err);
}

tn_status tn_file_write(tn_file *f, const void *data, size_t size, tn_error *err)
{
    TN_ASSERT(f != NULL && !f->failed);
    if (size == 0) {
        return TN_OK;
    }
    if (size > sizeof f->buffer - f->buffered) {
        TN_TRY(flush(f, err));
    }
    if (size > sizeof f->buffer) {
        TN_TRY(write_through(f, f->size, data, size, err));
    } else {
        memcpy(f->buffer + f->buffered, data, size);
        f->buffered += size;
    }
    f->size += size;
    f->crc = tn_crc32c(f->crc, data, size);
    return TN_OK;
}

uint64_t tn_file_size(const tn_file *f)
{
    return f->size;
}

uint32_t tn_file_crc(const tn_file *f)
{
    return f->crc;
}

tn_status tn_file_commit(tn_file *f, tn_error *err)
{
    TN_ASSERT(!f->failed);
    tn_status status = flush(f, err);
    if (status == TN_OK) {
        status = tn_io_fsync(f->fd, f->path, err);
    }
    tn_error later = {0}; /* the first failure is the one to tell */
    tn_status closed = tn_io_close(f->fd, f->path, status == TN_OK ? err : &later);
    status = status == TN_OK ? closed : status;
    if (status != TN_OK && tn_io_unlink(f->path, &later) != TN_OK) {
        tn_error_context(err, "%s", later.text);
    }
    tn_free(f);
    return status;
}

void tn_file_abandon(tn_file *f)
{
    if (f == NULL) {
        return;
    }
    tn_io_drop(f->fd, f->path);
    tn_status removed = tn_io_unlink(f->path, NULL);
    (void)removed; /* what cannot be removed now is removed with its folder */
    tn_free(f);
}

static tn_status write_whole(const char *path, const void *data, size_t size, tn_error *err)
{
    tn_file *f = NULL;
    TN_TRY(tn_file_create(&f, path, err));
    tn_status status = tn_file_write(f, data, size, err);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    return tn_file_commit(f, err);
}

tn_status tn_file_replace(const char *path, const void *data, size_t size, tn_error *err)
{
    enum { ATTEMPTS = 2 }; /* after a failed fsync once more, under another name */
    char tmp[TN_PATH_SIZE];
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        int length =
            snprintf(tmp, sizeof tmp, "%s.%016llx.tmp", path, (unsigned long long)tn_random_id());
        if (length < 0 || (size_t)length >= sizeof tmp) {
            return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'",
                           TN_PATH_SIZE - 22, path);
        }
        status = write_whole(tmp, data, size, err);
        if (status == TN_OK) {
            break;
        }
    }
    TN_TRY(status);
    status = tn_rename(tmp, path, err);
    if (status != TN_OK) {
        tn_status removed = tn_remove_file(tmp, NULL);
        (void)removed; /* a folder's stale .tmp files are removed when it is taken */
    }
    return status;
}

bool tn_is_unfinished(const char *name, const char *of)
{
    enum { HEX = 16 };
    static const char hex[] = "0123456789abcdef";
    size_t size = strlen(of);
    return strncmp(name, of, size) == 0 && name[size] == '.' &&
           strspn(name + size + 1, hex) == HEX && strcmp(name + size + 1 + HEX, ".tmp") == 0;
}

uint64_t tn_random_id(void)
{
    uint64_t id = 0;
    while (id == 0) {
        ssize_t n = getrandom(&id, sizeof id, 0);
        TN_ASSERT(n == (ssize_t)sizeof id || errno == EINTR);
    }
    return id;
}
