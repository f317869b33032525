/* block_reader.h - the first stages of reading: parts of files as blocks of whole records, and
 * these as blocks of rows.
 *
 * A record never spans two blocks; what is left over begins the next one. Blocks depend on the part
 * alone, not on how the bytes arrive. A fault in the framing ends a block, which says so. One
 * thread at a time.
 */
#pragma once

#include "io/read/blocks.h"

#include <stdatomic.h>

typedef struct tn_lane tn_lane;     /* base/trace/trace.h */
typedef struct tn_schema tn_schema; /* io/schema/schema.h */

void tn_block_done(tn_block *block); /* frees what it owns */

typedef struct tn_block_reader tn_block_reader;

/* Everything must outlive the reader. `stop`: as in tn_source_open. */
tn_status tn_block_reader_new(tn_block_reader **out, const tn_schema *schema,
                              const tn_fileset *files, const atomic_bool *stop,
                              tn_error *err) TN_MUST_USE;
void tn_block_reader_free(tn_block_reader *reader); /* NULL is fine */

/* Sources opened from now on record into this lane, that of the thread that calls the reader. */
void tn_block_reader_trace(tn_block_reader *reader, tn_lane *lane);

/* Leaves the part it is in and goes to the beginning of another, in the order of files. */
void tn_block_reader_go(tn_block_reader *reader, uint32_t part);

/* Reads the part's next block; its last one may hold no records. Failures are in the block. */
void tn_block_reader_next(tn_block_reader *reader, tn_block *block);

enum { TN_BLOCK_BYTES = 1 << 18 };

/* ---- the second stage: a block of records to a block of rows ----
 *
 * Blocks are independent, so any number of threads may parse, each into rows of its own. A record
 * at fault is left out and its message kept; the caller decides whether that is allowed. */

/* `rows` is kept in out->rows, and lent by the caller. Keeps `messages_max` messages at most. */
void tn_block_parse(const tn_block *block, const tn_schema *schema, const tn_fileset *files,
                    uint32_t messages_max, tn_parsed *out);

void tn_parsed_done(tn_parsed *parsed); /* frees the messages, not the rows */

/* The n-th message, from 0. */
const char *tn_parsed_message(const tn_parsed *parsed, uint32_t n);
