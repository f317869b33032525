/* snapshotfmt.h - the bytes of a shard file, for its writer and its reader. Little-endian.
 *
 *     header, 64 bytes                                     block header, 32 bytes
 *     0  magic                                             0  u32 stored bytes  4  u32 raw bytes
 *     8  u16 major 1, u16 minor 0, u32 header bytes 64     8  u32 rows         12  u16 partition
 *     16 u64 run_id   24 u64 step   32 u64 base step       14 u8 codec (0 none)   15 u8 1 (rows)
 *     40 schema, 8 bytes                                   16 u64 first key    24  u32 0
 *     48 u16 partitions (0: 65536), first, last            28 u32 crc of bytes 0..27 and the
 *     54 u16 flags (1 delta)    56 u32 0                      stored bytes
 *     60 u32 crc of bytes 0..59
 *
 *     row, 32 bytes and floats                             index, 24 bytes per partition
 *     0  u64 key   8  u16 group, bit 15 removed            u64 offset of first block (0 none)
 *     10 u16 segments present                              u64 bytes, u64 rows
 *     12 u32 last_seen    16  f64 show   24  f64 click     trailer, the last 32 bytes
 *     32 f32 per present segment: w[dim], each state       0 u64 index offset    8 u64 rows
 *     a removed row ends behind last_seen                  16 u32 partitions of the file
 *                                                          20 "TNSF"  24 u32 crc of index
 *     no row straddles blocks,                             28 u32 crc of trailer 0..27
 *     no block straddles partitions
 */
#ifndef TN_PS_SNAPSHOTFMT_H
#define TN_PS_SNAPSHOTFMT_H

enum {
    TN_TNS_MAJOR = 1,
    TN_TNS_MINOR = 0,
    TN_TNS_HEADER = 64,
    TN_TNS_BLOCK = 32,
    TN_TNS_ROW = 32,
    TN_TNS_REMOVED_ROW = 16,
    TN_TNS_INDEX = 24,
    TN_TNS_TRAILER = 32,
    TN_TNS_MAGIC_BYTES = 8,
    TN_TNS_FLAG_DELTA = 1,
    TN_TNS_ROW_REMOVED = 0x8000,
    TN_TNS_CODEC_NONE = 0,
    TN_TNS_KIND_ROWS = 1
};

#define TN_TNS_MAGIC "TNS1\r\n\x1a\n"
#define TN_TNS_TRAILER_MAGIC 0x46534e54U /* "TNSF" */

#endif
