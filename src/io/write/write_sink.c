/* write_sink.c - an output for written records, deflated on the way where asked for. */
#include "io/write/write_sink.h"

#include "base/core/alloc.h"
#include "base/file/output_file.h"
#include "io/schema/dataopts.h"

#include <string.h>

#define ZLIB_CONST /* input is const */
#include <zlib.h>

enum { OUT_BYTES = 1 << 16, LEVEL = 6, GZIP_WINDOW = 15 + 16, ZLIB_WINDOW = 15, MEMORY_LEVEL = 8 };

struct tn_sink {
    tn_output *file;
    bool compressed;
    z_stream z;
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
    if (asked != TN_COMPRESSION_AUTO) {
        return asked;
    }
    if (ends_with(path, ".gz")) {
        return TN_COMPRESSION_GZIP;
    }
    return ends_with(path, ".zz") ? TN_COMPRESSION_ZLIB : TN_COMPRESSION_NONE;
}

static tn_status begin(tn_sink *sink, uint32_t compression, tn_error *err)
{
    sink->compressed = compression == TN_COMPRESSION_GZIP || compression == TN_COMPRESSION_ZLIB;
    if (!sink->compressed) {
        return TN_OK;
    }
    int window = compression == TN_COMPRESSION_GZIP ? GZIP_WINDOW : ZLIB_WINDOW;
    if (deflateInit2(&sink->z, LEVEL, Z_DEFLATED, window, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        sink->compressed = false;
        return tn_fail(err, TN_E_MEMORY, "no memory to compress with");
    }
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

/* Runs what stands in z.next_in through the compressor; `flush` is zlib's. */
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
    if (sink->compressed) {
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
    if (sink->compressed) {
        (void)deflateEnd(&sink->z);
    }
    tn_output_abandon(sink->file);
    tn_free(sink);
}
