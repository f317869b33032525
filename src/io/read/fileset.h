/* fileset.h - files that a list of paths means, and the parts they are cut into.
 *
 *     day_1.tsv     a file               logs/    every file in it
 *     day_*.tsv     a pattern            -        standard input
 *     {b,a}.tsv     b.tsv and a.tsv      s3://..   objects of a store: io/source/remote.h
 *     memory:x      rows of the program around the run: io/source/producer.h
 *
 * Items keep their order; the files of one pattern or folder are sorted bytewise. Patterns match
 * whole names. Of a folder, names that begin with '.' or '_' are passed over (_SUCCESS, hidden and
 * unfinished files), and so are folders in it. A path that matches nothing is an error.
 *
 * A part owns the records that begin in its bytes. Parts are cut by sizes alone, so all peers and
 * all epochs agree on them; what cannot be cut (compressed, standard input) is one part.
 *
 * For several ranks each file is cut into as many times `ranks` parts of equal size as it takes to
 * make them no larger than part_bytes, and four for each rank in all: whoever deals them in turn
 * gives every rank the same share of every file.
 */
#pragma once

#include "io/read/blocks.h"

#include <stdatomic.h>

typedef struct tn_arena tn_arena;         /* base/core/arena.h */
typedef struct tn_data_opts tn_data_opts; /* io/schema/dataopts.h */
typedef struct tn_format tn_format;       /* io/format/format.h */
typedef struct tn_schema tn_schema;       /* io/schema/schema.h */
typedef struct tn_source tn_source;       /* io/source/source.h */
typedef struct tn_strs tn_strs;           /* config/values.h */
typedef struct tn_text tn_text;           /* base/core/text.h */
typedef struct tn_inputs tn_inputs;       /* base/file/output_file.h */

/* Lists the files, and looks at the first bytes of each when `compression` is auto. `ranks` share
 * the parts, at least 1. TN_E_DATA, TN_E_IO, TN_E_LIMIT. On failure *out is NULL. */
tn_status tn_fileset_new(tn_fileset **out, const tn_strs *paths, const tn_schema *schema,
                         uint32_t ranks, tn_error *err) TN_MUST_USE;
/* How many parts from `part` on belong together: one of each rank, or one alone. */
uint32_t tn_fileset_unit(const tn_fileset *files, uint32_t part);
void tn_fileset_free(tn_fileset *files); /* NULL is fine */

/* Adds the files of `paths` to the inputs of a run, without those that cannot be found and
 * URIs. */
tn_status tn_fileset_inputs(const tn_strs *paths, tn_inputs *out, tn_error *err) TN_MUST_USE;

/* Lists the files of `paths` on this machine, in `arena`, without the same ones. */
void tn_fileset_names(const tn_strs *paths, tn_arena *arena, tn_strs *out);

/* Finds the first file that `paths` mean; it lives in `arena`. TN_E_DATA: there is none, it can be
 * read only once, or is a URI. */
tn_status tn_fileset_first(const tn_strs *paths, tn_arena *arena, const char **out,
                           tn_error *err) TN_MUST_USE;

/* Checks that every item of `paths` is there, or matches something; TN_E_DATA: one does not.
 * `secrets` are those of tn_remotes()->open. */
tn_status tn_fileset_look(const tn_strs *paths, const char *secrets, tn_error *err) TN_MUST_USE;

/* Checks the header in the secrets of `data`. TN_E_CONFIG: it names no host, and would go to two of
 * those in its paths and in `more`. No host is asked; secrets that cannot be read are passed over.
 * `warn`: logs a header that goes to another machine unencrypted. */
tn_status tn_fileset_check_hosts(const tn_data_opts *data, const tn_strs *more, bool warn,
                                 tn_error *err) TN_MUST_USE;

/* The format of a file: that of the schema, which exists, or of rows in memory. */
const tn_format *tn_fileset_format(const tn_fileset *files, uint32_t file, const tn_schema *schema);

/* Opens a file at a byte, inflated where it is compressed (then `from` is 0). */
tn_status tn_fileset_open(const tn_fileset *files, uint32_t file, uint64_t from,
                          const atomic_bool *stop, tn_source **out, tn_error *err) TN_MUST_USE;

/* Reads the header of a file, which `schema` says is there: the first line that is neither blank
 * nor a comment, without a mark before it and its line end. "": the file is empty. `out` begins
 * empty. */
tn_status tn_fileset_header(const tn_fileset *files, uint32_t file, const tn_schema *schema,
                            tn_text *out, tn_error *err) TN_MUST_USE;

/* Counts the lines that end before a byte of a file that is cut into parts, for messages: the first
 * question about a part costs a pass over the file, at most. Any thread. False: it cannot be read.
 */
bool tn_fileset_lines_before(const tn_fileset *files, uint32_t file, uint64_t offset,
                             uint64_t *out) TN_MUST_USE;

/* Counts line ends. */
uint64_t tn_count_lines(const char *data, size_t size);
