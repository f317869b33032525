/* scan.h - what must be seen of the data before the first record is parsed.
 *
 * Two defaults depend on the data: the slots of libffm files when the configuration lists none, and
 * `index_base: auto`. Both are decided once, from the head of the first file of data.train, so
 * every reader of a run agrees. Nothing is opened when neither is asked for.
 */
#ifndef TN_IO_SCAN_H
#define TN_IO_SCAN_H

#include "base/core/error.h"
#include "io/schema/schema.h"

enum { TN_SCAN_LINES = 10000, TN_SCAN_BASE_ROWS = 1000 };

/* `slots` as given, or those of the format when none are: `_` (libsvm), f<number> (libffm). A found
 * base replaces *index_base. Lives in `arena`. TN_E_DATA, TN_E_IO, TN_E_MEMORY. */
tn_status tn_scan_first_file(const tn_schema *schema, const tn_tables *slots, tn_arena *arena,
                             tn_tables *out, uint32_t *index_base, tn_error *err) TN_MUST_USE;

/* The columns of the first file that data.train names, for a hint to who has listed no slots: from
 * its header, or from data.columns. Nothing where the format has no columns, or they cannot be
 * seen without taking bytes from who reads them later. Appends to `out`. */
void tn_scan_columns(const tn_schema *schema, tn_text *out);

#endif
