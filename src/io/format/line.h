/* line.h - what all text formats share: cutting lines and refusing what is no text. */
#ifndef TN_IO_LINE_H
#define TN_IO_LINE_H

#include "io/format/format.h"

/* tn_format.cut and .resync of formats with a record per line. The record is without its '\n'.
 * TN_E_LIMIT: a line longer than record_bytes_max. */
tn_status tn_line_cut(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                      tn_error *err) TN_MUST_USE;
size_t tn_line_resync(tn_bytes window, bool last, const tn_schema *schema, bool *found);

/* Drops one '\r' at the end; any other and a NUL are faults. */
tn_status tn_line_clean(tn_bytes *line, const tn_record_location *place, tn_error *err) TN_MUST_USE;

static inline bool tn_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool tn_line_is_blank(tn_bytes line);

#endif
