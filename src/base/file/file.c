/* file.c - files: one that is written once, from front to back, and never changed again; logs that
 * grow by whole records; reading all of it, mapped, or in pieces. */
#include "base/file/file.h"

#include "base/core/alloc.h"
#include "base/file/fileio.h"
#include "base/math/crc32c.h"
#include "base/math/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Starts writing to disk after AT_ONCE_BYTES instead of at the fsync, so that the disk works while
 * the program makes the next part of a large file. */
enum { BUFFER_BYTES = 256 << 10, AT_ONCE_BYTES = 8 << 20 };

struct tn_file {
    int fd;
    bool failed; /* the descriptor must not be used any more */
    bool stream; /* neither synced nor removed */
    uint32_t crc;
    uint64_t size;   /* bytes taken, buffered ones included */
    uint64_t begun;  /* bytes that the disk was asked to write early */
    size_t buffered; /* bytes at the end of `size` that are still in the buffer */
    char path[TN_PATH_SIZE];
    char buffer[BUFFER_BYTES];
};

tn_status tn_file_take(tn_file **out, int fd, const char *path, bool stream, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(fd >= 0 && strlen(path) < TN_PATH_SIZE);
    tn_file *f = tn_try_alloc(1, sizeof *f, "a file buffer", err);
    if (f == NULL) {
        tn_io_drop(fd, path);
        tn_status removed = stream ? TN_OK : tn_remove_file(path, NULL);
        (void)removed;
        return TN_E_MEMORY;
    }
    memcpy(f->path, path, strlen(path) + 1);
    f->fd = fd;
    f->stream = stream;
    *out = f;
    return TN_OK;
}

/* Writes the name "PATH.<16 hex>.tmp". */
static tn_status name_unfinished(const char *path, char out[TN_PATH_SIZE], tn_error *err)
{
    TN_TRY(tn_path_check(path, TN_UNFINISHED_TAIL, TN_E_LIMIT, err));
    (void)snprintf(out, TN_PATH_SIZE, "%s.%016llx.tmp", path, (unsigned long long)tn_random_id());
    return TN_OK;
}

static tn_status create(tn_file **out, const char *path, mode_t mode, tn_error *err)
{
    *out = NULL;
    TN_TRY(tn_path_check(path, 0, TN_E_LIMIT, err));
    int fd = -1;
    TN_TRY(tn_io_open(path, O_WRONLY | O_CREAT | O_EXCL, mode, &fd, err));
    return tn_file_take(out, fd, path, false, err);
}

tn_status tn_file_create(tn_file **out, const char *path, tn_error *err)
{
    return create(out, path, 0644, err);
}

tn_status tn_file_create_private(tn_file **out, const char *path, tn_error *err)
{
    return create(out, path, 0600, err);
}

/* Gives the file the name of an unfinished file for a moment, then removes the name. */
tn_status tn_file_create_nameless(tn_file **out, const char *beside, tn_error *err)
{
    char path[TN_PATH_SIZE];
    int fd = -1;
    *out = NULL;
    TN_TRY(name_unfinished(beside, path, err));
    TN_TRY(tn_io_open(path, O_RDWR | O_CREAT | O_EXCL, 0644, &fd, err));
    tn_status status = tn_remove_file(path, err);
    if (status != TN_OK) {
        tn_io_drop(fd, path);
        return status;
    }
    return tn_file_take(out, fd, path, true, err);
}

/* Writes at offset `at` and asks the disk to begin. */
static tn_status write_through(tn_file *f, uint64_t at, const void *data, size_t size,
                               tn_error *err)
{
    TN_ASSERT(f->begun <= at);
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
    TN_ASSERT(data != NULL && f->buffered <= sizeof f->buffer);
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

/* Leaves *out as it is when there is nothing to map. */
static tn_status map_whole(tn_map *out, int fd, const char *path, uint64_t size, tn_error *err)
{
    void *data = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (data == MAP_FAILED) {
        return tn_fail(err, TN_E_IO, "cannot map '%s': %s", path, strerrordesc_np(errno));
    }
    if (size > 0) {
        *out = (tn_map){data, (size_t)size};
    }
    return TN_OK;
}

tn_status tn_file_map(tn_map *out, tn_file *f, tn_error *err)
{
    TN_ASSERT(f != NULL && !f->failed);
    *out = (tn_map){.data = ""};
    TN_TRY(flush(f, err));
    return map_whole(out, f->fd, f->path, f->size, err);
}

tn_status tn_file_commit(tn_file *f, tn_error *err)
{
    TN_ASSERT(!f->failed);
    tn_status status = flush(f, err);
    if (status == TN_OK && !f->stream) {
        status = tn_io_fsync(f->fd, f->path, err);
    }
    tn_error later = {0}; /* the first failure is the one that is reported */
    tn_status closed = tn_io_close(f->fd, f->path, status == TN_OK ? err : &later);
    status = status == TN_OK ? closed : status;
    if (status != TN_OK && !f->stream && tn_remove_file(f->path, &later) != TN_OK) {
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
    tn_status removed = f->stream ? TN_OK : tn_remove_file(f->path, NULL);
    (void)removed; /* if this fails, the file goes with its folder */
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
    enum {
        ATTEMPTS = 2
    }; /* after a failed fsync, or when somebody has swept the unfinished file */
    char tmp[TN_PATH_SIZE];
    tn_status status = TN_E_IO;
    for (uint32_t i = 0; i < ATTEMPTS && status != TN_OK; i++) {
        TN_TRY(name_unfinished(path, tmp, err));
        status = write_whole(tmp, data, size, err);
        if (status == TN_OK) {
            status = tn_rename(tmp, path, err);
            if (status != TN_OK) {
                tn_status removed = tn_remove_file(tmp, NULL);
                (void)removed; /* a folder's stale .tmp files are removed when it is taken */
            }
        }
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

/* ---- logs ---- */

struct tn_appender {
    int fd;
    uint64_t size; /* size of the file, which holds whole records */
    char path[TN_PATH_SIZE];
};

/* Adds the newline that a crash kept from the last line. */
static tn_status end_last_line(tn_appender *a, tn_error *err)
{
    struct stat st;
    if (fstat(a->fd, &st) != 0) {
        return tn_fail(err, TN_E_IO, "cannot read '%s': %s", a->path, strerrordesc_np(errno));
    }
    a->size = (uint64_t)st.st_size;
    if (a->size == 0 || !S_ISREG(st.st_mode)) {
        return TN_OK;
    }
    char last = '\n';
    size_t one = 1;
    TN_TRY(tn_io_read(a->fd, a->path, a->size - 1, &last, &one, err));
    return last == '\n' ? TN_OK : tn_append(a, "\n", 1, err);
}

tn_status tn_append_open(tn_appender **out, const char *path, tn_error *err)
{
    *out = NULL;
    TN_TRY(tn_path_check(path, 0, TN_E_LIMIT, err));
    tn_appender *a = NULL;
    TN_TRY(TN_ALLOC(a, 1, "a log", err));
    memcpy(a->path, path, strlen(path) + 1);
    tn_status status = tn_io_open(path, O_RDWR | O_CREAT | O_APPEND, 0644, &a->fd, err);
    if (status != TN_OK) {
        tn_free(a);
        return status;
    }
    status = end_last_line(a, err);
    if (status != TN_OK) {
        tn_append_close(a);
        return status;
    }
    *out = a;
    return TN_OK;
}

tn_status tn_append(tn_appender *a, const void *record, size_t size, tn_error *err)
{
    TN_ASSERT(size > 0 && record != NULL);
    tn_status status = tn_io_write(a->fd, a->path, a->size, record, size, err);
    if (status == TN_OK) {
        a->size += size;
        return TN_OK;
    }
    /* A disk may have taken a part of the record. Half a record would spoil the next one too. */
    tn_error later = {0};
    if (tn_io_truncate(a->fd, a->path, a->size, &later) != TN_OK) {
        tn_error_context(err, "%s", later.text);
    }
    return status;
}

void tn_append_close(tn_appender *a)
{
    if (a != NULL) {
        tn_io_drop(a->fd, a->path); /* no caller was promised that the records are synced */
        tn_free(a);
    }
}

/* ---- reading ---- */

enum { PIECE_BYTES = 256 << 10 };

/* Reads until the end, whatever the size said: pipes and /proc have none. */
static tn_status read_pieces(int fd, const char *path, size_t size_max, tn_text *out, tn_error *err)
{
    char *piece = tn_try_alloc(1, PIECE_BYTES, "a piece of a file", err);
    if (piece == NULL) {
        return TN_E_MEMORY;
    }
    tn_status status = TN_OK;
    size_t total = 0;
    size_t got = PIECE_BYTES;
    while (status == TN_OK && got == PIECE_BYTES) {
        status = tn_io_read(fd, path, total, piece, &got, err);
        if (status == TN_OK && got > size_max - total) {
            status = tn_fail(err, TN_E_LIMIT, "'%s' is larger than %zu bytes", path, size_max);
        }
        if (status == TN_OK) {
            tn_text_add(out, piece, got);
            total += got;
        }
    }
    TN_ASSERT(status != TN_OK || total <= size_max);
    tn_free(piece);
    return status == TN_OK ? tn_text_check(out, path, err) : status;
}

tn_status tn_file_read_all(const char *path, size_t size_max, tn_text *out, tn_error *err)
{
    int fd;
    TN_TRY(tn_io_open(path, O_RDONLY, 0, &fd, err));
    size_t before = out->size;
    tn_status status = read_pieces(fd, path, size_max, out, err);
    tn_io_drop(fd, path);
    if (status != TN_OK && before <= out->size) {
        out->size = before; /* an output is written on success only */
    }
    return status;
}

/* Opens a regular file and returns its size. */
static tn_status open_regular(const char *path, int *fd, uint64_t *size, tn_error *err)
{
    int opened;
    TN_TRY(tn_io_open(path, O_RDONLY, 0, &opened, err));
    struct stat st;
    int failure = fstat(opened, &st) != 0 ? errno : 0;
    if (failure != 0 || !S_ISREG(st.st_mode)) {
        tn_io_drop(opened, path);
        return tn_fail(err, TN_E_IO, "cannot read '%s': %s", path,
                       failure != 0 ? strerrordesc_np(failure) : "not a regular file");
    }
    *fd = opened;
    *size = (uint64_t)st.st_size;
    return TN_OK;
}

tn_status tn_map_file(tn_map *out, const char *path, tn_error *err)
{
    int fd = -1;
    uint64_t size = 0;
    TN_TRY(open_regular(path, &fd, &size, err));
    tn_map map = {0};
    tn_status status = map_whole(&map, fd, path, size, err);
    tn_io_drop(fd, path);
    if (status == TN_OK) {
        *out = map;
    }
    return status;
}

/* munmap takes what mmap gave, without the const that readers see. */
static void *without_const(const char *data)
{
    void *plain;
    memcpy(&plain, &data, sizeof plain);
    return plain;
}

void tn_unmap(tn_map *map)
{
    if (map->size > 0) {
        int failed = munmap(without_const(map->data), map->size);
        TN_ASSERT(failed == 0);
    }
    *map = (tn_map){0};
}

struct tn_infile {
    int fd;
    uint64_t size;
    char path[TN_PATH_SIZE];
};

tn_status tn_infile_open(tn_infile **out, const char *path, tn_error *err)
{
    *out = NULL;
    tn_infile *f = NULL;
    TN_TRY(tn_path_check(path, 0, TN_E_LIMIT, err));
    TN_TRY(TN_ALLOC(f, 1, "an open file", err));
    memcpy(f->path, path, strlen(path) + 1);
    tn_status status = open_regular(path, &f->fd, &f->size, err);
    if (status != TN_OK) {
        tn_free(f);
        return status;
    }
    *out = f;
    return TN_OK;
}

uint64_t tn_infile_size(const tn_infile *f)
{
    return f->size;
}

const char *tn_infile_path(const tn_infile *f)
{
    return f->path;
}

tn_status tn_infile_read(const tn_infile *f, uint64_t at, void *data, size_t size, tn_error *err)
{
    size_t got = size;
    TN_TRY(tn_io_read(f->fd, f->path, at, data, &got, err));
    if (got < size) {
        uint64_t end = at + got;
        return tn_fail(err, TN_E_IO, "'%s' ends at byte %llu, %llu more expected", f->path,
                       (unsigned long long)end, (unsigned long long)size - got);
    }
    return TN_OK;
}

tn_status tn_infile_crc(const tn_infile *f, uint32_t *out, tn_error *err)
{
    char *piece = NULL;
    tn_status status = TN_OK;
    TN_TRY(TN_ALLOC(piece, PIECE_BYTES, "bytes of a file", err));
    *out = 0;
    for (uint64_t at = 0, n; at < f->size && status == TN_OK; at += n) {
        n = f->size - at < PIECE_BYTES ? f->size - at : PIECE_BYTES;
        status = tn_infile_read(f, at, piece, (size_t)n, err);
        *out = status == TN_OK ? tn_crc32c(*out, piece, (size_t)n) : *out;
    }
    tn_free(piece);
    return status;
}

enum { END_BYTES = 16 << 10, SAMPLE_BYTES = 4 << 10, SAMPLES = 16 };

static tn_status add_piece(const tn_infile *f, uint64_t at, size_t size, tn_sha256 *h,
                           tn_error *err)
{
    char piece[END_BYTES];
    TN_ASSERT(size <= sizeof piece);
    TN_TRY(tn_infile_read(f, at, piece, size, err));
    tn_sha256_add(h, piece, size);
    return TN_OK;
}

/* Adds a short file whole, of a longer one both ends and samples at equal distances. */
static tn_status add_pieces(const tn_infile *f, uint64_t size, tn_sha256 *h, tn_error *err)
{
    const uint64_t whole = 2 * (uint64_t)END_BYTES + (uint64_t)SAMPLES * SAMPLE_BYTES;
    if (size <= whole) {
        for (uint64_t at = 0; at < size; at += END_BYTES) {
            const size_t n = size - at < END_BYTES ? (size_t)(size - at) : END_BYTES;
            TN_TRY(add_piece(f, at, n, h, err));
        }
        return TN_OK;
    }
    const uint64_t inner = size - 2 * (uint64_t)END_BYTES - SAMPLE_BYTES;
    TN_TRY(add_piece(f, 0, END_BYTES, h, err));
    for (uint64_t i = 0; i < SAMPLES; i++) {
        TN_TRY(add_piece(f, END_BYTES + inner / (SAMPLES - 1) * i, SAMPLE_BYTES, h, err));
    }
    return add_piece(f, size - END_BYTES, END_BYTES, h, err);
}

tn_status tn_infile_sample(const tn_infile *f, uint64_t *hash, tn_error *err)
{
    tn_sha256 h;
    tn_sha256_init(&h);
    const tn_status status = add_pieces(f, tn_infile_size(f), &h, err);
    *hash = tn_sha256_end64(&h);
    return status;
}

void tn_infile_close(tn_infile *f)
{
    if (f != NULL) {
        tn_io_drop(f->fd, f->path);
        tn_free(f);
    }
}
