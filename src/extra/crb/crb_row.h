/* crb_row.h - a row of crb between its container (extra/crb/crb_blocks.h) and its parser
 * (extra/crb/format_crb.c), little-endian:
 *
 *     u32 bytes that follow   f32 label (NAN: none)   f32 weight   u32 n | TN_CRB_x
 *     u64 index[n]   f32 value[n], with TN_CRB_VALUES; else all are 1
 */
#pragma once

#include "io/schema/schema.h"

#include <stdbool.h>
#include <stdint.h>

#define TN_CRB_VALUES (UINT32_C(1) << 31)
#define TN_CRB_SHORT (UINT32_C(1) << 30) /* the indices had 4 bytes */

enum { TN_CRB_HEAD = 16 }; /* bytes of a row up to its indices */

/* The slot of an index; TN_NOWHERE: none takes it. */
static inline uint32_t tn_crb_spec_of(const tn_schema *schema, uint64_t index, bool is_short)
{
    const tn_columns *columns = schema->columns;
    const uint32_t bits = schema->slot_bits;
    if (bits == 0) {
        return tn_columns_of_index(columns, schema, index);
    }
    const uint64_t field = schema->slot_bits_high ? index >> ((is_short ? 32 : 64) - bits)
                                                  : index & ((UINT64_C(1) << bits) - 1);
    return field < columns->n_fields ? columns->spec_of_field[field] : TN_NOWHERE;
}
