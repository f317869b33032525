/* write_sink.h - where written records go: a file that appears when it is whole, or a stream.
 *
 *     tn_sink *sink = NULL;
 *     TN_TRY(tn_sink_open(&sink, "day.tsv.gz", TN_COMPRESSION_GZIP, err));
 *     TN_TRY(tn_sink_add(sink, text.data, text.size, err));       as often as needed
 *     TN_TRY(tn_sink_commit(sink, err));                          or tn_sink_abandon(sink)
 *
 * A file is written beside its final name and renamed at the end; a failure
 * leaves an older file as it was. One thread at a time.
 */
#ifndef TN_IO_WRITE_SINK_H
#define TN_IO_WRITE_SINK_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_sink tn_sink;
typedef tn_status tn_sink_fn(void *ctx, const void *data, size_t size, tn_error *err);

/* `compression` is one of io/dataopts.h; auto: gzip for a name that ends in .gz, zlib for .zz, else
 * none. TN_E_IO. On failure *out is NULL. */
tn_status tn_sink_open(tn_sink **out, const char *path, uint32_t compression,
                       tn_error *err) TN_MUST_USE;

/* Into a function of the caller instead. */
tn_status tn_sink_open_stream(tn_sink **out, tn_sink_fn *write, void *ctx, uint32_t compression,
                              tn_error *err) TN_MUST_USE;

/* The file that exists until one of the two below; NULL: a stream. */
const char *tn_sink_tmp(const tn_sink *sink);

tn_status tn_sink_add(tn_sink *sink, const void *data, size_t size, tn_error *err) TN_MUST_USE;

/* Both free the sink. */
tn_status tn_sink_commit(tn_sink *sink, tn_error *err) TN_MUST_USE;
void tn_sink_abandon(tn_sink *sink); /* NULL is fine; the file is removed */

#endif
