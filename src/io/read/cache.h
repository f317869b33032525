/* cache.h - the binary cache: blocks of rows as the parsers made them, ready for batches.
 *
 *     text --cut--> block --parse--> tn_parsed --pack--> x.tnb
 *     x.tnb ---------> block --unpack-> tn_parsed          the same, bit for bit
 *
 *     header  shape  block block ..  index  tail           bytes: docs/formats.md
 *
 * A block of the file is what one block of the source became: its rows with keys, values, numbers
 * and labels, and the counts of what was blank or bad. Everything behind the parsers (windows,
 * sampling, batches, progress) therefore is the same whether text is read or its cache, and so are
 * parts: the index lists those of the sources. `shape` is a text, one line per fact, of everything
 * that decides what a record becomes; a cache is used only where that text is the same.
 *
 * Files are named *.tnb; that is how they are told from data. A tn_cache is read-only once open:
 * any thread. A writer belongs to one thread at a time.
 */
#pragma once

#include "base/core/bytes.h"
#include "io/read/blocks.h"

typedef struct tn_infile tn_infile;           /* base/file/file.h */
typedef struct tn_output_with tn_output_with; /* base/file/output_file.h */
typedef struct tn_schema tn_schema;           /* io/schema/schema.h */

/* Fixed bytes and sizes of the file. */
#define TN_CACHE_MAGIC "TNB1\r\n\x1a\n"
#define TN_CACHE_END "TNB1end\n"
#define TN_CACHE_ORDER UINT32_C(0x01020304)

enum {
    TN_CACHE_MAJOR = 1,
    TN_CACHE_MINOR = 0,
    TN_CACHE_HEADER = 64, /* bytes */
    TN_CACHE_TAIL = 32,
    TN_CACHE_SOURCE = 24, /* of the index, and a path */
    TN_CACHE_PART = 40,   /* of the index */
    TN_CACHE_BLOCK = 104, /* header of a block */
    TN_CACHE_SHAPE_MAX = 1 << 28,
};

/* Where the rows of a part lie. */
typedef struct tn_cache_part {
    tn_part_info info;
    uint32_t n_blocks;
    uint64_t first_block; /* of all blocks of the file, as the index counts them */
    uint64_t at;          /* byte of its first block; the others follow */
    uint64_t rows;
} tn_cache_part;

/* A file whose rows are in the cache, as it was then. */
typedef struct tn_cache_source {
    tn_file_entry file;
    bool noted;       /* `version` says what it held; an earlier TNet noted its time alone */
    uint64_t version; /* of a sample of its bytes and the time of change; 0: not a regular file */
} tn_cache_source;

typedef struct tn_cache {
    const char *path;
    const char *shape; /* ended by NUL */
    uint64_t part_bytes;
    uint32_t n_sources;
    const tn_cache_source *source;
    uint32_t n_parts;
    const tn_cache_part *part;
    uint64_t n_blocks;
    const uint32_t *block_bytes;
    uint64_t rows;
    tn_infile *file;
    tn_arena *arena; /* owned; holds all of this */
} tn_cache;

bool tn_cache_is_named(const char *path); /* *.tnb */

/* Header, shape and index, checked; blocks are checked as they are unpacked. TN_E_DATA: not a
 * cache, not whole, damaged, of another version or byte order. On failure *out is NULL. */
tn_status tn_cache_open(tn_cache **out, const char *path, tn_error *err) TN_MUST_USE;
void tn_cache_close(tn_cache *cache); /* NULL is fine */

/* TN_E_CONFIG: the schema makes other rows, and the message says where it differs. TN_E_DATA: a
 * source has changed since; one that is gone is not missed. */
tn_status tn_cache_check(const tn_cache *cache, const tn_schema *schema, tn_error *err) TN_MUST_USE;

/* The text above. */
void tn_cache_shape(const tn_schema *schema, tn_text *out);

/* Replaces `out` by the bytes of a block. What fails stands in `out` (tn_text_check). The rows were
 * made with TN_ROWS_IDS. */
void tn_cache_pack(const tn_parsed *parsed, tn_text *out);

/* The way back, into out->rows, of a block whose checksum is right; TN_ROWS_SIGNS gives every key
 * its sign as text. On TN_E_DATA, TN_E_MEMORY and TN_E_LIMIT `out` holds no rows. */
tn_status tn_cache_unpack(tn_bytes block, tn_parsed *out, tn_error *err) TN_MUST_USE;

typedef struct tn_cache_writer tn_cache_writer;

/* A cache of `files`, which must outlive the writer, as must `schema`. It appears under its name
 * when it is committed. `with` may be NULL. On failure *out is NULL. */
tn_status tn_cache_create(tn_cache_writer **out, const char *path, const tn_output_with *with,
                          const tn_schema *schema, const tn_fileset *files,
                          tn_error *err) TN_MUST_USE;

/* The next block of a part; parts come whole, one after another, in any order. After a failure only
 * abandon is left. */
tn_status tn_cache_add(tn_cache_writer *w, uint32_t part, const tn_text *block, uint32_t rows,
                       tn_error *err) TN_MUST_USE;

/* Every part has been added. Frees the writer either way. TN_E_DATA: a source has changed while it
 * was read. */
tn_status tn_cache_commit(tn_cache_writer *w, tn_error *err) TN_MUST_USE;
void tn_cache_abandon(tn_cache_writer *w); /* NULL is fine; nothing is left of the file */

/* Removes what killed writers have left in a folder of caches; what cannot be removed stays. */
void tn_cache_sweep(const char *folder);

/* Binary caches in the place of the files they were made of.
 *
 *     data.train: [a.tnb, b.tnb]     a.tnb of day_1.tsv day_2.tsv, b.tnb of day_3.tsv
 *     files       day_1.tsv day_2.tsv day_3.tsv, and their parts
 *
 * The fileset names the sources, so that a file, a part or a number of bytes is the same as for
 * text; only the block reader knows that blocks come from elsewhere. A set is owned by the fileset;
 * read-only, any thread. */

typedef struct tn_cache_set tn_cache_set;

/* When the files of the set are caches, opens them and puts their sources in place; when none is,
 * does nothing. A schema without columns is not complete, and caches are not held against it.
 * TN_E_CONFIG, TN_E_DATA: as tn_cache_open and tn_cache_check, and for a mixture. */
tn_status tn_cache_set_open(tn_fileset *files, const tn_schema *schema, tn_error *err) TN_MUST_USE;
void tn_cache_set_free(tn_cache_set *set); /* NULL is fine */

/* Of the first cache, see tn_cache_shape; lasts as long as the set. */
const char *tn_cache_set_shape(const tn_cache_set *set);

/* Where reading stands in a part; all 0 at its beginning. */
typedef struct tn_cache_cursor {
    uint32_t n;
    uint64_t at;
} tn_cache_cursor;

/* The next block of a part, as tn_block_reader_next. */
void tn_cache_set_next(const tn_cache_set *set, uint32_t part, tn_cache_cursor *at,
                       tn_block *block);
