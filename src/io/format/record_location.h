/* record_location.h - where a record stands, and faults that say so in the style of a compiler.
 *
 *     day_3.tsv:1207:15: error: expected a decimal integer, found "12x"
 *       1<tab>2<tab>7<tab>12x<tab>68fd1e64
 *                         ^
 *     day_3.tfrecord:@73400320: error: corrupt record data (crc 1b2c77aa, computed 77aa1b2c)
 *
 * Lines and byte columns count from 1. In compressed input places count decompressed bytes.
 */
#ifndef TN_IO_RECORD_LOCATION_H
#define TN_IO_RECORD_LOCATION_H

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "io/rows/rows.h"

/* Where the columns of one source stand; see tn_format.head. Owned by the reader of the source. */
typedef struct tn_head {
    uint32_t n_columns;
    uint32_t *column; /* schema->columns->n: place in a record; TN_NOWHERE: not there */
    uint32_t in_row;  /* the column of the first spec, when those of all follow it in order; else
                         TN_NOWHERE */
} tn_head;

/* The reader fills it in. Parsers are fast because nobody counts lines: `line` is 0 at first (as it
 * is in binary formats), and a record at fault is parsed once more with its line. */
typedef struct tn_record_location {
    const char *source;
    uint64_t line;   /* from 1; 0: say the offset */
    uint64_t offset; /* of the record's first byte */
    const tn_head *head;
} tn_record_location;

/* Fails with TN_E_DATA. `at` points into `record`, or is NULL: its beginning. */
tn_status tn_record_location_fail(const tn_record_location *place, tn_bytes record, const char *at,
                                  tn_error *err, const char *fmt, ...) TN_PRINTF(5, 6);

/* The same for a token that tn_rows refused. */
tn_status tn_record_location_fault(const tn_record_location *place, tn_bytes record, tn_bytes token,
                                   tn_fault fault, tn_error *err);

/* The same for a rule of a whole slot, which tn_rows_end found broken. */
tn_status tn_record_location_rule(const tn_record_location *place, tn_bytes record,
                                  const tn_slot_spec *spec, tn_fault fault, tn_error *err);

/* "expected a decimal integer": the part of such a text that is the same for all faults of a kind.
 * Points into `text`. */
tn_bytes tn_record_location_reason(const char *text);

#endif
