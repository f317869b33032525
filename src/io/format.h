/* format.h - what a data format is: two pure functions on bytes, and one that writes.
 *
 * cut and parse never open a file, never block, never allocate, know no locale
 * and keep no state. That makes a format trivially parallel (each reader thread
 * parses its own records) and trivially fuzzable (test/fuzz/fuzz_format.c walks
 * formats.def).
 *
 * To add one: write src/io/format_<name>.c, add TN_FORMAT(<name>) to formats.def.
 */
#ifndef TN_IO_FORMAT_H
#define TN_IO_FORMAT_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "io/rows.h"
#include "io/schema.h"

/* Where a record stands, for messages; the reader fills it in. */
typedef struct tn_place {
    const char *source;
    uint64_t line;   /* text: from 1 */
    uint64_t offset; /* of the record's first byte, decompressed */
} tn_place;

typedef struct tn_format {
    const char *name;
    const char *help;
    bool binary;        /* places are byte offsets, not lines */
    const char *preset; /* YAML laid under the user's file when this format is named; or NULL */

    /* Cuts the next record off the front of *window; `last`: nothing comes behind it. TN_END: no whole
     * record yet, come back with more bytes (never when `last`). Checks framing and checksums, looks no deeper. */
    tn_status (*cut)(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record, tn_error *err);

    /* After a cut failed in a binary format and bad records are allowed: moves to the next place where a record
     * can begin; the bytes passed over, or SIZE_MAX: more bytes are needed. NULL: cut never fails. */
    size_t (*resync)(const tn_bytes *window, bool last, const tn_schema *schema);

    /* Appends the one example in `record` to `rows`, or appends nothing and fails (TN_E_DATA). */
    tn_status (*parse)(tn_bytes record, const tn_schema *schema, const tn_place *place, tn_rows *rows, tn_error *err);

    /* The first lines of a file (header), and one record; both append to `out`. `row` indexes `rows`,
     * which were made with tn_rows_keep_signs. NULL: TNet does not write this format. */
    void (*write_head)(const tn_schema *schema, tn_text *out);
    tn_status (*write)(const tn_rows *rows, uint32_t row, const tn_schema *schema, tn_text *out, tn_error *err);
} tn_format;

extern const tn_format *const tn_all_formats[]; /* NULL-terminated */
const tn_format *tn_format_find(const char *name);

#endif
