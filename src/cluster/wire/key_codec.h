/* key_codec.h - the keys of one owner as bytes, in PULL and PEEK.
 *
 *     0 u8 width of deltas, groups, shows, clicks    4 u32 0    8 u64 first key
 *     16 deltas   n - 1: key[i] - key[i - 1] - 1     keys ascend, each occurs once
 *        groups   n
 *        shows    n: show - 1                        a width of 0: all are 0, no bytes
 *        clicks   n
 *
 * Numbers are little-endian and as narrow as the largest of their array allows: deltas 1 to 8
 * bytes, groups up to 2, shows and clicks up to 4. Any wider is refused, as is a first key of no
 * keys other than 0: one set of keys has one encoding. n is the frame's count of keys.
 *
 * A keyset has its keys by partition, which ascend, but within one as first seen. So a sender sorts
 * its slice partition by partition and keeps the order, by which rows and gradients travel
 * (cluster/wire/float_codec.h); at the owner that order is that of its keyset:
 *
 *     tn_key_order order = tn_keyblock_sort(keys, peer, scratch, index);
 *     tn_keyblock_shape shape = tn_keyblock_measure(keys, order);
 *     tn_keyblock_write(keys, order, &shape, to);                       shape.bytes
 *
 *     tn_keyblock block = {0};                                          at the owner, used again
 *     why = tn_keyblock_read(&block, from, size, frame.count, &rules);
 *     ... block.keys ...
 *     tn_keyblock_done(&block);
 *
 * Writing allocates nothing. One thread uses a block at a time.
 */
#pragma once

#include "base/keys/keyset.h"
#include "base/keys/record.h"
#include "cluster/wire/frame.h"

/* Arrays of a block. */
typedef enum tn_key_array {
    TN_KEY_DELTAS,
    TN_KEY_GROUPS,
    TN_KEY_SHOWS,
    TN_KEY_CLICKS,
    TN_KEY_ARRAYS
} tn_key_array;

enum { TN_KEYBLOCK_HEAD = 16 };

/* For sorting. */
typedef struct tn_key_place {
    uint64_t key;
    uint32_t index;
} tn_key_place;

typedef struct tn_keyblock_shape {
    uint64_t bytes;
    uint32_t floats; /* floats of the keys' rows */
    uint8_t width[TN_KEY_ARRAYS];
} tn_keyblock_shape;

/* Sorts the keys of `peer`, ascending. With n of them: scratch has room for 2 n, index for n, which
 * is lent to the result. */
tn_key_order tn_keyblock_sort(const tn_keyset *keys, uint32_t peer, tn_key_place *scratch,
                              uint32_t *index);

tn_keyblock_shape tn_keyblock_measure(const tn_keyset *keys, tn_key_order order);

/* Writes the block to `to`, which has room for shape->bytes. */
void tn_keyblock_write(const tn_keyset *keys, tn_key_order order, const tn_keyblock_shape *shape,
                       char *to);

/* The rules of a receiver. All must outlive the blocks that are read. */
typedef struct tn_keyblock_rules {
    const tn_owners *owners;
    const tn_layout *layout;
    uint32_t peer; /* the owner whose keys these must be */
} tn_keyblock_rules;

/* Zeros to begin with. */
typedef struct tn_keyblock {
    tn_keyset keys; /* rows lie side by side from 0; arrays last until the next read */
    struct tn_key_room *room;
} tn_keyblock;

/* Decodes `size` bytes at any address. count: of the frame, keys and floats of their rows.
 * Memory is taken only for as many keys as the bytes hold, at most 30 times their size, and kept.
 * When it is dropped the block is an empty keyset. */
tn_drop tn_keyblock_read(tn_keyblock *block, const char *from, uint64_t size,
                         const uint32_t count[TN_FRAME_COUNTS],
                         const tn_keyblock_rules *rules) TN_MUST_USE;
void tn_keyblock_done(tn_keyblock *block); /* usable again */
