/* blocks.h - structs that the stages of reading pass on: files, parts of files, blocks of whole
 * records, and blocks of rows.
 *
 *     file     ...aaaa\nbb|bbb\ncc\n...        '|' a part begins: it owns the records that begin
 *     part                 cc\n...             after it
 *     block    data: cc\n....   record: {0, 2} ..
 *     parsed   rows: one for each record that is no fault
 *
 * Structs only. io/read/fileset.h makes files and parts; io/read/block_reader.h makes blocks of
 * them, and rows of these.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_arena tn_arena;                 /* base/core/arena.h */
typedef struct tn_head tn_head;                   /* io/format/format.h */
typedef struct tn_remote tn_remote;               /* io/source/remote.h */
typedef struct tn_remote_object tn_remote_object; /* likewise */
typedef struct tn_rows tn_rows;                   /* io/rows/rows.h */

typedef struct tn_file_entry {
    const char *path;
    uint64_t size; /* UINT64_MAX: not known */
    uint32_t compression;
    bool once;                /* cannot be opened again */
    bool in_memory;           /* its rows are cells, whatever the format is (io/arrow/cells.h) */
    tn_remote_object *object; /* the object of the URI `path`; NULL: it is a file */
} tn_file_entry;

/* One piece of the data of an epoch. */
typedef struct tn_part_info {
    uint32_t source;
    uint64_t first, end; /* bytes; end UINT64_MAX: to the end of a source that cannot be cut */
} tn_part_info;

typedef struct tn_container tn_container; /* io/source/decompress.h */

typedef struct tn_fileset {
    uint32_t n;
    const tn_file_entry *file;
    uint32_t n_parts;
    const tn_part_info *part; /* in the order of files */
    uint32_t ranks;           /* so many parts side by side belong together; 1: each is alone */
    bool binary;              /* the format is */
    const tn_container *container; /* container of the format; NULL: none */
    uint64_t record_max;           /* data.record_bytes_max */
    uint64_t bytes;                /* all files together; 0: not known */
    struct tn_line_numbers *lines; /* owned: for messages */
    tn_remote *remote;             /* owned; NULL: no file is a URI */
    tn_arena *arena;               /* owned; holds all of this */
} tn_fileset;

/* The place of a record in a block. */
typedef struct tn_extent {
    uint32_t at;
    uint32_t size;
} tn_extent;

typedef struct tn_block {
    tn_text bytes;     /* owned, as are the records */
    tn_extent *record; /* side by side, in order */
    uint32_t n_records;
    uint32_t records_max;

    uint64_t sequence; /* number among the blocks of its reader, from 0 */
    uint32_t file;
    uint64_t offset;     /* offset of bytes.data[0] in the file, inflated */
    uint64_t line;       /* line of the first record; 0: not known, the part begins in the file */
    const tn_head *head; /* head of the file, lent by the reader; NULL: the format has none */
    uint64_t taken;      /* bytes taken off the disk since the last block */
    uint64_t passed;     /* bytes before it that were passed over as damaged */
    bool last;           /* the part ends with it */
    tn_status fault;     /* TN_OK, or why no records follow */
    bool damage;         /* `fault` is wrong framing, after which reading can go on */
    tn_error err;
} tn_block;

typedef struct tn_parsed {
    tn_rows *rows;    /* row.at is set */
    uint64_t records; /* blank ones aside; bad ones included */
    uint64_t blank;
    uint64_t bytes;
    uint64_t sequence, taken, passed; /* as in the block, like the next two */
    uint32_t file;
    bool last;
    uint32_t n_bad;
    uint32_t n_messages;
    tn_text messages; /* faults of the first bad records, each ended by NUL */
    tn_status fault;  /* TN_OK, or why it stopped: no memory, a limit, or the block's own fault */
    tn_error err;
} tn_parsed;
