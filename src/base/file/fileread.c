/* fileread.c - reading: all of it, mapped, or in pieces. */
#include "base/file/file.h"
#include "base/file/fileio.h"

#include "base/core/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

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
    tn_free(piece);
    return status == TN_OK ? tn_text_check(out, path, err) : status;
}

tn_status tn_file_read_all(const char *path, size_t size_max, tn_text *out, tn_error *err)
{
    int fd;
    TN_TRY(tn_io_open(path, O_RDONLY, &fd, err));
    size_t before = out->size;
    tn_status status = read_pieces(fd, path, size_max, out, err);
    tn_io_drop(fd, path);
    if (status != TN_OK && before <= out->size) {
        out->size = before; /* an output is written on success only */
    }
    return status;
}

/* Opens a regular file and tells its size. */
static tn_status open_regular(const char *path, int *fd, uint64_t *size, tn_error *err)
{
    int opened;
    TN_TRY(tn_io_open(path, O_RDONLY, &opened, err));
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
    void *data = NULL;
    int failure = 0;
    if (size > 0) {
        data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        failure = data == MAP_FAILED ? errno : 0;
    }
    tn_io_drop(fd, path);
    if (failure != 0) {
        return tn_fail(err, TN_E_IO, "cannot map '%s': %s", path, strerrordesc_np(failure));
    }
    *out = (tn_map){.data = data, .size = (size_t)size};
    return TN_OK;
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
    tn_infile *f = tn_try_alloc(1, sizeof *f, "an open file", err);
    if (f == NULL) {
        return TN_E_MEMORY;
    }
    tn_status status = TN_OK;
    if (strlen(path) >= sizeof f->path) {
        status = tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                         path);
    } else {
        memcpy(f->path, path, strlen(path) + 1);
        status = open_regular(path, &f->fd, &f->size, err);
    }
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

void tn_infile_close(tn_infile *f)
{
    if (f != NULL) {
        tn_io_drop(f->fd, f->path);
        tn_free(f);
    }
}
