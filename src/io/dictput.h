/* dictput.h - bytes of a dictionary on their way to the disk; between the files of the writer only.
 *
 *     TN_TRY(tn_dict_out_open(&o, path, err));
 *     TN_TRY(tn_dict_put_header(&o, header, err));                 in front of the checksums
 *     TN_TRY(tn_dict_put(&o, data, size, err));
 *     memcpy(tn_dict_row_place(&o), row, stride);                  zeros when nothing is stored
 * there TN_TRY(tn_dict_row_done(&o, stride, err)); TN_TRY(tn_dict_put_checksums(&o, err));
 *
 * Everything behind the header passes through one buffer, a chunk at a time: for its checksums and
 * for the kernel it is still in the cache. Closing is the caller's: o.file, then tn_dict_out_done.
 */
#ifndef TN_IO_DICTPUT_H
#define TN_IO_DICTPUT_H

#include "base/file.h"
#include "base/record.h"
#include "io/dictformat.h"

/* Of fp32, or of int8 with a scale per segment. */
enum { TN_DICT_ROW_MAX = TN_SEGMENTS_MAX * (TN_DIM_MAX + 1) * 4 };

typedef struct tn_dict_out {
    tn_file *file;
    uint64_t at;  /* where the buffer begins in the file */
    char *buffer; /* a chunk and a row; zeros from `used` on */
    size_t used;
    tn_text crcs; /* of full chunks */
} tn_dict_out;

tn_status tn_dict_out_open(tn_dict_out *o, const char *path, tn_error *err) TN_MUST_USE;
void tn_dict_out_done(tn_dict_out *o); /* not o->file */

tn_status tn_dict_put_header(tn_dict_out *o, const char header[TN_DICT_HEADER],
                             tn_error *err) TN_MUST_USE;
tn_status tn_dict_put(tn_dict_out *o, const void *data, size_t size, tn_error *err) TN_MUST_USE;
/* Zeros up to `at` bytes of the file, less than TN_DICT_ALIGN of them. */
tn_status tn_dict_put_gap(tn_dict_out *o, uint64_t at, tn_error *err) TN_MUST_USE;
/* The last chunk, and the checksums of all. */
tn_status tn_dict_put_checksums(tn_dict_out *o, tn_error *err) TN_MUST_USE;

/* Writes the chunk that is full. */
tn_status tn_dict_put_chunk(tn_dict_out *o, tn_error *err) TN_MUST_USE;

static inline char *tn_dict_row_place(const tn_dict_out *o)
{
    return o->buffer + o->used;
}

/* The first `size` bytes there, at most TN_DICT_ROW_MAX, are the row. */
static inline tn_status tn_dict_row_done(tn_dict_out *o, uint32_t size, tn_error *err)
{
    o->used += size;
    return o->used < TN_DICT_CHUNK ? TN_OK : tn_dict_put_chunk(o, err);
}

#endif
