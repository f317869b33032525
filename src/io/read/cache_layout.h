/* cache_layout.h - where things stand in a .tnb file; for tnb*.c only.
 *
 * Numbers are little-endian. Columns of a block begin at multiples of 8, in the order of
 * tn_tnb_layout; one that has nothing to say is left out (flags).
 */
#ifndef TN_IO_CACHE_LAYOUT_H
#define TN_IO_CACHE_LAYOUT_H

#include "io/read/cache.h"

#define TN_TNB_MAGIC "TNB1\r\n\x1a\n"
#define TN_TNB_END "TNB1end\n"
#define TN_TNB_ORDER UINT32_C(0x01020304)

enum {
    TN_TNB_MAJOR = 1,
    TN_TNB_MINOR = 0,
    TN_TNB_HEADER = 64,
    TN_TNB_TAIL = 32,
    TN_TNB_INDEX = 24,  /* what the index begins with */
    TN_TNB_SOURCE = 24, /* and its path */
    TN_TNB_PART = 40,
    TN_TNB_BLOCK = 104, /* header of a block */
    TN_TNB_SHAPE_MAX = 1 << 28,
};

enum {
    TN_TNB_WEIGHTS = 1, /* some row does not weigh 1 */
    TN_TNB_GROUPS = 2,  /* some row has a group */
    TN_TNB_VALUES = 4,  /* some x_j is not 1 */
    TN_TNB_IDS = 8,     /* some row has an id */
    TN_TNB_FLAGS = 15,
};

/* The header of a block, in the order of its bytes, behind u32 crc and u32 size. */
typedef struct tn_tnb_counts {
    uint32_t rows, entries;
    uint32_t flags;
    uint32_t width; /* entries of each row, whose slots are the same in every row; 0: they differ */
    uint64_t records, blank, bytes, taken, passed, duplicate_key;
    uint64_t first_at; /* of the rows' places in the source */
    uint32_t bad, messages, message_bytes, id_bytes;
} tn_tnb_counts;

/* Places of the columns. */
typedef struct tn_tnb_layout {
    uint64_t key;     /* u64[entries] */
    uint64_t slot;    /* u16[entries], or u16[width] */
    uint64_t value;   /* f32[entries], or nothing */
    uint64_t end;     /* u32[rows]: behind the last entry of each; not with width */
    uint64_t label;   /* f32[rows] */
    uint64_t weight;  /* f32[rows], or nothing */
    uint64_t numeric; /* f32[rows * n_numeric] */
    uint64_t group;   /* u64[rows], or nothing */
    uint64_t at;      /* u32[rows], from first_at */
    uint64_t id_end;  /* u32[rows]: behind the id of each, or nothing */
    uint64_t id;      /* bytes */
    uint64_t message; /* bytes, each ended by NUL */
    uint64_t size;    /* of all */
} tn_tnb_layout;

static inline uint64_t tn_tnb_take(uint64_t *at, uint64_t n, uint64_t size)
{
    uint64_t here = *at;
    *at += (n * size + 7) / 8 * 8;
    return here;
}

/* Counts are below 2^32 and n_numeric is small: nothing overflows. */
static inline tn_tnb_layout tn_tnb_lay_out(const tn_tnb_counts *n, uint32_t n_numeric)
{
    tn_tnb_layout to;
    uint64_t at = TN_TNB_BLOCK;
    uint64_t rows = n->rows;
    uint64_t weights = (n->flags & TN_TNB_WEIGHTS) != 0 ? rows : 0;
    uint64_t groups = (n->flags & TN_TNB_GROUPS) != 0 ? rows : 0;
    uint64_t values = (n->flags & TN_TNB_VALUES) != 0 ? n->entries : 0;
    uint64_t ids = (n->flags & TN_TNB_IDS) != 0 ? rows : 0;
    to.key = tn_tnb_take(&at, n->entries, sizeof(uint64_t));
    to.slot = tn_tnb_take(&at, n->width > 0 ? n->width : n->entries, sizeof(uint16_t));
    to.value = tn_tnb_take(&at, values, sizeof(float));
    to.end = tn_tnb_take(&at, n->width > 0 ? 0 : rows, sizeof(uint32_t));
    to.label = tn_tnb_take(&at, rows, sizeof(float));
    to.weight = tn_tnb_take(&at, weights, sizeof(float));
    to.numeric = tn_tnb_take(&at, rows * n_numeric, sizeof(float));
    to.group = tn_tnb_take(&at, groups, sizeof(uint64_t));
    to.at = tn_tnb_take(&at, rows, sizeof(uint32_t));
    to.id_end = tn_tnb_take(&at, ids, sizeof(uint32_t));
    to.id = tn_tnb_take(&at, n->id_bytes, 1);
    to.message = tn_tnb_take(&at, n->message_bytes, 1);
    to.size = at;
    return to;
}

#endif
