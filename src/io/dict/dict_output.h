/* dict_output.h - bytes of a dictionary on their way to the disk; between the files of the writer
 * only.
 *
 *     TN_TRY(tn_dict_out_open(&o, path, err));
 *     TN_TRY(tn_dict_put_header(&o, header, err));                 in front of the checksums
 *     TN_TRY(tn_dict_put(&o, data, size, err));
 *     TN_TRY(tn_dict_put_checksums(&o, err));
 *
 * Everything behind the header is summed up as it passes, and a checksum noted for each chunk.
 * Closing is the caller's: o.file, then tn_dict_out_done.
 */
#ifndef TN_IO_DICT_OUTPUT_H
#define TN_IO_DICT_OUTPUT_H

#include "base/file/file.h"
#include "io/dict/dictformat.h"

typedef struct tn_dict_out {
    tn_file *file;
    uint32_t crc;  /* of the chunk that has begun .. */
    size_t so_far; /* .. bytes of it */
    tn_text crcs;  /* of full chunks */
} tn_dict_out;

tn_status tn_dict_out_open(tn_dict_out *o, const char *path, tn_error *err) TN_MUST_USE;
void tn_dict_out_done(tn_dict_out *o); /* not o->file */

tn_status tn_dict_put_header(tn_dict_out *o, const char header[TN_DICT_HEADER],
                             tn_error *err) TN_MUST_USE;
tn_status tn_dict_put(tn_dict_out *o, const void *data, size_t size, tn_error *err) TN_MUST_USE;
/* Zeros up to `at` bytes of the file, less than TN_DICT_ALIGN of them. */
tn_status tn_dict_put_gap(tn_dict_out *o, uint64_t at, tn_error *err) TN_MUST_USE;
/* That of the last chunk, and the checksums of all. */
tn_status tn_dict_put_checksums(tn_dict_out *o, tn_error *err) TN_MUST_USE;

#endif
