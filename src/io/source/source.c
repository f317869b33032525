/* source.c - bytes of files and of standard input, inflated where they are compressed: opening,
 * peeking and reading.
 *
 * A regular file never waits for long. Standard input, a pipe with a name and the like may be
 * silent: they are opened without waiting for a writer, and their reads wait in slices and look
 * whether they should stop.
 */
#include "io/source/source.h"

#include "base/core/alloc.h"
#include "base/core/failpoint.h"
#include "base/math/crc32c.h"
#include "base/trace/trace.h"
#include "io/schema/dataopts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { SLICE_MS = 50 };

struct tn_source {
    const tn_source_kind *kind;
    void *state;
    const char *path;
    tn_source *under; /* owned; NULL: this is the bottom */
    uint64_t taken;
    char ahead[TN_PEEK_MAX]; /* peeked at, not yet taken */
    size_t ahead_from;
    size_t ahead_to;
    const atomic_bool *stop; /* NULL: nobody asks */
    tn_lane *lane;           /* NULL: not recorded */
};

static tn_status wait_for(int fd, const char *name, const atomic_bool *stop, tn_error *err)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    for (;;) {
        if (stop != NULL && atomic_load(stop)) {
            return tn_fail(err, TN_E_STOPPED, "stopped while waiting for '%s'", name);
        }
        int ready = poll(&waited, 1, SLICE_MS);
        if (ready > 0) {
            return TN_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return tn_fail(err, TN_E_IO, "cannot wait for '%s': %s", name, strerrordesc_np(errno));
        }
    }
}

/* ---- a file, or a pipe with a name ---- */

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
            TN_TRY(wait_for(f->fd, f->path, f->stop, err));
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

static const tn_source_kind file_source = {
    .takes = file_takes,
    .open = file_open,
    .read = file_read,
    .close = file_close,
};

/* ---- standard input, named '-' ---- */

typedef struct input {
    const atomic_bool *stop;
} input;

static bool stdin_takes(const char *path)
{
    return strcmp(path, "-") == 0;
}

static tn_status stdin_open(void **state, const char *path, uint64_t from, const atomic_bool *stop,
                            tn_error *err)
{
    (void)path;
    if (from != 0) {
        return tn_fail(err, TN_E_DATA, "standard input cannot be read from the middle");
    }
    input *in = NULL;
    TN_TRY(TN_ALLOC(in, 1, "standard input", err));
    in->stop = stop;
    *state = in;
    return TN_OK;
}

static tn_status stdin_read(void *state, void *data, size_t size, size_t *n, tn_error *err)
{
    input *in = state;
    for (;;) {
        TN_TRY(wait_for(STDIN_FILENO, "standard input", in->stop, err));
        ssize_t got = read(STDIN_FILENO, data, size);
        if (got >= 0) {
            *n = (size_t)got;
            return TN_OK;
        }
        if (errno != EINTR && errno != EAGAIN) {
            return tn_fail(err, TN_E_IO, "cannot read standard input: %s", strerrordesc_np(errno));
        }
    }
}

static void stdin_close(void *state)
{
    tn_free(state);
}

static const tn_source_kind stdin_source = {
    .once = true,
    .takes = stdin_takes,
    .open = stdin_open,
    .read = stdin_read,
    .close = stdin_close,
};

/* ---- any source ---- */

/* The first that takes a path reads it. */
static const tn_source_kind *const all_sources[] = {&stdin_source, &file_source, NULL};

tn_status tn_source_find(const char *path, const tn_source_kind **out, tn_error *err)
{
    for (uint32_t i = 0; all_sources[i] != NULL; i++) {
        if (all_sources[i]->takes(path)) {
            *out = all_sources[i];
            return TN_OK;
        }
    }
    const char *colon = strstr(path, "://");
    return tn_fail(err, TN_E_DATA, "this build cannot read from %.*s://",
                   colon != NULL ? (int)(colon - path) : 0, path);
}

tn_status tn_source_open(tn_source **out, const char *path, uint64_t from, const atomic_bool *stop,
                         tn_error *err)
{
    *out = NULL;
    const tn_source_kind *kind = NULL;
    TN_TRY(tn_source_find(path, &kind, err));
    TN_ASSERT(kind != NULL);
    tn_source *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a source", err));
    s->kind = kind;
    s->path = path;
    s->taken = from;
    s->stop = stop;
    tn_status status = kind->open(&s->state, path, from, stop, err);
    if (status != TN_OK) {
        tn_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_source_close(tn_source *source)
{
    while (source != NULL) {
        tn_source *under = source->under;
        source->kind->close(source->state);
        tn_free(source);
        source = under;
    }
}

void tn_source_trace(tn_source *source, tn_lane *lane)
{
    for (tn_source *s = source; s != NULL; s = s->under) {
        s->lane = lane;
    }
}

static tn_status read_some(tn_source *s, char *data, size_t size, size_t *n, tn_error *err)
{
    *n = 0;
    while (*n < size) {
        size_t got = 0;
        if (s->stop != NULL &&
            atomic_load(s->stop)) { /* a record may be looked for through terabytes */
            return tn_fail(err, TN_E_STOPPED, "stopped while reading '%s'", s->path);
        }
        TN_TRY(s->kind->read(s->state, data + *n, size - *n, &got, err));
        if (got == 0) {
            break;
        }
        *n += got;
        s->taken += got;
    }
    return TN_OK;
}

tn_status tn_source_read(tn_source *source, void *data, size_t size, size_t *n, tn_error *err)
{
    size_t have = source->ahead_to - source->ahead_from;
    have = have < size ? have : size;
    if (have > 0) {
        memcpy(data, source->ahead + source->ahead_from, have);
        source->ahead_from += have;
    }
    *n = have;
    if (have == size) {
        return TN_OK;
    }
    size_t more = 0;
    tn_span_begin(source->lane, source->under != NULL ? TN_PHASE_INFLATE : TN_PHASE_READ);
    tn_status status = read_some(source, (char *)data + have, size - have, &more, err);
    tn_span_end(source->lane);
    *n = status == TN_OK ? have + more : *n;
    return status;
}

tn_status tn_source_peek(tn_source *source, tn_bytes *out, tn_error *err)
{
    if (source->ahead_from > 0) {
        memmove(source->ahead, source->ahead + source->ahead_from,
                source->ahead_to - source->ahead_from);
        source->ahead_to -= source->ahead_from;
        source->ahead_from = 0;
    }
    size_t n = 0;
    TN_TRY(read_some(source, source->ahead + source->ahead_to, TN_PEEK_MAX - source->ahead_to, &n,
                     err));
    source->ahead_to += n;
    *out = (tn_bytes){source->ahead, source->ahead_to, false};
    return TN_OK;
}

uint64_t tn_source_taken(const tn_source *source)
{
    while (source->under != NULL) {
        source = source->under;
    }
    return source->taken;
}

const char *tn_source_path(const tn_source *source)
{
    return source->path;
}

/* ---- gzip and zlib, as a source on top of a source; and what the first bytes tell ---- */

enum { INPUT_BYTES = 1 << 18, WINDOW_BITS = 15, GZIP_BITS = 16 };

typedef struct inflating {
    z_stream z;
    tn_source *under; /* owned by the tn_source */
    uint32_t compression;
    uint32_t members; /* begun so far */
    bool ended;       /* behind the trailer of a member, or in front of the first */
    bool source_ended;
    unsigned char input[INPUT_BYTES];
} inflating;

static tn_status damaged(const inflating *in, const char *how, tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "%s:@%llu: error: %s %s stream", tn_source_path(in->under),
                   (unsigned long long)(tn_source_taken(in->under) - in->z.avail_in), how,
                   in->compression == TN_COMPRESSION_GZIP ? "gzip" : "zlib");
}

static tn_status refill(inflating *in, tn_error *err)
{
    if (in->z.avail_in > 0 || in->source_ended) {
        return TN_OK;
    }
    size_t n = 0;
    TN_TRY(tn_source_read(in->under, in->input, sizeof in->input, &n, err));
    in->source_ended = n < sizeof in->input;
    in->z.next_in = in->input;
    in->z.avail_in = (uInt)n;
    return TN_OK;
}

/* Behind a member: the next one, or the end of the file. */
static tn_status next_member(inflating *in, bool *over, tn_error *err)
{
    *over = in->z.avail_in == 0;
    if (*over) {
        return TN_OK;
    }
    if (in->compression == TN_COMPRESSION_ZLIB && in->members > 0) {
        return damaged(in, "something stands behind the", err);
    }
    if (inflateReset(&in->z) != Z_OK) {
        return damaged(in, "cannot go on in the", err);
    }
    in->ended = false;
    in->members = 1;
    return TN_OK;
}

static tn_status inflate_read(void *state, void *data, size_t size, size_t *n, tn_error *err)
{
    inflating *in = state;
    uInt room = size < UINT_MAX ? (uInt)size : UINT_MAX;
    in->z.next_out = data;
    in->z.avail_out = room;
    while (in->z.avail_out == room) {
        TN_TRY(refill(in, err));
        if (in->ended) {
            bool over = false;
            TN_TRY(next_member(in, &over, err));
            if (over) {
                break;
            }
        }
        if (in->z.avail_in == 0) {
            return damaged(in, "truncated", err);
        }
        int result = inflate(&in->z, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR) {
            return tn_fail(err, TN_E_MEMORY, "no memory to inflate '%s'",
                           tn_source_path(in->under));
        }
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
            return damaged(in, "corrupt", err);
        }
        in->ended = result == Z_STREAM_END;
    }
    *n = room - in->z.avail_out;
    return TN_OK;
}

static void inflate_close(void *state)
{
    inflating *in = state;
    (void)inflateEnd(&in->z);
    tn_free(in);
}

static const tn_source_kind inflate_kind = {
    .once = true,
    .read = inflate_read,
    .close = inflate_close,
};

/* A source of `kind` on top of `under`. */
static tn_status source_on(tn_source **out, const tn_source_kind *kind, void *state,
                           tn_source *under, tn_error *err)
{
    tn_source *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a source", err));
    s->kind = kind;
    s->state = state;
    s->path = under->path;
    s->stop = under->stop;
    s->under = under;
    *out = s;
    return TN_OK;
}

tn_status tn_inflate(tn_source **source, uint32_t compression, tn_error *err)
{
    TN_ASSERT(compression == TN_COMPRESSION_GZIP || compression == TN_COMPRESSION_ZLIB);
    inflating *in = NULL;
    TN_TRY(TN_ALLOC(in, 1, "a decompressor", err));
    in->under = *source;
    in->ended = true;
    in->compression = compression;
    int bits = compression == TN_COMPRESSION_GZIP ? WINDOW_BITS + GZIP_BITS : WINDOW_BITS;
    if (inflateInit2(&in->z, bits) != Z_OK) {
        tn_free(in);
        return tn_fail(err, TN_E_MEMORY, "no memory to inflate '%s'", tn_source_path(*source));
    }
    tn_source *on = NULL;
    tn_status status = source_on(&on, &inflate_kind, in, *source, err);
    if (status != TN_OK) {
        inflate_close(in);
        return status;
    }
    *source = on;
    return TN_OK;
}

static bool begins_with(tn_bytes first, const char *mark, size_t size)
{
    return first.size >= size && memcmp(first.data, mark, size) == 0;
}

static bool is_record_header(tn_bytes first)
{
    return first.size >= 12 &&
           tn_crc_mask(tn_crc32c(0, first.data, 8)) == tn_load_u32(first.data + 8);
}

tn_status tn_compression_of(tn_bytes first, bool binary, const char *path, uint32_t *out,
                            tn_error *err)
{
    static const struct {
        const char *mark;
        size_t size;
        const char *name;
    } others[] = {
        {"\x28\xb5\x2f\xfd", 4, "zstd"},
        {"\x04\x22\x4d\x18", 4, "lz4"},
        {"PAR1", 4, "parquet"},
        {"BZh", 3, "bzip2"},
        {"\xfd"
         "7zXZ",
         6, "xz"},
    };
    *out = TN_COMPRESSION_NONE;
    if (binary && is_record_header(first)) {
        return TN_OK;
    }
    if (begins_with(first, "\x1f\x8b\x08", 3)) {
        *out = TN_COMPRESSION_GZIP;
        return TN_OK;
    }
    if (binary && first.size >= 2 && (first.data[0] & 0x0f) == 8 &&
        ((unsigned char)first.data[0] * 256U + (unsigned char)first.data[1]) % 31 == 0) {
        *out = TN_COMPRESSION_ZLIB;
        return TN_OK;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (begins_with(first, others[i].mark, others[i].size)) {
            return tn_fail(err, TN_E_DATA, "'%s' is %s, which TNet does not read", path,
                           others[i].name);
        }
    }
    return TN_OK;
}
