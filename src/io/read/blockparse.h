/* blockparse.h - the second stage of reading: a block of records to a block of rows.
 *
 * Blocks are independent, so any number of threads may parse, each into rows of its own. A record
 * at fault is left out and its message kept; the caller decides whether that is allowed.
 */
#ifndef TN_IO_BLOCKPARSE_H
#define TN_IO_BLOCKPARSE_H

#include "io/read/block_reader.h"

typedef struct tn_parsed {
    tn_rows *rows;    /* row.at is set */
    uint64_t records; /* blank ones aside; bad ones included */
    uint64_t blank;
    uint64_t bytes;
    uint32_t n_bad;
    uint32_t n_messages; /* of the first bad records .. */
    tn_text messages;    /* .. each ended by NUL */
    tn_status fault; /* TN_OK, or why it stopped: no memory, a limit, or the block's own fault */
    tn_error err;
} tn_parsed;

/* `rows` is kept in out->rows, and lent by the caller. Keeps `messages_max` messages at most. */
void tn_block_parse(const tn_block *block, const tn_schema *schema, const tn_fileset *files,
                    uint32_t messages_max, tn_parsed *out);

void tn_parsed_done(tn_parsed *parsed); /* frees the messages, not the rows */

/* The n-th message, from 0. */
const char *tn_parsed_message(const tn_parsed *parsed, uint32_t n);

#endif
