/* format.h - what a data format is: pure functions on bytes. io/write/writer.h is the way back.
 *
 * cut, head and parse never open a file, never block, know no locale and keep no
 * state. That makes a format trivially parallel (each reader thread parses its own
 * records) and trivially fuzzable (test/fuzz/fuzz_format.c walks formats.def).
 *
 * To add one: write src/io/format/format_<name>.c, add TN_FORMAT(<name>) to formats.def.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "io/rows/rows.h"

struct tn_binder;
struct tn_data_opts;
struct tn_tables;
struct tn_tree;

/* Places of the columns of one source; see tn_format.head. Owned by the reader of the source. */
typedef struct tn_head {
    uint32_t n_columns;
    uint32_t n_absent; /* the last ones of them, which no record has: they read as nothing */
    uint32_t *column;  /* schema->columns->n: place in a record; TN_NOWHERE: not there */
    uint32_t in_row;   /* the column of the first spec, when those of all follow it in order; else
                         TN_NOWHERE */
} tn_head;

/* The reader fills it in. Parsers are fast because nobody counts lines: `line` is 0 at first (as it
 * is in binary formats), and a record at fault is parsed once more with its line. */
typedef struct tn_record_location {
    const char *source;
    uint64_t line;   /* from 1; 0: say the offset */
    uint64_t offset; /* offset of the record's first byte */
    const tn_head *head;
} tn_record_location;

typedef struct tn_container tn_container; /* io/source/decompress.h */

typedef struct tn_format {
    const char *name;
    const char *help;
    bool binary;     /* places are byte offsets, not lines */
    bool pairs;      /* records are lists of keys with values, not columns */
    bool namespaces; /* slots are namespaces of pairs; a feature without a name has a number */
    const tn_container *container; /* packs the records of its files; NULL: none */
    const char *preset; /* YAML laid under the user's file when this format is named; or NULL */

    /* Options of `data` and of a slot that some formats read and others do not: those that this one
     * reads, NULL-terminated; NULL: none. Where it is named, those of the others are refused. */
    const char *const *data_options;
    const char *const *slot_options;

    /* Cuts the next record off the front of *window; `last`: no bytes come after it. TN_END: no
     * whole record yet, come back with more bytes (never when `last` and not empty). Checks framing
     * and checksums alone. On failure *window is as before. */
    tn_status (*cut)(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                     tn_error *err);

    /* Returns how many bytes to pass over after a cut has failed and bad records are allowed.
     * *found: a record can begin after them, or nothing is left of a last window; else more bytes
     * are needed to go on. NULL: cut never fails. */
    size_t (*resync)(tn_bytes window, bool last, const tn_schema *schema, bool *found);

    /* Binary: the bytes of the record that begins the window, by its header alone; 0: the header is
     * not whole, or wrong. Finds where the records of a part begin without reading those before. */
    uint64_t (*hop)(tn_bytes window, const tn_schema *schema);

    /* Fills head->column (room for schema->columns->n) from the beginning of a source, and takes
     * what says so off the window. TN_END: more bytes are needed. NULL: records need no head. */
    tn_status (*head)(tn_bytes *window, bool last, const tn_schema *schema,
                      const tn_record_location *place, tn_head *head, tn_error *err);

    /* Appends the one example in `record` to `rows`. TN_END: there is none, the record is blank or
     * a comment. On failure (TN_E_DATA; TN_E_MEMORY, TN_E_LIMIT) nothing was appended. */
    tn_status (*parse)(tn_bytes record, const tn_schema *schema, const tn_record_location *place,
                       tn_rows *rows, tn_error *err);
} tn_format;

extern const tn_format *const tn_all_formats[]; /* NULL-terminated */

const tn_format *tn_format_find(const char *name); /* NULL: there is none */

/* How a file of this format (NULL: any) is compressed for which `asked` was asked: in the format's
 * container, or as asked. TN_E_CONFIG: it has one, and another compression was asked for. */
tn_status tn_format_compression(const tn_format *f, uint32_t asked, uint32_t *out,
                                tn_error *err) TN_MUST_USE;

const char *tn_format_preset(const char *name); /* NULL: no such format, or it has none */

/* Whether a list of options, which may be NULL, has `key`. */
bool tn_format_reads(const char *const *options, const char *key);

/* Reports to b->diag a data->format that does not exist, or else each option of `tree`, the map of
 * section b->path, that the format does not read. An option at its default is no fault: a printed
 * configuration has all of them. */
void tn_format_check_data(const struct tn_binder *b, const struct tn_tree *tree,
                          const struct tn_data_opts *data);

/* The same for the slots of a format, which may not exist. Not for a conversion, whose other format
 * may read them. */
void tn_format_check_slots(const struct tn_binder *b, const char *format,
                           const struct tn_tables *slots);

/* Lines, which all text formats share. */

/* tn_format.cut and .resync of formats with a record per line. The record is without its '\n'.
 * TN_E_LIMIT: a line longer than record_bytes_max. */
tn_status tn_line_cut(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                      tn_error *err) TN_MUST_USE;
/* The same once its end is found, or NULL. */
tn_status tn_line_take(tn_bytes *window, const char *end, bool last, const tn_schema *schema,
                       tn_bytes *record, tn_error *err) TN_MUST_USE;
size_t tn_line_resync(tn_bytes window, bool last, const tn_schema *schema, bool *found);

/* Drops one '\r' at the end; any other and a NUL are faults. */
tn_status tn_line_clean(tn_bytes *line, const tn_record_location *place, tn_error *err) TN_MUST_USE;

static inline bool tn_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool tn_line_is_blank(tn_bytes line);

/* Cleans a line and begins its row. TN_END: it is blank, and nothing has begun. */
tn_status tn_line_begin(tn_bytes *line, const tn_record_location *place, tn_rows *rows,
                        tn_error *err) TN_MUST_USE;

/* ---- the place of a record, and faults that name it in the style of a compiler ----
 *
 *     day_3.tsv:1207:15: error: expected a decimal integer, found "12x"
 *       1<tab>2<tab>7<tab>12x<tab>68fd1e64
 *                         ^
 *     day_3.tfrecord:@73400320: error: corrupt record data (crc 1b2c77aa, computed 77aa1b2c)
 *
 * Lines and byte columns count from 1. In compressed input places count decompressed bytes. */

/* Fails with TN_E_DATA. `at` points into `record`, or is NULL: its beginning. */
tn_status tn_record_location_fail(const tn_record_location *place, tn_bytes record, const char *at,
                                  tn_error *err, const char *fmt, ...) TN_PRINTF(5, 6);

/* The same for a token that tn_rows refused. */
tn_status tn_record_location_fault(const tn_record_location *place, tn_bytes record, tn_bytes token,
                                   tn_fault fault, tn_error *err);

#define TN_HINT_UTF16 "'iconv -f UTF-16 -t UTF-8 FILE' writes it as UTF-8, which is read"

/* Adds "hint: .." to a fault; NULL: nothing. Returns the status of the fault. */
tn_status tn_record_advise(tn_status fault, const char *hint, tn_error *err);

/* The index of a text that usually means that there is no value (NA, null, ?, \\N, ..), below
 * TN_MISSING_WORDS; or that. */
enum { TN_MISSING_WORDS = 32 };
extern const char *const tn_missing_words[TN_MISSING_WORDS];
uint32_t tn_missing_word(const char *text, size_t size);

/* Adds to such a fault what the user can write so that the token is taken, if there is something:
 * another type of the slot, a word of data.null, or, without a slot, what data.label may say. */
void tn_record_location_hint(const tn_schema *schema, const tn_slot_spec *spec, tn_bytes token,
                             tn_fault fault, tn_error *err);

/* Ends the row of `record` that has begun: keeps it if `status` is TN_OK and it breaks no rule of
 * tn_rows_end; else takes it back and returns what is wrong. */
tn_status tn_record_end(tn_bytes record, const tn_record_location *place, tn_status status,
                        tn_rows *rows, tn_error *err) TN_MUST_USE;

/* Says that a row, which is open, breaks a rule: `fault` in `spec`, as tn_rows_end found. */
tn_status tn_record_broken_rule(const tn_record_location *place, tn_bytes record,
                                const tn_rows *rows, const tn_slot_spec *spec, tn_fault fault,
                                tn_error *err) TN_MUST_USE;

/* "expected a decimal integer": the part of such a text that is the same for all faults of a kind.
 * Points into `text`. */
tn_bytes tn_record_location_reason(const char *text);
