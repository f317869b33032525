/* source.h - a stream of bytes from somewhere: a file, standard input, an object of a store, a
 * producer in memory (io/source/producer.h); decompressed where asked for.
 *
 *     tn_source *s = NULL;
 *     TN_TRY(tn_source_open(&s, "day_1.tsv.gz", 0, NULL, err));
 *     TN_TRY(tn_source_decompress(s, TN_COMPRESSION_GZIP, err));   from here on, see decompress.h
 *     TN_TRY(tn_source_read(s, buffer, size, &n, err));      n < size: the end
 *     tn_source_close(s);
 *
 * One thread at a time; errors name the path.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_lane tn_lane;                   /* base/trace/trace.h */
typedef struct tn_remote tn_remote;               /* io/source/remote.h */
typedef struct tn_remote_object tn_remote_object; /* likewise */

typedef struct tn_source tn_source;
typedef struct tn_container tn_container; /* io/source/decompress.h */

/* Standard input, named '-', which cannot be read twice nor from the middle, and has no size. */
bool tn_source_is_once(const char *path);

/* From byte `from` on, 0 where it comes once. `path` must outlive it. When *stop (may be NULL)
 * turns true, reads end, also those that wait, with TN_E_STOPPED. On failure *out is NULL. */
tn_status tn_source_open(tn_source **out, const char *path, uint64_t from, const atomic_bool *stop,
                         tn_error *err) TN_MUST_USE;
/* The same of an object, which was probed or listed (io/source/remote.h), and as `remote` must
 * outlive it; `from` is 0 unless it is ranged. */
tn_status tn_source_open_object(tn_source **out, tn_remote *remote, const tn_remote_object *object,
                                uint64_t from, const atomic_bool *stop, tn_error *err) TN_MUST_USE;
void tn_source_close(tn_source *source); /* NULL is fine */

/* Fetches no byte of an object from `until` on before it is asked for. */
void tn_source_until(tn_source *source, uint64_t until);

/* Reading and inflating become spans of this lane, the reading thread's; NULL: they do not. */
void tn_source_trace(tn_source *source, tn_lane *lane);

/* Fills `data`; fewer bytes only at the end. */
tn_status tn_source_read(tn_source *source, void *data, size_t size, size_t *n,
                         tn_error *err) TN_MUST_USE;

enum { TN_PEEK_MAX = 64 };

/* The first bytes, at most TN_PEEK_MAX, without taking them; lent until the next read. Once. */
tn_status tn_source_peek(tn_source *source, tn_bytes *out, tn_error *err) TN_MUST_USE;

/* Bytes taken off the file, compressed or not. */
uint64_t tn_source_taken(const tn_source *source);
const char *tn_source_path(const tn_source *source);

/* Sets the container that TN_COMPRESSION_CONTAINER means, whose blocks may have `record_max` bytes
 * when they are unpacked; NULL: none. */
void tn_source_set_container(tn_source *source, const tn_container *container, uint64_t record_max);
/* Takes the compression (TN_COMPRESSION_GZIP and on) off from here on. On failure the source is as
 * before. */
tn_status tn_source_decompress(tn_source *source, uint32_t compression, tn_error *err) TN_MUST_USE;

/* The compression of a source, by its first bytes. Text is never taken for zlib or for a TFRecord.
 * TN_E_DATA: a compression that TNet cannot read. */
tn_status tn_compression_of(tn_bytes first, bool binary, const char *path, uint32_t *out,
                            tn_error *err) TN_MUST_USE;
