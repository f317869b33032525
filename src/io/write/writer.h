/* writer.h - rows back to records, in any format that is read here.
 *
 *     tn_writer *w = NULL;
 *     TN_TRY(tn_writer_new(&w, "csv", schema, 0, err));      may the format say all of this?
 *     tn_writer_head(w, &text);                              a header line, or nothing
 *     TN_TRY(tn_writer_row(w, rows, i, &text, err));         once for each row
 *     TN_TRY(tn_writer_pack(w, &text, err));                 when they are to be stored
 *     tn_writer_free(w);
 *
 * The schema is that of the file to be written: format, columns, separators, fields and ranges are
 * taken from it. The rows may stem from another format, but from the same list of slots, and were
 * made with TN_ROWS_SIGNS (and TN_ROWS_IDS): values are written as they were read, before
 * transforms. Labels are written as 0 .. 1.
 *
 * A value that a format cannot express is an error, never left out in silence. A writer is
 * read-only after new: any number of threads may share it, each with a text of its own.
 */
#pragma once

#include "base/core/text.h"
#include "io/rows/rows.h"

typedef struct tn_writer tn_writer;

enum {
    /* Write a key's sign in decimal in place of its text; the slots of `schema` are of type id then
     * and read back as the same keys. For words and negative numbers in the libsvm family. */
    TN_WRITE_SIGNS = 1,
};

/* Everything is lent and must outlive the writer. TN_E_CONFIG: the format cannot express the
 * schema. On failure *out is NULL. */
tn_status tn_writer_new(tn_writer **out, const char *format, const tn_schema *schema,
                        uint32_t flags, tn_error *err) TN_MUST_USE;
void tn_writer_free(tn_writer *w); /* NULL is fine */

/* The names of the columns, as a list for data.columns; nothing where a format has none. */
void tn_writer_columns(const tn_writer *w, tn_text *out);

void tn_writer_head(const tn_writer *w, tn_text *out);

/* TN_E_DATA: this row cannot be expressed; `out` may hold a piece of it then. */
tn_status tn_writer_row(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                        tn_error *err) TN_MUST_USE;

/* Makes what is stored of the rows in `text`: with crb blocks, else they are. It is checked, too.
 */
tn_status tn_writer_pack(const tn_writer *w, tn_text *text, tn_error *err) TN_MUST_USE;
