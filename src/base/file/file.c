/* file.c - a file that is written once, from front to back, and then stands. */
#include "base/file/file.h"

#include "base/core/alloc.h"
#include "base/file/fileio.h"
#include "base/math/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* The disk begins to work after this many bytes, instead of at the fsync: a large file is written
 * while the next part of it is made. */
enum { BUFFER_BYTES = 256 << 10, AT_ONCE_BYTES = 8 << 20 };

struct tn_file {
    int fd;
    bool failed; /* the descriptor is worth nothing any more */
    bool stream; /* neither synced nor removed */
    uint32_t crc;
    uint64_t size;   /* bytes taken, buffered ones included */
    uint64_t begun;  /* of them, those that the disk was told to write */
    size_t buffered; /* at the end of them */
    char path[TN_PATH_SIZE];
    char buffer[BUFFER_BYTES];
};

tn_status tn_file_take(tn_file **out, int fd, const char *path, bool stream, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(strlen(path) < TN_PATH_SIZE);
    tn_file *f = tn_try_alloc(1, sizeof *f, "a file buffer", err);
    if (f == NULL) {
        tn_io_drop(fd, path);
        tn_status removed = stream ? TN_OK : tn_io_unlink(path, NULL);
        (void)removed;
        return TN_E_MEMORY;
    }
    memcpy(f->path, path, strlen(path) + 1);
    f->fd = fd;
    f->stream = stream;
    *out = f;
    return TN_OK;
}

typedef tn_status open_fn(const char *path, int flags, int *fd, tn_error *err);

/* "PATH.<16 hex>.tmp" */
static tn_status name_unfinished(const char *path, char out[TN_PATH_SIZE], tn_error *err)
{
    int length =
        snprintf(out, TN_PATH_SIZE, "%s.%016llx.tmp", path, (unsigned long long)tn_random_id());
    if (length < 0 || length >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 22,
                       path);
    }
    return TN_OK;
}

static tn_status create(tn_file **out, const char *path, open_fn *open_new, tn_error *err)
{
    *out = NULL;
    if (strlen(path) >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    int fd = -1;
    TN_TRY(open_new(path, O_WRONLY | O_CREAT | O_EXCL, &fd, err));
    return tn_file_take(out, fd, path, false, err);
}

tn_status tn_file_create(tn_file **out, const char *path, tn_error *err)
{
    return create(out, path, tn_io_open, err);
}

tn_status tn_file_create_private(tn_file **out, const char *path, tn_error *err)
{
    return create(out, path, tn_io_open_private, err);
}

/* It has a name for a moment, that of an unfinished file. */
tn_status tn_file_create_nameless(tn_file **out, const char *beside, tn_error *err)
{
    char path[TN_PATH_SIZE];
    int fd = -1;
    *out = NULL;
    TN_TRY(name_unfinished(beside, path, err));
    TN_TRY(tn_io_open(path, O_RDWR | O_CREAT | O_EXCL, &fd, err));
    tn_status status = tn_io_unlink(path, err);
    if (status != TN_OK) {
        tn_io_drop(fd, path);
        return status;
    }
    return tn_file_take(out, fd, path, true, err);
}

/* Writes what stands at the front of the file's untouched rest. */
static tn_status write_through(tn_file *f, uint64_t at, const void *data, size_t size,
                               tn_error *err)
{
    tn_status status = tn_io_write(f->fd, f->path, at, data, size, err);
    f->failed = f->failed || status != TN_OK;
    if (status == TN_OK && !f->stream && at + size - f->begun >= AT_ONCE_BYTES) {
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

tn_status tn_file_map(tn_map *out, tn_file *f, tn_error *err)
{
    *out = (tn_map){.data = ""};
    TN_TRY(flush(f, err));
    if (f->size == 0) {
        return TN_OK;
    }
    void *data = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, f->fd, 0);
    if (data == MAP_FAILED) {
        return tn_fail(err, TN_E_IO, "cannot map '%s': %s", f->path, strerrordesc_np(errno));
    }
    *out = (tn_map){data, f->size};
    return TN_OK;
}

tn_status tn_file_commit(tn_file *f, tn_error *err)
{
    TN_ASSERT(!f->failed);
    tn_status status = flush(f, err);
    if (status == TN_OK && !f->stream) {
        status = tn_io_fsync(f->fd, f->path, err);
    }
    tn_error later = {0}; /* the first failure is the one to tell */
    tn_status closed = tn_io_close(f->fd, f->path, status == TN_OK ? err : &later);
    status = status == TN_OK ? closed : status;
    if (status != TN_OK && !f->stream && tn_io_unlink(f->path, &later) != TN_OK) {
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
    tn_status removed = f->stream ? TN_OK : tn_io_unlink(f->path, NULL);
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
        TN_TRY(name_unfinished(path, tmp, err));
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
