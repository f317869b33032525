/* block_reader_private.h - the state of a feed, and how it gets to where a part begins; for
 * feed*.c. */
#ifndef TN_IO_BLOCK_READER_PRIVATE_H
#define TN_IO_BLOCK_READER_PRIVATE_H

#include "io/read/block_reader.h"
#include "io/read/cache_files.h"

#include <string.h>

#define TN_FEED_BYTES_MAX ((size_t)3 << 30)

struct tn_feed {
    const tn_schema *schema;
    const tn_format *format;
    const tn_fileset *files;
    const atomic_bool *stop;
    tn_lane *lane;
    tn_head *head;   /* files->n; column NULL: not read yet */
    uint64_t *start; /* n_parts, binary: its first record, as far as it is known; 0: it is not */

    uint32_t part;
    tn_tnb_cursor cursor; /* in the part, when blocks come from caches */
    tn_source *source;    /* NULL: the part is not open yet */
    uint64_t offset;      /* of rest.data[0] */
    uint64_t line;        /* of rest.data[at], or 0 */
    uint64_t taken;       /* off the disk, as last told */
    tn_text rest;         /* read, not yet handed out .. */
    size_t at;            /* .. from here on */
    bool ended;           /* the source */
    bool over;            /* the part */
    bool damaged;         /* what stands at `at` is to be passed over */
    bool forsaken;        /* the caches: the files are read in their place */
};

static inline const tn_part_info *tn_feed_part(const tn_feed *feed)
{
    return &feed->files->part[feed->part];
}

static inline tn_bytes tn_feed_window(const tn_feed *feed)
{
    return (tn_bytes){feed->rest.data + feed->at, feed->rest.size - feed->at, false};
}

/* Closes the source and forgets what was read. */
void tn_feed_leave(tn_feed *feed);

/* Reads on until the window holds `size` bytes or the source ends. */
tn_status tn_feed_fill(tn_feed *feed, size_t size, tn_error *err) TN_MUST_USE;

/* Opens the part and goes to its first record. */
tn_status tn_feed_open_part(tn_feed *feed, tn_error *err) TN_MUST_USE;

#endif
