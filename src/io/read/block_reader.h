/* block_reader.h - the first stages of reading: parts of files as blocks of whole records, and
 * these as blocks of rows.
 *
 *     file     ...aaaa\nbb|bbb\ncc\n...        '|' a part begins: it owns the records that begin
 *     part                 cc\n...             behind it
 *     block    data: cc\n....   record: {0, 2} ..
 *
 * A record never spans two blocks; what is left over begins the next one. Blocks depend on the part
 * alone, not on how the bytes arrive. A fault in the framing ends a block and stands in it. One
 * thread at a time.
 */
#ifndef TN_IO_BLOCK_READER_H
#define TN_IO_BLOCK_READER_H

#include "io/format/format.h"
#include "io/read/fileset.h"

/* Where a record lies in a block. */
typedef struct tn_extent {
    uint32_t at;
    uint32_t size;
} tn_extent;

typedef struct tn_block {
    tn_text bytes;     /* owned, as are the records */
    tn_extent *record; /* side by side, in order */
    uint32_t n_records;
    uint32_t records_max;

    uint32_t file;
    const char *cache;   /* NULL; else `bytes` are a block of this .tnb file, without records */
    uint64_t offset;     /* of bytes.data[0] in the file, inflated */
    uint64_t line;       /* of the first record; 0: not known, the part begins inside the file */
    const tn_head *head; /* of the file; lives as long as the reader; NULL: the format has none */
    uint64_t taken;      /* bytes taken off the disk since the last block */
    uint64_t passed;     /* bytes in front that were passed over as damaged */
    bool last;           /* of its part */
    tn_status fault;     /* behind the records: TN_OK, or why nothing follows */
    bool damage;         /* .. the framing is wrong, and reading can go on behind it */
    tn_error err;
} tn_block;

void tn_block_done(tn_block *block); /* frees what it owns */

typedef struct tn_block_reader tn_block_reader;

/* Everything must outlive the reader. `stop`: as in tn_source_open. */
tn_status tn_block_reader_new(tn_block_reader **out, const tn_schema *schema,
                              const tn_fileset *files, const atomic_bool *stop,
                              tn_error *err) TN_MUST_USE;
void tn_block_reader_free(tn_block_reader *reader); /* NULL is fine */

/* Sources opened from now on record into this lane, which is of the thread that calls the reader.
 */
void tn_block_reader_trace(tn_block_reader *reader, tn_lane *lane);

/* Leaves the part it is in and goes to the beginning of another, in the order of files. */
void tn_block_reader_go(tn_block_reader *reader, uint32_t part);

/* The next block of the part; the last one of it may hold no records. Failures stand in the block.
 */
void tn_block_reader_next(tn_block_reader *reader, tn_block *block);

enum { TN_BLOCK_BYTES = 1 << 18 };

/* ---- the second stage: a block of records to a block of rows ----
 *
 * Blocks are independent, so any number of threads may parse, each into rows of its own. A record
 * at fault is left out and its message kept; the caller decides whether that is allowed. */

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
