/* write_sink.h - where written records go: an output (base/file/output_file.h), compressed or not.
 *
 *     tn_sink *sink = NULL;
 *     TN_TRY(tn_sink_open(&sink, "day.tsv.gz", &with, TN_COMPRESSION_GZIP, err));
 *     TN_TRY(tn_sink_add(sink, text.data, text.size, err));       as often as needed
 *     TN_TRY(tn_sink_commit(sink, err));                          or tn_sink_abandon(sink)
 *
 * One thread at a time.
 */
#pragma once

#include "base/core/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_output_with tn_output_with; /* base/file/output_file.h */

typedef struct tn_sink tn_sink;

/* `compression` is one of io/schema/dataopts.h; auto: gzip for a name that ends in .gz, zlib for
 * .zz, zstd for .zst, else none. `with` may be NULL. On failure *out is NULL; TN_E_CONFIG: lz4 and
 * snappy (.lz4, .sz), which are read only, and a library that is not installed. */
tn_status tn_sink_open(tn_sink **out, const char *path, const tn_output_with *with,
                       uint32_t compression, tn_error *err) TN_MUST_USE;

/* The file that exists until one of the last two below; NULL: a stream. */
const char *tn_sink_tmp(const tn_sink *sink);

/* About so many bytes will come: TN_E_IO where they have no room. Compressed ones may have. */
tn_status tn_sink_expect(const tn_sink *sink, uint64_t bytes, tn_error *err) TN_MUST_USE;

tn_status tn_sink_add(tn_sink *sink, const void *data, size_t size, tn_error *err) TN_MUST_USE;

/* Both free the sink. */
tn_status tn_sink_commit(tn_sink *sink, tn_error *err) TN_MUST_USE;
void tn_sink_abandon(tn_sink *sink); /* NULL is fine; the file is removed */
