/* dictformat.h - bytes of an inference dictionary (.tnd); shared by its writer and its reader.
 *
 *     header 128 | groups 32 each | tables 320 each | names | JSON
 *     per table: start u32[buckets + 1] | key u64[rows] | rows stride[rows] | group u16[rows]
 *     crc of each 2^20 bytes from 128 on | crc of those
 *
 * Heads are in the file as these structs are in memory, little-endian and without holes; all
 * offsets are from the start of the file. Arrays lie on multiples of 64, gaps are zero. start[b] is
 * the first key of bucket b: b = shift == 64 ? 0 : (key - key_base) >> shift.
 */
#pragma once

#include <stdint.h>

enum {
    TN_DICT_ALIGN = 64,
    TN_DICT_GROUP_TABLES = 8,
    TN_DICT_SEGMENTS = 16,
    TN_DICT_CHUNK_LOG = 20,
    TN_DICT_CHUNK = 1 << TN_DICT_CHUNK_LOG,
    TN_DICT_DELTA = 1, /* flags */
    TN_DICT_GROUP_ARRAYS = 2,
    TN_DICT_BUCKET_KEYS = 16,
    TN_DICT_ONE_BUCKET = 64, /* shift */
    TN_DICT_REMOVED = 1,     /* kind */
    TN_DICT_TABLES_MAX = 4096,
    TN_DICT_JSON_MAX = 64 << 20,
    TN_MODEL_ID_BYTES = 16,
    TN_DICT_MINOR = 1, /* minor version of files with int4 or 1bit; others have 0 */
};

#define TN_DICT_MAGIC UINT64_C(0x0a1a0a0d31444e54)
#define TN_DICT_NO_SCALE UINT32_MAX

typedef struct tn_dict_header {
    uint64_t magic; /* 54 4e 44 31 0d 0a 1a 0a */
    uint16_t major, minor;
    uint32_t header_bytes; /* 128 */
    uint8_t model_id[TN_MODEL_ID_BYTES];
    uint8_t base_id[TN_MODEL_ID_BYTES]; /* the layer below a delta */
    uint64_t file_bytes, rows;
    uint64_t groups_at; /* heads of groups, then those of tables */
    uint64_t names_at;  /* NUL-terminated */
    uint64_t json_at, crc_at;
    uint32_t n_groups, n_tables, json_bytes, n_crcs;
    uint32_t flags;
    uint16_t partitions, first, last; /* how many the key space has, and the range of this file */
    uint16_t chunk_log;               /* 20 */
    uint32_t crc;                     /* checksum of all members above */
} tn_dict_header;

typedef struct tn_dict_group_head {
    uint64_t salt;
    uint32_t name_at; /* in names */
    uint16_t name_bytes;
    uint8_t n_tables, zero;
    uint16_t table[TN_DICT_GROUP_TABLES];
} tn_dict_group_head;

typedef struct tn_dict_segment_head {
    uint32_t offset, scale; /* in the row; TN_DICT_NO_SCALE; segments of a type may share one */
    uint16_t dim;
    uint8_t type, segment; /* tn_dict_type; its number in the JSON */
    uint32_t zero;
} tn_dict_segment_head;

typedef struct tn_dict_table_head {
    uint64_t rows; /* below 2^32 */
    uint64_t start_at;
    uint64_t key_at; /* ascending */
    uint64_t rows_at;
    uint64_t group_at; /* 0: none */
    uint64_t key_base;
    uint32_t buckets, stride;
    uint8_t shift, n_segments;
    uint16_t kind;
    uint32_t zero;
    tn_dict_segment_head segment[TN_DICT_SEGMENTS];
} tn_dict_table_head;

_Static_assert(sizeof(tn_dict_header) == 128 && sizeof(tn_dict_group_head) == 32 &&
                   sizeof(tn_dict_segment_head) == 16 && sizeof(tn_dict_table_head) == 320,
               "heads without holes");
