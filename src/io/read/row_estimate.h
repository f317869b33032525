/* row_estimate.h - about how many rows of some files training keeps, without reading all of them.
 *
 * Short data are counted. Of longer ones some blocks of up to eight parts, at equal distances, are
 * parsed, and the share of rows in them is taken for all bytes. Either way the number depends on
 * the data and the options alone, not on threads or time.
 */
#ifndef TN_IO_ROW_ESTIMATE_H
#define TN_IO_ROW_ESTIMATE_H

#include "io/schema/schema.h"

enum { TN_ROW_ESTIMATE_BLOCKS = 128 }; /* of 256 KiB: more are not looked at */

/* *out is negative when what `paths` names comes once, or has no size: a pipe, standard input. */
tn_status tn_row_estimate(const tn_strs *paths, const tn_schema *schema, uint32_t blocks_max,
                          double *out, tn_error *err) TN_MUST_USE;

#endif
