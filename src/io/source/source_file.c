/* source_file.c - bytes of a file, or of a pipe with a name.
 *
 * A regular file never waits for long. Anything else may: it is opened without waiting for a
 * writer, and reads wait and look whether they should stop, as those of standard input.
 */
#include "base/core/alloc.h"
#include "base/core/failpoint.h"
#include "io/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file {
    int fd;
    const char *path;
    const atomic_bool *stop;
    bool waits;
} file;

static bool file_takes(const char *path)
{
    return strstr(path, "://") == NULL;
}

/* Whether reads from it may wait: all but regular files and what fails at once. */
static bool may_wait(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static tn_status file_open(void **state, const char *path, uint64_t from, const atomic_bool *stop,
                           tn_error *err)
{
    int fd = -1;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return tn_fail(err, errno == ENOENT || errno == EACCES ? TN_E_DATA : TN_E_IO,
                       "cannot open '%s': %s", path, strerrordesc_np(errno));
    }
    if (from > 0 && lseek(fd, (off_t)from, SEEK_SET) < 0) {
        tn_status status = tn_fail(err, TN_E_IO, "cannot read '%s' from byte %llu: %s", path,
                                   (unsigned long long)from, strerrordesc_np(errno));
        (void)close(fd);
        return status;
    }
    (void)posix_fadvise(fd, (off_t)from, 0, POSIX_FADV_SEQUENTIAL);
    file *f = tn_try_alloc(1, sizeof *f, "a file", err);
    if (f == NULL) {
        (void)close(fd);
        return TN_E_MEMORY;
    }
    *f = (file){.fd = fd, .path = path, .stop = stop, .waits = may_wait(fd)};
    *state = f;
    return TN_OK;
}

/* One read(2), perhaps failed or shortened by a failpoint. */
static ssize_t read_once(const file *f, void *data, size_t size)
{
    int failure = tn_failpoint("io.read_data");
    if (failure > 0) {
        errno = failure;
        return -1;
    }
    return read(f->fd, data, failure == TN_FAIL_SHORT && size > 1 ? size / 2 : size);
}

static tn_status file_read(void *state, void *data, size_t size, size_t *n, tn_error *err)
{
    const file *f = state;
    ssize_t got = -1;
    do {
        if (f->waits) {
            TN_TRY(tn_source_wait(f->fd, f->path, f->stop, err));
        }
        got = read_once(f, data, size);
    } while (got < 0 && (errno == EINTR || (f->waits && errno == EAGAIN)));
    if (got < 0) {
        return tn_fail(err, errno == EISDIR ? TN_E_DATA : TN_E_IO, "cannot read '%s': %s", f->path,
                       strerrordesc_np(errno));
    }
    *n = (size_t)got;
    return TN_OK;
}

static void file_close(void *state)
{
    file *f = state;
    (void)close(f->fd); /* nothing was written */
    tn_free(f);
}

extern const tn_source_kind tn_source_file;
const tn_source_kind tn_source_file = {
    .name = "file",
    .help = "a path",
    .takes = file_takes,
    .open = file_open,
    .read = file_read,
    .close = file_close,
};
