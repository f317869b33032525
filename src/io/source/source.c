/* source.c - bytes of files, of standard input, of objects and of producers, decompressed where
 * they are compressed.
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
#include "io/source/decompress.h"
#include "io/source/producer.h"
#include "io/source/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLICE_MS = 50 };

struct tn_source {
    const char *path;
    bool once; /* standard input */
    int fd;
    bool waits;                  /* a read may */
    tn_remote_stream *remote;    /* NULL: `fd`, or the producer */
    const tn_producer *producer; /* NULL: none */
    void *pass;                  /* the producer's */
    const atomic_bool *stop;     /* NULL: nobody asks */
    tn_lane *lane;               /* NULL: not recorded */
    uint64_t taken;              /* off the file */
    char ahead[TN_PEEK_MAX];     /* peeked at, not yet taken */
    size_t ahead_from;
    size_t ahead_to;
    const tn_container *container;
    uint64_t record_max;
    tn_decompressor *decompressor; /* NULL: bytes are those of the file */
};

static const char *name_of(const tn_source *s)
{
    return s->once ? "standard input" : s->path;
}

bool tn_source_is_once(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Whether reads from it may wait: all but regular files and what fails at once. */
static bool may_wait(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static tn_status open_file(tn_source *s, uint64_t from, tn_error *err)
{
    if (s->producer != NULL) {
        TN_ASSERT(from == 0);
        s->fd = -1;
        return s->producer->open(s->producer->arg, &s->pass, err);
    }
    do {
        s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (s->fd < 0 && errno == EINTR);
    if (s->fd < 0) {
        return tn_fail(err, errno == ENOENT || errno == EACCES ? TN_E_DATA : TN_E_IO,
                       "cannot open '%s': %s", s->path, strerrordesc_np(errno));
    }
    if (from > 0 && lseek(s->fd, (off_t)from, SEEK_SET) < 0) {
        return tn_fail(err, TN_E_IO, "cannot read '%s' from byte %llu: %s", s->path,
                       (unsigned long long)from, strerrordesc_np(errno));
    }
    (void)posix_fadvise(s->fd, (off_t)from, 0, POSIX_FADV_SEQUENTIAL);
    s->waits = may_wait(s->fd);
    return TN_OK;
}

tn_status tn_source_open(tn_source **out, const char *path, uint64_t from, const atomic_bool *stop,
                         tn_error *err)
{
    const bool once = tn_source_is_once(path);
    *out = NULL;
    TN_ASSERT(!once || from == 0);
    tn_source *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a source", err));
    *s = (tn_source){.path = path,
                     .once = once,
                     .fd = STDIN_FILENO,
                     .waits = true,
                     .stop = stop,
                     .taken = from,
                     .producer = tn_producer_of(path)};
    tn_status status = once ? TN_OK : open_file(s, from, err);
    if (status != TN_OK) {
        tn_source_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

tn_status tn_source_open_object(tn_source **out, tn_remote *remote, const tn_remote_object *object,
                                uint64_t from, const atomic_bool *stop, tn_error *err)
{
    tn_source *s = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a source", err));
    *s = (tn_source){.path = object->uri, .fd = -1, .stop = stop, .taken = from};
    tn_status status = tn_remotes()->stream_open(&s->remote, remote, object, from, stop, err);
    if (status != TN_OK) {
        tn_source_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_source_until(tn_source *source, uint64_t until)
{
    if (source->remote != NULL) {
        tn_remotes()->stream_until(source->remote, until);
    }
}

void tn_source_close(tn_source *source)
{
    if (source == NULL) {
        return;
    }
    tn_decompressor_free(source->decompressor);
    if (source->remote != NULL) {
        tn_remotes()->stream_close(source->remote);
    }
    if (source->pass != NULL) {
        source->producer->close(source->pass);
    }
    if (source->fd >= 0 && !source->once) {
        (void)close(source->fd); /* nothing was written */
    }
    tn_free(source);
}

void tn_source_trace(tn_source *source, tn_lane *lane)
{
    source->lane = lane;
}

static tn_status wait_for(const tn_source *s, tn_error *err)
{
    struct pollfd waited = {.fd = s->fd, .events = POLLIN};
    for (;;) {
        if (s->stop != NULL && atomic_load(s->stop)) {
            return tn_fail(err, TN_E_STOPPED, "stopped while waiting for '%s'", name_of(s));
        }
        int ready = poll(&waited, 1, SLICE_MS);
        if (ready > 0) {
            return TN_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return tn_fail(err, TN_E_IO, "cannot wait for '%s': %s", name_of(s),
                           strerrordesc_np(errno));
        }
    }
}

/* One read(2), perhaps failed or shortened by a failpoint. */
static ssize_t read_once(const tn_source *s, void *data, size_t size)
{
    int failure = s->once ? 0 : tn_failpoint("io.read_data");
    if (failure > 0) {
        errno = failure;
        return -1;
    }
    return read(s->fd, data, failure == TN_FAIL_SHORT && size > 1 ? size / 2 : size);
}

/* At least 1 byte of the file, at most `size`; 0: the end. */
static tn_status file_read(const tn_source *s, void *data, size_t size, size_t *n, tn_error *err)
{
    ssize_t got = -1;
    if (s->remote != NULL) {
        return tn_remotes()->stream_read(s->remote, data, size, n, err);
    }
    if (s->producer != NULL) {
        return s->producer->read(s->pass, data, size, n, err);
    }
    do {
        if (s->waits) {
            TN_TRY(wait_for(s, err));
        }
        got = read_once(s, data, size);
    } while (got < 0 && (errno == EINTR || (s->waits && errno == EAGAIN)));
    if (got < 0) {
        const char *quote = s->once ? "" : "'";
        return tn_fail(err, errno == EISDIR && !s->once ? TN_E_DATA : TN_E_IO,
                       "cannot read %s%s%s: %s", quote, name_of(s), quote, strerrordesc_np(errno));
    }
    *n = (size_t)got;
    return TN_OK;
}

/* Is tn_decompress_from.read: reads bytes of the file. */
static tn_status read_compressed(void *arg, void *data, size_t size, size_t *n, tn_error *err);

/* Fills `data` from the file, or with what is inflated; fewer bytes only at the end. */
static tn_status read_some(tn_source *s, bool inflated, char *data, size_t size, size_t *n,
                           tn_error *err)
{
    *n = 0;
    while (*n < size) {
        size_t got = 0;
        if (s->stop != NULL &&
            atomic_load(s->stop)) { /* a record may be looked for through terabytes */
            return tn_fail(err, TN_E_STOPPED, "stopped while reading '%s'", s->path);
        }
        const tn_decompress_from from = {read_compressed, s};
        TN_TRY(inflated
                   ? tn_decompressor_read(s->decompressor, &from, data + *n, size - *n, &got, err)
                   : file_read(s, data + *n, size - *n, &got, err));
        if (got == 0) {
            break;
        }
        *n += got;
        s->taken += inflated ? 0 : got;
    }
    return TN_OK;
}

static tn_status read_traced(tn_source *s, bool inflated, char *data, size_t size, size_t *n,
                             tn_error *err)
{
    tn_span_begin(s->lane, inflated ? TN_PHASE_INFLATE : TN_PHASE_READ);
    tn_status status = read_some(s, inflated, data, size, n, err);
    tn_span_end(s->lane);
    *n = status == TN_OK ? *n : 0;
    return status;
}

/* Reads bytes of the file; those that were peeked at come first. */
static tn_status read_file(tn_source *s, void *data, size_t size, size_t *n, tn_error *err)
{
    size_t have = s->ahead_to - s->ahead_from;
    have = have < size ? have : size;
    if (have > 0) {
        memcpy(data, s->ahead + s->ahead_from, have);
        s->ahead_from += have;
    }
    *n = have;
    if (have == size) {
        return TN_OK;
    }
    size_t more = 0;
    tn_status status = read_traced(s, false, (char *)data + have, size - have, &more, err);
    *n += more;
    return status;
}

static tn_status read_compressed(void *arg, void *data, size_t size, size_t *n, tn_error *err)
{
    return read_file(arg, data, size, n, err);
}

tn_status tn_source_read(tn_source *source, void *data, size_t size, size_t *n, tn_error *err)
{
    return source->decompressor != NULL ? read_traced(source, true, data, size, n, err)
                                        : read_file(source, data, size, n, err);
}

tn_status tn_source_peek(tn_source *source, tn_bytes *out, tn_error *err)
{
    TN_ASSERT(source->decompressor == NULL && source->ahead_to == 0);
    TN_TRY(read_some(source, false, source->ahead, TN_PEEK_MAX, &source->ahead_to, err));
    *out = (tn_bytes){source->ahead, source->ahead_to, false};
    return TN_OK;
}

uint64_t tn_source_taken(const tn_source *source)
{
    return source->taken;
}

const char *tn_source_path(const tn_source *source)
{
    return source->path;
}

void tn_source_set_container(tn_source *source, const tn_container *container, uint64_t record_max)
{
    source->container = container;
    source->record_max = record_max;
}

tn_status tn_source_decompress(tn_source *source, uint32_t compression, tn_error *err)
{
    return tn_decompressor_new(&source->decompressor, compression, source->container,
                               source->record_max, source->path, err);
}

/* ---- the compression by the first bytes ---- */

static bool begins_with(tn_bytes first, const char *mark, size_t size)
{
    return first.size >= size && memcmp(first.data, mark, size) == 0;
}

/* Passes over leading frames that decoders of zstd and lz4 skip, such as that of pzstd, as far as
 * they are there. */
static tn_bytes behind_skipped(tn_bytes first, bool *skipped)
{
    enum { HEAD = 8 };
    while (first.size >= HEAD && (tn_load_u32(first.data) & ~UINT32_C(15)) == 0x184d2a50) {
        const uint64_t size = HEAD + (uint64_t)tn_load_u32(first.data + 4);
        *skipped = true;
        (void)tn_get(&first, size < first.size ? (size_t)size : first.size);
    }
    return first;
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
        uint32_t compression; /* NONE: TNet does not read it */
        const char *name;     /* its name, if it is not read; `hint` makes a file that is */
        const char *hint;
    } known[] = {
        {"\x1f\x8b\x08", 3, TN_COMPRESSION_GZIP, NULL, NULL},
        {"\x28\xb5\x2f\xfd", 4, TN_COMPRESSION_ZSTD, NULL, NULL},
        {"\x04\x22\x4d\x18", 4, TN_COMPRESSION_LZ4, NULL, NULL},
        {"\xff\x06\x00\x00sNaPpY", 10, TN_COMPRESSION_SNAPPY, NULL, NULL},
        {"PAR1", 4, TN_COMPRESSION_NONE, "parquet",
         "pandas.read_parquet(FILE).to_csv(..) writes it as csv"},
        {"BZh", 3, TN_COMPRESSION_NONE, "bzip2", "bzcat FILE | gzip -c > NAME.gz"},
        {"\xfd"
         "7zXZ",
         6, TN_COMPRESSION_NONE, "xz", "xzcat FILE | gzip -c > NAME.gz"},
        {"PK\x03\x04", 4, TN_COMPRESSION_NONE, "a zip archive",
         "unzip -p FILE NAME > NAME; of an .xlsx: save it as csv"},
    };
    *out = TN_COMPRESSION_NONE;
    if (binary && is_record_header(first)) {
        return TN_OK;
    }
    if (binary && first.size >= 2 && (first.data[0] & 0x0f) == 8 &&
        ((unsigned char)first.data[0] * 256U + (unsigned char)first.data[1]) % 31 == 0) {
        *out = TN_COMPRESSION_ZLIB;
        return TN_OK;
    }
    bool skipped = false;
    first = behind_skipped(first, &skipped);
    *out = skipped ? TN_COMPRESSION_ZSTD : TN_COMPRESSION_NONE; /* unless lz4 is seen */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (begins_with(first, known[i].mark, known[i].size)) {
            *out = known[i].compression;
            return known[i].name == NULL
                       ? TN_OK
                       : tn_fail(err, TN_E_DATA, "'%s' is %s, which TNet does not read\nhint: %s",
                                 path, known[i].name, known[i].hint);
        }
    }
    return TN_OK;
}
