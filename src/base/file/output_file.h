/* output_file.h - outputs that a user names: predictions, reports, pictures, generated data.
 *
 *     tn_output *o = NULL;
 *     TN_TRY(tn_output_open(&o, "pred.tsv", &(tn_output_with){.inputs = &in}, err));
 *     TN_TRY(tn_output_write(o, data, size, err));     as often as needed
 *     TN_TRY(tn_output_commit(o, err));                or tn_output_abandon(o)
 *
 *     the name means                       what is done
 *     nothing yet, a regular file          NAME.<16 hex>.tmp, fsync, rename: all of it or nothing
 *                                          .. with mode, owner and group of the file before
 *     a link                               the same, beside its target; the link stays
 *     a device, a FIFO, a socket,          opened and written to as a stream, never replaced
 *     a descriptor as /dev/stdout is, -    .. the last: standard output
 *     a file that the run reads, one in    refused with TN_E_USAGE, also through links
 *     a checkpoint or in an export
 *
 * An unfinished file is locked (flock) while its writer lives. Whoever opens the same output next
 * removes what killed writers have left of it: exactly NAME.<16 hex>.tmp, and unlocked. Where locks
 * do not work nothing is removed.
 *
 * A handle belongs to one thread. Failures are TN_E_IO unless said otherwise.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files that a run reads. Zeros are an empty one. */
typedef struct tn_inputs {
    tn_text list; /* device, inode and path of each file; see output_file.c */
} tn_inputs;

/* Adds a file; "-" is standard input. A missing file or a terminal is left out: writing cannot
 * spoil it. */
tn_status tn_inputs_add(tn_inputs *in, const char *path, tn_error *err) TN_MUST_USE;
void tn_inputs_done(tn_inputs *in);

typedef struct tn_output tn_output;

typedef struct tn_output_with {
    const tn_inputs *inputs; /* NULL: none */
    const tn_output *lead;   /* the first of several that appear together; NULL: alone, or first */
    const atomic_bool *stop; /* true ends the wait for the reader of a FIFO; NULL: never */
    bool tell;               /* log that a file was replaced */
    void (*announce)(const char *tmp); /* gets the name of an unfinished file before it is made */
} tn_output_with;

/* Returns an error unless an output may have this name. `inputs` may be NULL. */
tn_status tn_output_check(const char *path, const tn_inputs *inputs, tn_error *err) TN_MUST_USE;
/* Checks also that it could be made, for a file by making one beside it; nothing stays. */
tn_status tn_output_try(const char *path, const tn_inputs *inputs, tn_error *err) TN_MUST_USE;
/* Checks that a folder may be written into: not in a checkpoint, nor in an export. TN_E_USAGE. */
tn_status tn_output_check_folder(const char *path, tn_error *err) TN_MUST_USE;
/* Returns whether it would be standard output, so that other results go elsewhere. */
bool tn_output_is_stdout(const char *path);

/* Opens an output. `with` may be NULL. TN_E_USAGE, TN_E_STOPPED. On failure *out is NULL. */
tn_status tn_output_open(tn_output **out, const char *path, const tn_output_with *with,
                         tn_error *err) TN_MUST_USE;
/* Fails with TN_E_IO when the disk has no room for `bytes` more bytes. */
tn_status tn_output_expect(const tn_output *o, uint64_t bytes, tn_error *err) TN_MUST_USE;
/* Writes. After a failure of this or of the following functions call tn_output_abandon. */
tn_status tn_output_write(tn_output *o, const void *data, size_t size, tn_error *err) TN_MUST_USE;
uint64_t tn_output_size(const tn_output *o); /* bytes written so far */
bool tn_output_is_stream(const tn_output *o);
const char *tn_output_tmp(const tn_output *o); /* the unfinished file; NULL: a stream */

/* Writes and syncs all, but leaves the unfinished name: for one of several that appear together. Of
 * these commit the lead last: its lock counts for all. */
tn_status tn_output_finish(tn_output *o, tn_error *err) TN_MUST_USE;
/* Gives the output its name; frees `o` either way, and removes the file on failure. */
tn_status tn_output_commit(tn_output *o, tn_error *err) TN_MUST_USE;
void tn_output_abandon(tn_output *o); /* leaves nothing; NULL is fine */

/* Writes a whole output at once; after a failed fsync once more, under another name. */
tn_status tn_output_put(const char *path, const void *data, size_t size, const tn_output_with *with,
                        tn_error *err) TN_MUST_USE;

/* Removes an unfinished file that nobody writes any more; what cannot be removed stays. */
void tn_unfinished_remove(const char *path);
