/* decompress.c - a loop of refill and step around the libraries that take compressions off. */
#include "io/source/decompress.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/failpoint.h"
#include "base/machine/library.h"
#include "base/math/crc32c.h"
#include "io/schema/dataopts.h"

#include <isa-l/igzip_lib.h>
#include <limits.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { INPUT_BYTES = 1 << 18, WINDOW_BITS = 15, GZIP_BITS = 16 };

typedef struct codec {
    /* The decompressor's state, ready for a member; on failure no `end` is needed. */
    tn_status (*begin)(tn_decompressor *d, tn_error *err);
    void (*end)(tn_decompressor *d); /* NULL: nothing but memory */
    /* Makes ready for another member; NULL: nothing to do. */
    tn_unpacked (*again)(tn_decompressor *d);
    /* Takes bytes of `in` from `at` on, puts *made into `out`; TN_UNPACKED_END: a member has ended.
     */
    tn_unpacked (*step)(tn_decompressor *d, unsigned char *out, size_t room, size_t *made);
} codec;

struct tn_decompressor {
    const char *path;
    uint32_t compression;
    const tn_container *container; /* NULL: none */
    uint64_t record_max;
    const codec *codec;
    void *state; /* the codec's */
    uint32_t n;  /* members begun */
    bool ended;  /* between two members, or before the first */
    bool source_ended;
    uint64_t before; /* bytes of the source before `in` */
    size_t at, to;
    unsigned char in[INPUT_BYTES];
};

/* A codec's state begins with the functions of its library; FIND in a list of them finds each. */
#define MEMBER(name) __typeof__ (&(name))(name);
#define FIND(name) TN_TRY(tn_library_find(library, &of, #name, &s->name, err));

/* Allocates the codec's state, zeroed, and loads its library. The caller frees the state, also on
 * failure. */
static tn_status make_state(tn_decompressor *d, size_t size, const tn_library_name *of,
                            void **library, tn_error *err)
{
    char *state = NULL;
    TN_TRY(TN_ALLOC(state, size, "a decompressor", err));
    d->state = state;
    return tn_library_load(library, of, err);
}

static tn_status no_memory(const tn_decompressor *d, tn_error *err)
{
    return tn_fail(err, TN_E_MEMORY, "no memory to decompress '%s'", d->path);
}

/* ---- gzip and zlib by libisal ---- */

#define ISAL_CALLS(CALL) CALL(isal_inflate_init) CALL(isal_inflate_reset) CALL(isal_inflate)

typedef struct isal {
    ISAL_CALLS(MEMBER)
    struct inflate_state z;
} isal;

static tn_status isal_begin(tn_decompressor *d, tn_error *err)
{
    static const tn_library_name of = {"libisal.so.2", "gzip", "install libisal2"};
    void *library = NULL;
    if (tn_failpoint("library.isal") > 0) {
        return tn_fail(err, TN_E_CONFIG, "libisal is taken for missing");
    }
    TN_TRY(make_state(d, sizeof(isal), &of, &library, err));
    isal *s = d->state;
    ISAL_CALLS(FIND)
    s->isal_inflate_init(&s->z);
    s->z.crc_flag = d->compression == TN_COMPRESSION_GZIP ? ISAL_GZIP : ISAL_ZLIB;
    return TN_OK;
}

static tn_unpacked isal_again(tn_decompressor *d)
{
    isal *s = d->state;
    s->isal_inflate_reset(&s->z);
    return TN_UNPACKED_SOME;
}

static tn_unpacked isal_step(tn_decompressor *d, unsigned char *out, size_t room, size_t *made)
{
    isal *s = d->state;
    const uint32_t most = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
    s->z.next_in = d->in + d->at;
    s->z.avail_in = (uint32_t)(d->to - d->at);
    s->z.next_out = out;
    s->z.avail_out = most;
    const int result = s->isal_inflate(&s->z);
    d->at = d->to - s->z.avail_in;
    *made = most - s->z.avail_out;
    if (result < 0 || result == ISAL_NEED_DICT) {
        return TN_UNPACKED_CORRUPT;
    }
    if (s->z.block_state != ISAL_BLOCK_FINISH) {
        return TN_UNPACKED_SOME;
    }
    /* it reads 8 bytes at a time, as many as gzip's trailer has, but not zlib's */
    return s->z.read_in_length >= 8 ? TN_UNPACKED_TOO_MUCH : TN_UNPACKED_END;
}

static const codec isal_codec = {isal_begin, NULL, isal_again, isal_step};

/* ---- gzip and zlib by zlib ---- */

static tn_status zlib_begin(tn_decompressor *d, tn_error *err)
{
    z_stream *z = NULL;
    const int bits = d->compression == TN_COMPRESSION_GZIP ? WINDOW_BITS + GZIP_BITS : WINDOW_BITS;
    TN_TRY(TN_ALLOC(z, 1, "a decompressor", err));
    d->state = z;
    return inflateInit2(z, bits) == Z_OK ? TN_OK : no_memory(d, err);
}

static void zlib_end(tn_decompressor *d)
{
    (void)inflateEnd(d->state);
}

static tn_unpacked zlib_again(tn_decompressor *d)
{
    return inflateReset(d->state) == Z_OK ? TN_UNPACKED_SOME : TN_UNPACKED_CORRUPT;
}

static tn_unpacked zlib_step(tn_decompressor *d, unsigned char *out, size_t room, size_t *made)
{
    z_stream *z = d->state;
    const uInt most = room < UINT_MAX ? (uInt)room : UINT_MAX;
    z->next_in = d->in + d->at;
    z->avail_in = (uInt)(d->to - d->at);
    z->next_out = out;
    z->avail_out = most;
    const int result = inflate(z, Z_NO_FLUSH);
    d->at = d->to - z->avail_in;
    *made = most - z->avail_out;
    if (result == Z_MEM_ERROR) {
        return TN_UNPACKED_NO_MEMORY;
    }
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return TN_UNPACKED_CORRUPT;
    }
    return result == Z_STREAM_END ? TN_UNPACKED_END : TN_UNPACKED_SOME;
}

static const codec zlib_codec = {zlib_begin, zlib_end, zlib_again, zlib_step};

/* ---- zstd ---- */

#define ZSTD_CALLS(CALL)                                                                           \
    CALL(ZSTD_createDStream)                                                                       \
    CALL(ZSTD_freeDStream) CALL(ZSTD_decompressStream) CALL(ZSTD_isError) CALL(ZSTD_getErrorCode)

typedef struct zstd {
    ZSTD_CALLS(MEMBER)
    ZSTD_DStream *stream;
} zstd;

static tn_status zstd_begin(tn_decompressor *d, tn_error *err)
{
    static const tn_library_name of = {"libzstd.so.1", "zstd needs its library, which",
                                       "install libzstd1"};
    void *library = NULL;
    TN_TRY(make_state(d, sizeof(zstd), &of, &library, err));
    zstd *s = d->state;
    ZSTD_CALLS(FIND)
    s->stream = s->ZSTD_createDStream();
    return s->stream != NULL ? TN_OK : no_memory(d, err);
}

static void zstd_end(tn_decompressor *d)
{
    zstd *s = d->state;
    (void)s->ZSTD_freeDStream(s->stream);
}

// NOLINTNEXTLINE(readability-non-const-parameter): libzstd writes to it
static tn_unpacked zstd_step(tn_decompressor *d, unsigned char *out, size_t room, size_t *made)
{
    zstd *s = d->state;
    ZSTD_inBuffer from = {.src = d->in, .size = d->to, .pos = d->at};
    ZSTD_outBuffer to = {.dst = out, .size = room};
    const size_t result = s->ZSTD_decompressStream(s->stream, &to, &from);
    d->at = from.pos;
    *made = to.pos;
    if (s->ZSTD_isError(result) == 0) {
        return result == 0 ? TN_UNPACKED_END : TN_UNPACKED_SOME;
    }
    switch ((int)s->ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return TN_UNPACKED_NO_MEMORY;
    case ZSTD_error_frameParameter_windowTooLarge:
        return TN_UNPACKED_WINDOW;
    default:
        return TN_UNPACKED_CORRUPT;
    }
}

static const codec zstd_codec = {zstd_begin, zstd_end, NULL, zstd_step};

/* ---- lz4 ---- */

#define LZ4_CALLS(CALL)                                                                            \
    CALL(LZ4F_createDecompressionContext)                                                          \
    CALL(LZ4F_freeDecompressionContext)                                                            \
    CALL(LZ4F_decompress) CALL(LZ4F_isError) CALL(LZ4F_getErrorName)

typedef struct lz4 {
    LZ4_CALLS(MEMBER)
    LZ4F_dctx *context;
} lz4;

static tn_status lz4_begin(tn_decompressor *d, tn_error *err)
{
    static const tn_library_name of = {"liblz4.so.1", "lz4 needs its library, which",
                                       "install liblz4-1"};
    void *library = NULL;
    TN_TRY(make_state(d, sizeof(lz4), &of, &library, err));
    lz4 *s = d->state;
    LZ4_CALLS(FIND)
    const size_t made = s->LZ4F_createDecompressionContext(&s->context, LZ4F_VERSION);
    return s->LZ4F_isError(made) == 0 ? TN_OK : no_memory(d, err);
}

static void lz4_end(tn_decompressor *d)
{
    lz4 *s = d->state;
    (void)s->LZ4F_freeDecompressionContext(s->context);
}

static tn_unpacked lz4_step(tn_decompressor *d, unsigned char *out, size_t room, size_t *made)
{
    lz4 *s = d->state;
    size_t taken = d->to - d->at;
    *made = room;
    const size_t result = s->LZ4F_decompress(s->context, out, made, d->in + d->at, &taken, NULL);
    if (s->LZ4F_isError(result) != 0) {
        const bool memory = strcmp(s->LZ4F_getErrorName(result), "ERROR_allocation_failed") == 0;
        *made = 0;
        return memory ? TN_UNPACKED_NO_MEMORY : TN_UNPACKED_CORRUPT;
    }
    d->at += taken;
    return result == 0 ? TN_UNPACKED_END : TN_UNPACKED_SOME;
}

static const codec lz4_codec = {lz4_begin, lz4_end, NULL, lz4_step};

/* ---- snappy, framed ---- */

enum {
    CHUNK_HEAD = 4, /* u8 kind, u24 bytes that follow */
    CHUNK_CRC = 4,  /* masked, of the plain bytes */
    CHUNK_PLAIN = 1 << 16,
    CHUNK_BYTES = 32 + CHUNK_PLAIN + CHUNK_PLAIN / 6, /* snappy_max_compressed_length */
    KIND_COMPRESSED = 0,
    KIND_PLAIN = 1,
    KIND_SKIPPABLE = 0x80,
    KIND_BEGIN = 0xff
};

static const char snappy_mark[] = "sNaPpY";

#define SNAPPY_CALLS(CALL) CALL(snappy_uncompressed_length) CALL(snappy_uncompress)

typedef struct snappy {
    SNAPPY_CALLS(MEMBER)
    bool begun;      /* the mark was there */
    size_t have;     /* bytes of the chunk, its head included */
    size_t skip;     /* bytes left of a chunk that is passed over */
    size_t from, to; /* range of `plain` that is not handed out yet */
    char chunk[CHUNK_HEAD + CHUNK_CRC + CHUNK_BYTES];
    char plain[CHUNK_PLAIN];
} snappy;

static tn_status snappy_begin(tn_decompressor *d, tn_error *err)
{
    static const tn_library_name of = {"libsnappy.so.1", "snappy needs its library, which",
                                       "install libsnappy1v5"};
    void *library = NULL;
    TN_TRY(make_state(d, sizeof(snappy), &of, &library, err));
    snappy *s = d->state;
    SNAPPY_CALLS(FIND)
    return TN_OK;
}

static size_t chunk_size(const snappy *s)
{
    const unsigned char *head = (const unsigned char *)s->chunk;
    return (size_t)head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16;
}

/* A whole chunk: its bytes, if any, become `plain`. */
static tn_unpacked open_chunk(snappy *s)
{
    const unsigned char kind = (unsigned char)s->chunk[0];
    const size_t size = chunk_size(s);
    const char *body = s->chunk + CHUNK_HEAD;
    s->have = 0;
    if (kind == KIND_BEGIN) {
        s->begun = true;
        return memcmp(body, snappy_mark, size) == 0 ? TN_UNPACKED_SOME : TN_UNPACKED_CORRUPT;
    }
    size_t n = size - CHUNK_CRC;
    if (kind == KIND_PLAIN) {
        memcpy(s->plain, body + CHUNK_CRC, n);
    } else if (s->snappy_uncompressed_length(body + CHUNK_CRC, size - CHUNK_CRC, &n) != SNAPPY_OK ||
               n > CHUNK_PLAIN ||
               s->snappy_uncompress(body + CHUNK_CRC, size - CHUNK_CRC, s->plain, &n) !=
                   SNAPPY_OK) {
        return TN_UNPACKED_CORRUPT;
    }
    s->from = 0;
    s->to = n;
    return tn_crc_mask(tn_crc32c(0, s->plain, n)) == tn_load_u32(body) ? TN_UNPACKED_SOME
                                                                       : TN_UNPACKED_CORRUPT;
}

/* Checks whether a chunk with this head may be here. */
static tn_unpacked check_head(snappy *s)
{
    const unsigned char kind = (unsigned char)s->chunk[0];
    const size_t size = chunk_size(s);
    if (!s->begun && kind != KIND_BEGIN) {
        return TN_UNPACKED_CORRUPT;
    }
    if (kind == KIND_COMPRESSED || kind == KIND_PLAIN) {
        const size_t most = kind == KIND_PLAIN ? CHUNK_PLAIN : CHUNK_BYTES;
        return size >= CHUNK_CRC && size <= CHUNK_CRC + most ? TN_UNPACKED_SOME
                                                             : TN_UNPACKED_CORRUPT;
    }
    if (kind == KIND_BEGIN) {
        return size == strlen(snappy_mark) ? TN_UNPACKED_SOME : TN_UNPACKED_CORRUPT;
    }
    s->skip = size; /* padding, or for other programs */
    s->have = 0;
    return kind >= KIND_SKIPPABLE ? TN_UNPACKED_SOME : TN_UNPACKED_CORRUPT;
}

/* Bytes of the source to the chunk until it has `size`; whether it has. */
static bool gather(tn_decompressor *d, snappy *s, size_t size)
{
    size_t n = size - s->have;
    n = n < d->to - d->at ? n : d->to - d->at;
    memcpy(s->chunk + s->have, d->in + d->at, n);
    s->have += n;
    d->at += n;
    return s->have == size;
}

/* The next chunk as far as the source has it. */
static tn_unpacked take_chunk(tn_decompressor *d, snappy *s)
{
    if (s->skip > 0) {
        const size_t n = s->skip < d->to - d->at ? s->skip : d->to - d->at;
        s->skip -= n;
        d->at += n;
        return TN_UNPACKED_SOME;
    }
    if (s->have < CHUNK_HEAD) {
        return gather(d, s, CHUNK_HEAD) ? check_head(s) : TN_UNPACKED_SOME;
    }
    return gather(d, s, CHUNK_HEAD + chunk_size(s)) ? open_chunk(s) : TN_UNPACKED_SOME;
}

static tn_unpacked snappy_step(tn_decompressor *d, unsigned char *out, size_t room, size_t *made)
{
    snappy *s = d->state;
    *made = 0;
    while (s->from == s->to && d->at < d->to) {
        const tn_unpacked o = take_chunk(d, s);
        if (o != TN_UNPACKED_SOME) {
            return o;
        }
    }
    *made = s->to - s->from < room ? s->to - s->from : room;
    memcpy(out, s->plain + s->from, *made);
    s->from += *made;
    /* it may end after any chunk */
    return s->from == s->to && s->have == 0 && s->skip == 0 ? TN_UNPACKED_END : TN_UNPACKED_SOME;
}

static const codec snappy_codec = {snappy_begin, NULL, NULL, snappy_step};

/* ---- a container ---- */

static tn_status container_begin(tn_decompressor *d, tn_error *err)
{
    return d->container->open(&d->state, d->record_max, err);
}

static void container_end(tn_decompressor *d)
{
    d->container->close(d->state);
}

static tn_unpacked container_step(tn_decompressor *d, unsigned char *out, size_t room, size_t *made)
{
    tn_bytes in = {(const char *)d->in + d->at, d->to - d->at, false};
    const tn_unpacked result = d->container->step(d->state, &in, out, room, made);
    d->at = d->to - in.size;
    return result;
}

static const codec container_codec = {container_begin, container_end, NULL, container_step};

/* ---- all of them ---- */

const char *tn_compression_name(uint32_t compression)
{
    static const char *const names[] = {"gzip", "zlib", "zstd", "lz4", "snappy"};
    TN_ASSERT(compression >= TN_COMPRESSION_GZIP && compression <= TN_COMPRESSION_SNAPPY);
    return names[compression - TN_COMPRESSION_GZIP];
}

tn_status tn_decompressor_new(tn_decompressor **out, uint32_t compression,
                              const tn_container *container, uint64_t record_max, const char *path,
                              tn_error *err)
{
    static const codec *const codecs[] = {&isal_codec, &isal_codec,   &zstd_codec,
                                          &lz4_codec,  &snappy_codec, &container_codec};
    tn_decompressor *d = NULL;
    TN_ASSERT(compression >= TN_COMPRESSION_GZIP && compression <= TN_COMPRESSION_CONTAINER);
    TN_ASSERT((container != NULL) == (compression == TN_COMPRESSION_CONTAINER));
    *out = NULL;
    TN_TRY(TN_ALLOC(d, 1, "a decompressor", err));
    d->path = path;
    d->compression = compression;
    d->container = container;
    d->record_max = record_max;
    d->codec = codecs[compression - TN_COMPRESSION_GZIP];
    d->ended = true;
    tn_status status = d->codec->begin(d, err);
    if (status == TN_E_CONFIG && d->codec == &isal_codec) { /* it is not installed */
        tn_free(d->state);
        d->state = NULL;
        d->codec = &zlib_codec;
        status = d->codec->begin(d, err);
    }
    if (status != TN_OK) {
        tn_free(d->state);
        tn_free(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

void tn_decompressor_free(tn_decompressor *d)
{
    if (d != NULL) {
        if (d->codec->end != NULL) {
            d->codec->end(d);
        }
        tn_free(d->state);
        tn_free(d);
    }
}

static tn_status damaged(const tn_decompressor *d, const char *how, tn_error *err)
{
    const uint64_t place = d->before + d->at;
    return tn_fail(err, TN_E_DATA, "%s:@%llu: error: %s %s stream", d->path,
                   (unsigned long long)place, how,
                   d->container != NULL ? d->container->name : tn_compression_name(d->compression));
}

static tn_status failed(const tn_decompressor *d, tn_unpacked o, tn_error *err)
{
    static const char *const how[] = {[TN_UNPACKED_CORRUPT] = "corrupt",
                                      [TN_UNPACKED_WINDOW] = "window of more than 128 MB in the",
                                      [TN_UNPACKED_TOO_MUCH] = "something stands behind the"};
    if (o == TN_UNPACKED_TOO_LARGE) {
        const uint64_t at = d->before + d->at;
        return tn_fail(
            err, TN_E_DATA,
            "%s:@%llu: error: a block of more than data.record_bytes_max (%llu)\nhint: a "
            "block of %s, which holds many rows, is unpacked as a whole",
            d->path, (unsigned long long)at, (unsigned long long)d->record_max, d->container->name);
    }
    return o == TN_UNPACKED_NO_MEMORY
               ? tn_fail(err, TN_E_MEMORY, "no memory to decompress '%s'", d->path)
               : damaged(d, how[o], err);
}

static tn_status refill(tn_decompressor *d, const tn_decompress_from *from, tn_error *err)
{
    size_t n = 0;
    if (d->at < d->to || d->source_ended) {
        return TN_OK;
    }
    TN_TRY(from->read(from->arg, d->in, sizeof d->in, &n, err));
    d->before += d->to;
    d->at = 0;
    d->to = n;
    d->source_ended = n < sizeof d->in;
    return TN_OK;
}

/* Whether what comes may be a member, by its first bytes as far as they are there. Frames of zstd
 * and lz4 that decoders skip begin with 0x184d2a50 and up to 15 more. */
static bool is_member(const tn_decompressor *d)
{
    static const char *const marks[] = {[TN_COMPRESSION_GZIP] = "\x1f\x8b",
                                        [TN_COMPRESSION_ZSTD] = "\x28\xb5\x2f\xfd",
                                        [TN_COMPRESSION_LZ4] = "\x04\x22\x4d\x18"};
    static const char skipped[] = "\x2a\x4d\x18";
    const unsigned char *from = d->in + d->at;
    const size_t size = d->to - d->at;
    if (d->compression > TN_COMPRESSION_LZ4) {
        return true;
    }
    const char *mark = marks[d->compression];
    const size_t n = mark != NULL ? strlen(mark) : 0;
    return (n > 0 && memcmp(from, mark, size < n ? size : n) == 0) ||
           (n == 4 && from[0] >> 4 == 5 && memcmp(from + 1, skipped, size < 4 ? size - 1 : 3) == 0);
}

/* Goes on after a member: with another one, or in gzip over zeros that fill a block of a tape. */
static tn_status next_member(tn_decompressor *d, tn_error *err)
{
    while (d->n > 0 && d->compression == TN_COMPRESSION_GZIP && d->at < d->to &&
           d->in[d->at] == 0) {
        d->at++;
    }
    if (d->at == d->to) {
        return TN_OK; /* more may come */
    }
    if (d->n > 0 && !is_member(d)) {
        return failed(d, TN_UNPACKED_TOO_MUCH, err);
    }
    if (d->n > 0 && d->codec->again != NULL && d->codec->again(d) != TN_UNPACKED_SOME) {
        return failed(d, TN_UNPACKED_CORRUPT, err);
    }
    d->n = 1;
    d->ended = false;
    return TN_OK;
}

tn_status tn_decompressor_read(tn_decompressor *d, const tn_decompress_from *from, void *data,
                               size_t size, size_t *n, tn_error *err)
{
    TN_ASSERT(size > 0);
    *n = 0;
    while (*n == 0) {
        TN_TRY(refill(d, from, err));
        const bool empty = d->at == d->to;
        if (d->ended && empty) {
            return TN_OK;
        }
        TN_TRY(d->ended ? next_member(d, err) : TN_OK);
        if (d->ended) {
            continue;
        }
        const tn_unpacked o = d->codec->step(d, data, size, n);
        if (o > TN_UNPACKED_END) {
            *n = 0;
            return failed(d, o, err);
        }
        d->ended = o == TN_UNPACKED_END;
        if (empty && !d->ended && *n == 0) { /* nor has the library anything left */
            return damaged(d, "truncated", err);
        }
    }
    return TN_OK;
}
