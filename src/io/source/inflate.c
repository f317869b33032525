/* inflate.c - gzip and zlib, as a source on top of a source; and what the first bytes tell. */
#include "base/core/alloc.h"
#include "base/math/crc32c.h"
#include "io/schema/dataopts.h"
#include "io/source/source.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

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

tn_status tn_inflate(tn_source **source, uint32_t compression, tn_error *err)
{
    TN_ASSERT(compression == TN_COMPRESSION_GZIP || compression == TN_COMPRESSION_ZLIB);
    inflating *in = tn_try_alloc(1, sizeof *in, "a decompressor", err);
    if (in == NULL) {
        return TN_E_MEMORY;
    }
    in->under = *source;
    in->ended = true;
    in->compression = compression;
    int bits = compression == TN_COMPRESSION_GZIP ? WINDOW_BITS + GZIP_BITS : WINDOW_BITS;
    if (inflateInit2(&in->z, bits) != Z_OK) {
        tn_free(in);
        return tn_fail(err, TN_E_MEMORY, "no memory to inflate '%s'", tn_source_path(*source));
    }
    tn_source *on = NULL;
    tn_status status = tn_source_on(&on, &inflate_kind, in, *source, err);
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
