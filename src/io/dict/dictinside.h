/* dictinside.h - an open dictionary; between dict.c, dictcheck.c and dictfind.c only. */
#ifndef TN_IO_DICTINSIDE_H
#define TN_IO_DICTINSIDE_H

#include "base/file/file.h"
#include "base/keys/record.h"
#include "io/dict/dict.h"
#include "io/dict/dictformat.h"

#include <stdatomic.h>

typedef struct tn_dict_field {
    uint32_t offset, scale; /* in the row; TN_DICT_NO_SCALE */
    uint32_t dim;
    tn_dict_type type;
    uint32_t segment;
} tn_dict_field;

struct tn_dict_table {
    uint64_t rows;
    const uint32_t *start;
    const uint64_t *key;
    const char *row;
    const uint16_t *group; /* NULL: not stored */
    uint64_t base;
    uint32_t buckets, stride, shift;
    bool removed;
    uint32_t n_fields;
    tn_dict_field field[TN_SEGMENTS_MAX];
};

typedef struct tn_dict_set_of_tables {
    uint64_t salt;
    const char *name;
    uint32_t n;
    uint16_t table[TN_DICT_GROUP_TABLES];
} tn_dict_set_of_tables;

struct tn_dict {
    tn_map map;
    const char *what; /* path, for messages; owned */
    tn_verify verify;
    uint64_t crc_at;
    uint32_t n_chunks, n_groups, n_tables;
    uint32_t partitions, first, last;
    uint32_t json_bytes;
    bool delta, group_arrays;
    uint64_t names_at, json_at, groups_at, rows;
    tn_dict_set_of_tables *group;
    tn_dict_table *table;
    _Atomic(uint8_t) *checked; /* per chunk, lazy: 0 not yet, 1 good, 2 bad */
};

/* The header, where its parts lie, and the crcs that `verify` asks for. */
tn_status tn_dict_check(tn_dict *d, tn_error *err) TN_MUST_USE;
/* Fills d->group and d->table, which have room. */
tn_status tn_dict_read_heads(tn_dict *d, tn_error *err) TN_MUST_USE;
tn_status tn_dict_check_chunk(const tn_dict *d, uint64_t chunk, tn_error *err) TN_MUST_USE;
/* Checks what is about to be read, when `verify` is lazy. */
tn_status tn_dict_touch(const tn_dict *d, const void *at, size_t size, tn_error *err) TN_MUST_USE;
/* TN_E_CKPT: `what` of a table cannot be. */
tn_status tn_dict_damaged(const tn_dict *d, const char *what, tn_error *err) TN_MUST_USE;
/* Keys and starts ascend, every key lies in its bucket. */
tn_status tn_dict_check_data(const tn_dict *d, tn_error *err) TN_MUST_USE;

#endif
