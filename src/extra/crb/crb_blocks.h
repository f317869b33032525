/* crb_blocks.h - the container of dmlc's compressed row blocks, which becomes a stream of rows
 * (extra/crb/crb_row.h). write_crb.c makes it.
 *
 *     RecordIO   u32 0xced7230a   u32 cflag << 29 | length   payload   zeros to a multiple of 4
 *
 *                cflag 0: whole
 *                1, 2, 3: first, middle, last of one cut where it held the magic
 *
 *     payload    i32 0x474ba8c7   i32 index bytes, 4 or 8   i32 rows
 *
 *                five LZ4 blocks, each after its i32 size (0: absent):
 *                f32 label   u64 offset[rows + 1]   index   f32 value   f32 weight
 *
 * A record may have 64 MiB. It and its arrays may have data.record_bytes_max bytes together, which
 * is checked before memory is taken. Rows are made some at a time.
 */
#pragma once

#include "io/source/decompress.h"

#define TN_CRB_PIECE_MAGIC UINT32_C(0xced7230a)
#define TN_CRB_BLOCK_MAGIC UINT32_C(0x474ba8c7)

enum { TN_CRB_RECORD_MAX = 64 << 20 };
enum { TN_CRB_WHOLE, TN_CRB_FIRST, TN_CRB_MIDDLE, TN_CRB_LAST }; /* cflag */
enum { TN_CRB_LABEL, TN_CRB_OFFSET, TN_CRB_INDEX, TN_CRB_VALUE, TN_CRB_WEIGHT, TN_CRB_ARRAYS };

extern const tn_container tn_container_crb;
