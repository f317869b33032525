/* admission.h - what nets read of a row that is not in the table's hands: in exports and pages. */
#pragma once

#include <stdint.h>

typedef struct tn_row_view tn_row_view; /* base/keys/record.h */
typedef struct tn_table tn_table;       /* ps/table/table.h */

/* Returns the segments of a row that a net reads: those it has, unless l1_shrk hides some. */
uint16_t tn_admission_segments(const tn_table *t, const tn_row_view *row);
