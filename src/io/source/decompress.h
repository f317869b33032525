/* decompress.h - gzip, zlib, zstd, lz4, framed snappy and the blocks of crb between a source and
 * its reader.
 *
 *     TN_TRY(tn_decompressor_new(&d, TN_COMPRESSION_ZSTD, 0, path, err));
 *     TN_TRY(tn_decompressor_read(d, &from, buffer, size, &n, err));      n 0: the end
 *
 * Members of gzip, frames of zstd and lz4, and streams of snappy may follow one another. A source
 * that ends within one is truncated, which is an error and no end; what comes behind a zlib stream
 * is one, too. Checksums are verified, but of lz4 and zstd where the writer left them out.
 *
 * Libraries are loaded when a file needs them: libzstd, liblz4, libsnappy; and libisal for gzip and
 * zlib, which zlib inflates where it is not installed, at a third of the rate. A window of zstd may
 * have 128 MB (--long=27). Formats: RFC 1952, RFC 1950, RFC 8878, lz4_Frame_format.md of lz4,
 * framing_format.txt of snappy. One thread at a time.
 */
#pragma once

#include "base/core/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_decompressor tn_decompressor;

/* Compressed bytes: fills `data`, and fewer only at the end. */
typedef struct tn_decompress_from {
    tn_status (*read)(void *arg, void *data, size_t size, size_t *n, tn_error *err);
    void *arg;
} tn_decompress_from;

/* "gzip"; of TN_COMPRESSION_GZIP and on (io/schema/dataopts.h). */
const char *tn_compression_name(uint32_t compression);

/* `path` is for errors and must outlive it; `record_max`: bytes of a block of crb, unpacked.
 * TN_E_CONFIG: its library is not installed. */
tn_status tn_decompressor_new(tn_decompressor **out, uint32_t compression, uint64_t record_max,
                              const char *path, tn_error *err) TN_MUST_USE;
void tn_decompressor_free(tn_decompressor *d); /* NULL is fine */

/* At least 1 byte and at most `size`, which is not 0; *n 0: the end. TN_E_DATA: truncated, corrupt,
 * with path and place in the source. */
tn_status tn_decompressor_read(tn_decompressor *d, const tn_decompress_from *from, void *data,
                               size_t size, size_t *n, tn_error *err) TN_MUST_USE;
