/* crb_blocks.h - the container of dmlc's compressed row blocks, to a stream of rows
 * (io/schema/crb_row.h); io/write/write_crb.c makes it.
 *
 *     RecordIO   u32 0xced7230a   u32 cflag << 29 | length   payload   zeros to a multiple of 4
 *
 *                cflag 0: whole
 *                1, 2, 3: first, middle, last of one cut where it held the magic
 *
 *     payload    i32 0x474ba8c7   i32 index bytes, 4 or 8   i32 rows
 *
 *                behind an i32 size each (0: absent) five LZ4 blocks:
 *                f32 label   u64 offset[rows + 1]   index   f32 value   f32 weight
 *
 * A record may have 64 MiB; it and what it decompresses to no more than the caller allows, of which
 * no memory is taken before. Rows are made some at a time. One thread at a time.
 */
#pragma once

#include "base/core/text.h"

#define TN_CRB_PIECE_MAGIC UINT32_C(0xced7230a)
#define TN_CRB_BLOCK_MAGIC UINT32_C(0x474ba8c7)

enum { TN_CRB_RECORD_MAX = 64 << 20 };
enum { TN_CRB_WHOLE, TN_CRB_FIRST, TN_CRB_MIDDLE, TN_CRB_LAST }; /* cflag */
enum { TN_CRB_LABEL, TN_CRB_OFFSET, TN_CRB_INDEX, TN_CRB_VALUE, TN_CRB_WEIGHT, TN_CRB_ARRAYS };

typedef struct tn_crb {
    /* LZ4_decompress_safe, set by the caller. */
    int (*decompress)(const char *from, char *to, int size, int room);
    unsigned char head[8];
    uint32_t have;  /* bytes of the head */
    uint32_t left;  /* bytes of the piece behind it .. */
    uint32_t zeros; /* .. and of zeros behind these */
    bool open;      /* a record has begun, and not ended */
    bool no_memory; /* why it failed .. */
    bool too_large; /* .. likewise */
    uint64_t most;  /* bytes of a record and its arrays */
    tn_text record; /* its pieces */
    tn_text array[TN_CRB_ARRAYS];
    bool is_short;    /* its indices have 4 bytes */
    uint32_t n, next; /* its rows, and the first that is not in .. */
    tn_text rows;     /* .. those that are made */
    size_t taken;     /* whose bytes up to here are taken by the caller */
} tn_crb;

void tn_crb_done(tn_crb *c);

/* Takes bytes, until rows of a block are in c->rows or none is left: *taken of them. False:
 * damaged, or why it failed. */
bool tn_crb_feed(tn_crb *c, const unsigned char *in, size_t size, size_t *taken);

/* Whether the stream may end here. */
bool tn_crb_at_end(const tn_crb *c);
