/* crb_row.h - a row of crb between its container (io/source/crb_blocks.h) and its parser
 * (io/format/format_crb.c), little-endian:
 *
 *     u32 bytes behind it   f32 label (NAN: none)   f32 weight   u32 n | TN_CRB_x
 *     u64 index[n]   f32 value[n], with TN_CRB_VALUES; else all are 1
 */
#ifndef TN_IO_CRB_ROW_H
#define TN_IO_CRB_ROW_H

#include <stdint.h>

#define TN_CRB_VALUES (UINT32_C(1) << 31)
#define TN_CRB_SHORT (UINT32_C(1) << 30) /* the indices had 4 bytes */

enum { TN_CRB_HEAD = 16 }; /* bytes of a row up to its indices */

#endif
