/* write_sink.c - an output for written records, deflated on the way where asked for. */
#include "io/write/write_sink.h"

#include "base/core/alloc.h"
#include "base/file/output_file.h"
#include "base/machine/library.h"
#include "io/schema/dataopts.h"

#include <string.h>
#include <zstd.h>

#define ZLIB_CONST /* input is const */
#include <zlib.h>

enum {
    OUT_BYTES = 1 << 16,
    LEVEL = 6,
    ZSTD_LEVEL = 3,
    GZIP_WINDOW = 15 + 16,
    ZLIB_WINDOW = 15,
    MEMORY_LEVEL = 8
};

/* Functions of libzstd, which is loaded when it is needed. */
typedef struct zstd_calls {
    ZSTD_CStream *(*create)(void);
    size_t (*drop)(ZSTD_CStream *);
    size_t (*init)(ZSTD_CStream *, int);
    size_t (*compress)(ZSTD_CStream *, ZSTD_outBuffer *, ZSTD_inBuffer *, ZSTD_EndDirective);
    unsigned (*is_error)(size_t);
} zstd_calls;

struct tn_sink {
    tn_output *file;
    bool compressed;
    z_stream z;
    zstd_calls zstd;
    ZSTD_CStream *stream; /* NULL: not zstd */
    unsigned char out[OUT_BYTES];
};

static bool ends_with(const char *path, const char *ending)
{
    size_t n = strlen(path);
    size_t m = strlen(ending);
    return n >= m && strcmp(path + n - m, ending) == 0;
}

static uint32_t compression_of(const char *path, uint32_t asked)
{
    static const struct {
        const char *ending;
        uint32_t compression;
    } known[] = {{".gz", TN_COMPRESSION_GZIP},
                 {".zz", TN_COMPRESSION_ZLIB},
                 {".zst", TN_COMPRESSION_ZSTD},
                 {".lz4", TN_COMPRESSION_LZ4},
                 {".sz", TN_COMPRESSION_SNAPPY}};
    if (asked != TN_COMPRESSION_AUTO) {
        return asked;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ends_with(path, known[i].ending)) {
            return known[i].compression;
        }
    }
    return TN_COMPRESSION_NONE;
}

static tn_status begin_zstd(tn_sink *sink, tn_error *err)
{
    static const tn_library_name name = {"libzstd.so.1", "zstd needs its library, which",
                                         "install libzstd1"};
    zstd_calls *z = &sink->zstd;
    const struct {
        const char *name;
        void *call;
    } calls[] = {{"ZSTD_createCStream", &z->create},
                 {"ZSTD_freeCStream", &z->drop},
                 {"ZSTD_initCStream", &z->init},
                 {"ZSTD_compressStream2", &z->compress},
                 {"ZSTD_isError", &z->is_error}};
    void *library = NULL;
    TN_TRY(tn_library_load(&library, &name, err));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        TN_TRY(tn_library_find(library, &name, calls[i].name, calls[i].call, err));
    }
    sink->stream = z->create();
    if (sink->stream == NULL || z->is_error(z->init(sink->stream, ZSTD_LEVEL)) != 0) {
        return tn_fail(err, TN_E_MEMORY, "no memory to compress with");
    }
    sink->compressed = true;
    return TN_OK;
}

static tn_status begin(tn_sink *sink, uint32_t compression, tn_error *err)
{
    const int window = compression == TN_COMPRESSION_GZIP ? GZIP_WINDOW : ZLIB_WINDOW;
    switch (compression) {
    case TN_COMPRESSION_NONE:
    case TN_COMPRESSION_CONTAINER: /* the writer of the format packs */
        return TN_OK;
    case TN_COMPRESSION_ZSTD:
        return begin_zstd(sink, err);
    case TN_COMPRESSION_LZ4:
    case TN_COMPRESSION_SNAPPY:
        return tn_fail(err, TN_E_CONFIG,
                       "lz4 and snappy are read, but not written\nhint: .gz, .zz and .zst are");
    default:
        break;
    }
    if (deflateInit2(&sink->z, LEVEL, Z_DEFLATED, window, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        return tn_fail(err, TN_E_MEMORY, "no memory to compress with");
    }
    sink->compressed = true;
    return TN_OK;
}

tn_status tn_sink_open(tn_sink **out, const char *path, const tn_output_with *with,
                       uint32_t compression, tn_error *err)
{
    *out = NULL;
    tn_sink *sink = tn_alloc(1, sizeof *sink, "an output file");
    tn_status status = tn_output_open(&sink->file, path, with, err);
    if (status == TN_OK) {
        status = begin(sink, compression_of(path, compression), err);
    }
    if (status != TN_OK) {
        tn_sink_abandon(sink);
        return status;
    }
    *out = sink;
    return TN_OK;
}

const char *tn_sink_tmp(const tn_sink *sink)
{
    return tn_output_tmp(sink->file);
}

tn_status tn_sink_expect(const tn_sink *sink, uint64_t bytes, tn_error *err)
{
    return sink->compressed ? TN_OK : tn_output_expect(sink->file, bytes, err);
}

/* Runs `from` through the compressor, and with ZSTD_e_end what it has kept. */
static tn_status zstd_all(tn_sink *sink, ZSTD_inBuffer from, ZSTD_EndDirective end, tn_error *err)
{
    size_t left = 0;
    do {
        ZSTD_outBuffer to = {.dst = sink->out, .size = OUT_BYTES};
        left = sink->zstd.compress(sink->stream, &to, &from, end);
        if (sink->zstd.is_error(left) != 0) {
            return tn_fail(err, TN_E_MEMORY, "no memory to compress with");
        }
        TN_TRY(tn_output_write(sink->file, sink->out, to.pos, err));
    } while (from.pos < from.size || (end == ZSTD_e_end && left > 0));
    return TN_OK;
}

/* Compresses the bytes at z.next_in; `flush` is zlib's. */
static tn_status deflate_all(tn_sink *sink, int flush, tn_error *err)
{
    do {
        sink->z.next_out = sink->out;
        sink->z.avail_out = OUT_BYTES;
        int done = deflate(&sink->z, flush);
        TN_ASSERT(done != Z_STREAM_ERROR);
        TN_TRY(tn_output_write(sink->file, sink->out, OUT_BYTES - sink->z.avail_out, err));
    } while (sink->z.avail_out == 0);
    return TN_OK;
}

tn_status tn_sink_add(tn_sink *sink, const void *data, size_t size, tn_error *err)
{
    if (!sink->compressed) {
        return tn_output_write(sink->file, data, size, err);
    }
    if (sink->stream != NULL) {
        return zstd_all(sink, (ZSTD_inBuffer){.src = data, .size = size}, ZSTD_e_continue, err);
    }
    const unsigned char *at = data;
    while (size > 0) {
        uInt piece = size > (1U << 30) ? 1U << 30 : (uInt)size;
        sink->z.next_in = at;
        sink->z.avail_in = piece;
        TN_TRY(deflate_all(sink, Z_NO_FLUSH, err));
        at += piece;
        size -= piece;
    }
    return TN_OK;
}

tn_status tn_sink_commit(tn_sink *sink, tn_error *err)
{
    tn_status status = TN_OK;
    if (sink->stream != NULL) {
        status = zstd_all(sink, (ZSTD_inBuffer){0}, ZSTD_e_end, err);
    } else if (sink->compressed) {
        sink->z.avail_in = 0;
        status = deflate_all(sink, Z_FINISH, err);
    }
    if (status == TN_OK) {
        tn_output *file = sink->file;
        sink->file = NULL; /* gone either way */
        status = tn_output_commit(file, err);
    }
    tn_sink_abandon(sink);
    return status;
}

void tn_sink_abandon(tn_sink *sink)
{
    if (sink == NULL) {
        return;
    }
    if (sink->stream != NULL) {
        (void)sink->zstd.drop(sink->stream);
    } else if (sink->compressed) {
        (void)deflateEnd(&sink->z);
    }
    tn_output_abandon(sink->file);
    tn_free(sink);
}
