/* decompress.h - takes gzip, zlib, zstd, lz4, framed snappy, or the container of a format off the
 * bytes of a source.
 *
 *     TN_TRY(tn_decompressor_new(&d, TN_COMPRESSION_ZSTD, NULL, 0, path, err));
 *     TN_TRY(tn_decompressor_read(d, &from, buffer, size, &n, err));      n 0: the end
 *
 * Members of gzip, frames of zstd and lz4, and streams of snappy may follow one another. A source
 * that ends within one is truncated, which is an error and no end; bytes after a zlib stream are
 * one, too. Checksums are verified, but of lz4 and zstd where the writer left them out.
 *
 * Libraries are loaded when a file needs them: libzstd, liblz4, libsnappy; and libisal for gzip and
 * zlib, which zlib inflates where it is not installed, at a third of the rate. A window of zstd may
 * have 128 MB (--long=27). Formats: RFC 1952, RFC 1950, RFC 8878, lz4_Frame_format.md of lz4,
 * framing_format.txt of snappy. One thread at a time.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_decompressor tn_decompressor;

/* Compressed bytes: fills `data`, and fewer only at the end. */
typedef struct tn_decompress_from {
    tn_status (*read)(void *arg, void *data, size_t size, size_t *n, tn_error *err);
    void *arg;
} tn_decompress_from;

/* The result of a step of unpacking. */
typedef enum tn_unpacked {
    TN_UNPACKED_SOME,
    TN_UNPACKED_END, /* the stream may end here */
    TN_UNPACKED_CORRUPT,
    TN_UNPACKED_TOO_LARGE, /* a block has more than the largest record, unpacked */
    TN_UNPACKED_NO_MEMORY,
    TN_UNPACKED_WINDOW,   /* the window of zstd has more than 128 MB */
    TN_UNPACKED_TOO_MUCH, /* bytes follow the end of the stream */
} tn_unpacked;

/* How a format packs its records (tn_format.container). */
typedef struct tn_container {
    const char *name; /* name of the format */
    /* Allocates the state, which the caller frees, also on failure. A block may have `record_max`
     * bytes when it is unpacked. TN_E_CONFIG: a library is not installed. */
    tn_status (*open)(void **state, uint64_t record_max, tn_error *err);
    void (*close)(void *state); /* frees what the state holds */
    /* Takes bytes off `in` and puts *made bytes into `out`, at most `room`. */
    tn_unpacked (*step)(void *state, tn_bytes *in, unsigned char *out, size_t room, size_t *made);
} tn_container;

/* Returns "gzip" of TN_COMPRESSION_GZIP and so on (io/schema/dataopts.h). */
const char *tn_compression_name(uint32_t compression);

/* Makes a decompressor. `container` and `record_max` are of TN_COMPRESSION_CONTAINER alone; `path`
 * is for errors and must outlive it. TN_E_CONFIG: a library is not installed. */
tn_status tn_decompressor_new(tn_decompressor **out, uint32_t compression,
                              const tn_container *container, uint64_t record_max, const char *path,
                              tn_error *err) TN_MUST_USE;
void tn_decompressor_free(tn_decompressor *d); /* NULL is fine */

/* At least 1 byte and at most `size`, which is not 0; *n 0: the end. TN_E_DATA: truncated, corrupt,
 * with path and place in the source. */
tn_status tn_decompressor_read(tn_decompressor *d, const tn_decompress_from *from, void *data,
                               size_t size, size_t *n, tn_error *err) TN_MUST_USE;
