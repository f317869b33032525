/* dictformat.h - bytes of an inference dictionary (.tnd); shared by its writer and its reader.
 *
 *     header 128 | groups 32 each | tables 320 each | names | JSON
 *     per table: start u32[buckets + 1] | key u64[rows] | rows stride[rows] | group u16[rows]
 *     crc of each 2^20 bytes from 128 on | crc of those
 *
 *     header                                        table
 *     0   magic 54 4e 44 31 0d 0a 1a 0a             0   u64 rows (below 2^32)
 *     8   u16 major, u16 minor, u32 128             8   u64 offset of start
 *     16  model_id[16]  32 model_id[16] of the base 16  u64 offset of key, ascending
 *     48  u64 file bytes   56 u64 rows              24  u64 offset of the rows
 *     64  u64 offset of groups, tables behind       32  u64 offset of group, 0 none
 *     72  u64 offset of names, NUL-terminated       40  u64 key base  48 u32 buckets  52 u32 stride
 *     80  u64 offset of JSON                        56  u8 shift  57 u8 segments  58 u16 kind
 *     88  u64 offset of the crc array               60  u32 0
 *     96  u32 groups, tables, JSON bytes, crcs      64  16 times: u32 offset in row, u32 of scale,
 *     112 u32 flags: 1 delta, 2 group arrays            u16 dim, u8 type, u8 segment, u32 0
 *     116 u16 partitions, first, last, 20           group
 *     124 u32 crc of bytes 0..123                   0   u64 salt  8 u32 offset in names
 *                                                   12  u16 name length  14 u8 tables  15 u8 0
 *                                                   16  u16 table[8]
 *
 * All arrays lie on multiples of 64, gaps are zero. start[b] is the first key of bucket b:
 * b = shift == 64 ? 0 : (key - base) >> shift.
 */
#ifndef TN_IO_DICTFORMAT_H
#define TN_IO_DICTFORMAT_H

#include <stdint.h>

enum {
    TN_DICT_HEADER = 128,
    TN_DICT_GROUP = 32,
    TN_DICT_TABLE = 320,
    TN_DICT_SEGMENT = 16,
    TN_DICT_SEGMENTS_AT = 64, /* in a table */
    TN_DICT_ALIGN = 64,
    TN_DICT_GROUP_TABLES = 8,
    TN_DICT_CHUNK_LOG = 20,
    TN_DICT_CHUNK = 1 << TN_DICT_CHUNK_LOG,
    TN_DICT_DELTA = 1, /* flags */
    TN_DICT_GROUP_ARRAYS = 2,
    TN_DICT_BUCKET_KEYS = 16,
    TN_DICT_ONE_BUCKET = 64, /* shift */
    TN_DICT_REMOVED = 1,     /* kind */
    TN_DICT_TABLES_MAX = 4096,
    TN_DICT_JSON_MAX = 64 << 20,
};

#define TN_DICT_MAGIC UINT64_C(0x0a1a0a0d31444e54)
#define TN_DICT_NO_SCALE UINT32_MAX

#endif
