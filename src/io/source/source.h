/* source.h - a stream of bytes from somewhere: a file, standard input; inflated where asked for.
 *
 *     tn_source *s = NULL;
 *     TN_TRY(tn_source_open(&s, "day_1.tsv.gz", 0, NULL, err));
 *     TN_TRY(tn_inflate(&s, TN_COMPRESSION_GZIP, err));      on top of the other, which it owns
 *     TN_TRY(tn_source_read(s, buffer, size, &n, err));      n < size: the end
 *     tn_source_close(s);
 *
 * To add one: write its tn_source_kind in source.c and add it to the list there. One thread at a
 * time; errors name the path.
 */
#ifndef TN_IO_SOURCE_H
#define TN_IO_SOURCE_H

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_lane tn_lane; /* base/trace/trace.h */

typedef struct tn_source tn_source;

/* Where bytes come from. `state` is what open returned. */
typedef struct tn_source_kind {
    bool once; /* cannot be read twice nor from the middle, and has no size */
    bool (*takes)(const char *path);
    tn_status (*open)(void **state, const char *path, uint64_t from, const atomic_bool *stop,
                      tn_error *err);
    /* At least 1 byte, at most `size`; 0: the end. */
    tn_status (*read)(void *state, void *data, size_t size, size_t *n, tn_error *err);
    void (*close)(void *state);
} tn_source_kind;

/* The kind that takes a path. TN_E_DATA: this build cannot read it. */
tn_status tn_source_find(const char *path, const tn_source_kind **out, tn_error *err) TN_MUST_USE;

/* From byte `from` on. `path` must outlive it. When *stop (may be NULL) turns true, reads end, also
 * those that wait, with TN_E_STOPPED. On failure *out is NULL. */
tn_status tn_source_open(tn_source **out, const char *path, uint64_t from, const atomic_bool *stop,
                         tn_error *err) TN_MUST_USE;
void tn_source_close(tn_source *source); /* NULL is fine */

/* Reading and inflating become spans of this lane, which the reading thread has; NULL: they do not.
 */
void tn_source_trace(tn_source *source, tn_lane *lane);

/* Fills `data`; fewer bytes only at the end. */
tn_status tn_source_read(tn_source *source, void *data, size_t size, size_t *n,
                         tn_error *err) TN_MUST_USE;

enum { TN_PEEK_MAX = 64 };

/* The next bytes, at most TN_PEEK_MAX, without taking them; lent until the next read. */
tn_status tn_source_peek(tn_source *source, tn_bytes *out, tn_error *err) TN_MUST_USE;

/* Bytes taken from the bottom: of the file, whatever is inflated on top of it. */
uint64_t tn_source_taken(const tn_source *source);
const char *tn_source_path(const tn_source *source);

/* Puts a decompressor (TN_COMPRESSION_GZIP or _ZLIB) on top. On failure *source is as before. */
tn_status tn_inflate(tn_source **source, uint32_t compression, tn_error *err) TN_MUST_USE;

/* The compression of a source, by its first bytes. Text is never taken for zlib or for a TFRecord.
 * TN_E_DATA: a compression that TNet cannot read. */
tn_status tn_compression_of(tn_bytes first, bool binary, const char *path, uint32_t *out,
                            tn_error *err) TN_MUST_USE;

#endif
