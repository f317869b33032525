/* cache_files.h - binary caches in the place of the files they were made of.
 *
 *     data.train: [a.tnb, b.tnb]     a.tnb of day_1.tsv day_2.tsv, b.tnb of day_3.tsv
 *     files       day_1.tsv day_2.tsv day_3.tsv, and their parts
 *
 * The fileset names the sources, so that whoever asks for a file, a part or a number of bytes is
 * told what text would have told; only the block reader knows that blocks come from elsewhere.
 * Owned by the fileset; read-only, any thread.
 */
#ifndef TN_IO_CACHE_FILES_H
#define TN_IO_CACHE_FILES_H

#include "io/read/block_reader.h"
#include "io/read/cache.h"

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

#endif
