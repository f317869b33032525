/* fileappend.c - logs that grow by whole records. */
#include "base/file/file.h"
#include "base/file/fileio.h"

#include "base/core/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct tn_appender {
    int fd;
    uint64_t size; /* of the file: whole records */
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
    if (strlen(path) >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    tn_appender *a = tn_try_alloc(1, sizeof *a, "a log", err);
    if (a == NULL) {
        return TN_E_MEMORY;
    }
    memcpy(a->path, path, strlen(path) + 1);
    tn_status status = tn_io_open(path, O_RDWR | O_CREAT | O_APPEND, &a->fd, err);
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
    tn_status status = tn_io_write(a->fd, a->path, a->size, record, size, err);
    if (status == TN_OK) {
        a->size += size;
        return TN_OK;
    }
    /* A disk may have taken a part. Half a record would spoil the next one too. */
    tn_error later = {0};
    if (tn_io_truncate(a->fd, a->path, a->size, &later) != TN_OK) {
        tn_error_context(err, "%s", later.text);
    }
    return status;
}

uint64_t tn_append_size(const tn_appender *a)
{
    return a->size;
}

void tn_append_close(tn_appender *a)
{
    if (a != NULL) {
        tn_io_drop(a->fd, a->path); /* nobody was promised that the records are synced */
        tn_free(a);
    }
}
