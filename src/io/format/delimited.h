/* delimited.h - fields between delimiters: csv, tsv and the presets made of them.
 *
 * format_delimited.c has the formats; delimited.c makes rows of their fields.
 *
 * Options come from the schema (delimiter, header, quote) and from data (columns, trim, null,
 * short_rows, list, comment). With `quote: multiline` a record may hold line breaks.
 */
#pragma once

#include "io/format/format.h"
#include "io/rows/rows_parsing.h"

/* tn_format.parse. */
tn_status tn_delimited_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows,
                             tn_error *err) TN_MUST_USE;

/* Returns whether a line is blank or a comment; one '\r' may end it. */
bool tn_delimited_is_nothing(tn_bytes line, const tn_schema *schema);

/* Names of columns as a header line has them, or data.columns where there is no header, for people:
 * "id, click, price", and ".." where there are more than anybody reads. */
typedef struct tn_listing {
    tn_text names;
    const char *wanted; /* NULL: nothing is looked for */
    char near[64];      /* the first column that `wanted` may have meant; or "" */
    uint32_t n;
    uint32_t n_numbers; /* names that are numbers, as no header has */
} tn_listing;
void tn_listing_add(tn_listing *listing, tn_bytes line, const tn_schema *schema);

/* Walks the fields of one line. */
typedef struct tn_split {
    tn_bytes line;
    const char *at; /* NULL: no field is left */
    char delimiter;
    bool quotes;
    bool trim;
    tn_text *scratch; /* holds fields with "" in them, put together */
} tn_split;

tn_split tn_split_of(tn_bytes line, const tn_schema *schema, tn_text *scratch);

/* The next field; false: there is none. *bad is set where a quoted field is at fault. A field that
 * was put together has no `text`: its `size` bytes were appended to the scratch. */
bool tn_split_next(tn_split *split, tn_span *out, const char **bad);
