/* rows.h - a growing block of parsed examples: parsers write it, batches are made of it.
 *
 *     row      label weight first ..        entry    slot key x
 *      0         1     1     0                0        3   a  1     in the order of the record
 *      1         0     2.5   2                1        0   b  1
 *                                             2        3   c  .5    row 1 begins here
 *     numeric  n * tn_schema_numbers(schema) floats, row by row, after transforms
 *
 * A parser begins a row, adds what it finds, and ends it, or rolls it back. Tokens
 * become keys in here, by types, salts, transforms and the rules of the slot. Memory is
 * kept for the next block. One thread at a time.
 */
#pragma once

#include "base/core/error.h"
#include "base/math/key.h" /* IWYU pragma: export */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_schema tn_schema; /* io/schema/schema.h */
typedef struct tn_slot_spec tn_slot_spec;
typedef struct tn_text tn_text; /* base/core/text.h */

/* One key of a row. */
typedef struct tn_entry {
    uint64_t key;
    uint32_t slot; /* place among the slots of a batch: schema->slot[slot] */
    float value;   /* x_j */
} tn_entry;

#define TN_TOKEN_NONE UINT32_MAX

typedef struct tn_token { /* in tn_rows.text */
    uint32_t at;
    uint32_t size; /* TN_TOKEN_NONE: the record has no such text (`absent`) */
} tn_token;

typedef struct tn_parsed_row {
    float label;    /* NAN with `label: none` */
    float weight;   /* 1 when none is given */
    uint32_t first; /* its first entry; tn_rows_end_of is one after the last */
    tn_token id;    /* record id; size 0: none */
    uint64_t group; /* sign of data.group, or the qid */
    uint64_t at;    /* begin of the record in its source, set by the reader */
} tn_parsed_row;

/* Limits |x_j|: a step squares gradients of x_j, and a float32 ends at 3.4e38. */
#define TN_X_MAX 1e18F

/* Why something was not taken; io/format/format.h makes a sentence of it. */
typedef enum tn_fault {
    TN_FAULT_NONE = 0,
    TN_FAULT_ID,
    TN_FAULT_ID_RANGE,
    TN_FAULT_INT,
    TN_FAULT_INT_RANGE,
    TN_FAULT_HEX,
    TN_FAULT_FLOAT,
    TN_FAULT_FLOAT_RANGE,
    TN_FAULT_NOT_FINITE,
    TN_FAULT_X_RANGE,    /* an x_j beyond TN_X_MAX */
    TN_FAULT_LABEL,      /* not one of the target (target.h); not one of label.values */
    TN_FAULT_NO_LABEL,   /* the field is empty, or nan */
    TN_FAULT_WEIGHT,     /* not in 0 .. 2^20 */
    TN_FAULT_VALUES,     /* more than TN_VALUES_MAX values in a row */
    TN_FAULT_TWO_VALUES, /* a second value for a number */
    TN_FAULT_DUPLICATE,  /* `duplicates: error` */
    TN_FAULT_SUM,        /* `duplicates: sum` beyond a float */
    TN_FAULT_UNEVEN,     /* lists of a sequence of several lengths: io/rows/list_lengths.h */
    TN_FAULT_WIDTH,      /* a vector of another length */
    TN_FAULT_DATE,       /* no date, where the transform wants one */
    TN_FAULT_BASE,       /* index 0 with `index_base: 1` */
    TN_FAULT_MEMORY,
} tn_fault;

typedef struct tn_rows {
    const tn_schema *schema;
    uint32_t n;
    tn_parsed_row *row;
    uint32_t n_entries;
    tn_entry *entry;
    float *numeric; /* n * tn_schema_numbers(schema): of the input, then beside the row */
    char *text;     /* record ids, and tokens when signs are kept */
    uint32_t text_size;
    tn_token *token;         /* n_entries: the text each came from; NULL unless signs are kept */
    tn_token *numeric_token; /* n * tn_schema_numbers(schema), likewise */
    double *real;            /* n_entries: the number that a key was made of, NAN of any other;
                                NULL unless TN_ROWS_REALS are kept */
    /* Slots that all rows have in common, by `common_slot`, in a block of one row: crosses of them
     * and of slots of a row are the row's. Lent by a scorer; NULL: there are none. */
    const struct tn_rows *common;
    const bool *common_slot;
    uint64_t duplicate_key;       /* tf.Example: names that came twice */
    struct rows_private *private; /* io/rows/rows_parsing.h */
} tn_rows;

enum {
    TN_ROWS_IDS = 1,   /* keep record ids; else tn_rows_id does nothing */
    TN_ROWS_SIGNS = 2, /* and the text of every token, so that rows can be written again */
    TN_ROWS_BARE = 4,  /* may come without entries; see tn_bare */
    TN_ROWS_REALS = 8, /* keep the numbers of slots that make keys of them */
};
/* Makes an empty block. `schema` must outlive it; `keep` is TN_ROWS_x or 0. On failure *out is
 * NULL. */
tn_status tn_rows_new(tn_rows **out, const tn_schema *schema, uint32_t keep,
                      tn_error *err) TN_MUST_USE;
void tn_rows_free(tn_rows *rows);  /* NULL is fine */
void tn_rows_clear(tn_rows *rows); /* keeps the memory */

static inline uint32_t tn_rows_end_of(const tn_rows *rows, uint32_t i)
{
    return i + 1 < rows->n ? rows->row[i + 1].first : rows->n_entries;
}

/* Counts the rows that have a weight; the others change nothing. */
static inline uint64_t tn_rows_that_count(const tn_rows *rows)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        n += rows->row[i].weight != 0;
    }
    return n;
}

/* Makes room for whatever a record of that many bytes can hold. The new row is rows->row[rows->n]
 * and counts once it is ended. TN_E_MEMORY, TN_E_LIMIT (2^31 of anything in one block). */
tn_status tn_rows_begin(tn_rows *rows, size_t record_bytes, tn_error *err) TN_MUST_USE;
/* Makes room for one more value of the open row, whose size was not known when it began. */
tn_status tn_rows_more(tn_rows *rows, tn_error *err) TN_MUST_USE;

/* Returns the numbers beside row i, labels and factors of tasks; NULL: the rows have no numbers. */
const float *tn_rows_aside(const tn_rows *rows, uint32_t i);

/* Add one value of a slot or numeric column, never a null one; `x` is its x_j. int64 features are
 * reinterpreted for `id`. A real is for specs that want a number (tn_spec_is_number); one that is a
 * float32 means what tn_transform_of_single returns. */
tn_fault tn_rows_token(tn_rows *rows, const tn_slot_spec *spec, const char *text, size_t size,
                       float x) TN_MUST_USE;
tn_fault tn_rows_integer(tn_rows *rows, const tn_slot_spec *spec, int64_t value,
                         float x) TN_MUST_USE;
tn_fault tn_rows_real(tn_rows *rows, const tn_slot_spec *spec, double value) TN_MUST_USE;
/* As tn_rows_real, of a double that means itself, as its digits in a text do. */
tn_fault tn_rows_double(tn_rows *rows, const tn_slot_spec *spec, double value) TN_MUST_USE;

/* Ends one value of a list. Nothing was added since `before`, the n_entries before it: it was a
 * null, for which a slot of a sequence gets the key of the empty text, so that it keeps its place,
 * and another slot none. `x` as above; NAN is 1. */
tn_fault tn_rows_keep_place(tn_rows *rows, const tn_slot_spec *spec, uint32_t before,
                            float x) TN_MUST_USE;

tn_fault tn_rows_label(tn_rows *rows, const char *text, size_t size) TN_MUST_USE;
tn_fault tn_rows_label_number(tn_rows *rows, double value) TN_MUST_USE;
tn_fault tn_rows_weight(tn_rows *rows, const char *text, size_t size) TN_MUST_USE;
tn_fault tn_rows_weight_number(tn_rows *rows, double value) TN_MUST_USE;
void tn_rows_group(tn_rows *rows, uint64_t sign);
/* Reads the group by the type of the slot that reads the column; without one as an id, else the
 * text is hashed. */
void tn_rows_group_text(tn_rows *rows, const char *text, size_t size);
tn_fault tn_rows_id(tn_rows *rows, const char *text, size_t size) TN_MUST_USE;

/* Applies the rules of whole slots, adds crosses, and keeps the row; on a fault (*spec: whose) it
 * stays open. */
tn_fault tn_rows_end(tn_rows *rows, const tn_slot_spec **spec) TN_MUST_USE;
/* After TN_FAULT_UNEVEN or TN_FAULT_WIDTH of `spec`, before the row is taken back: says which slots
 * have how many values. Any other fault: appends nothing. */
void tn_rows_explain(const tn_rows *rows, const tn_slot_spec *spec, tn_fault fault, tn_text *out);
void tn_rows_rollback(tn_rows *rows);

/* Bare rows: a grid of keys, without entries; half as large, and a batch is made of many rows at
 * once (tn_batch_builder_add).
 *
 *     a grid, where a slot has one key or none: for each row a mask of those that have one, and
 *     room for all; stride is 1 + n_slots
 *         key   1011 a b - d   0101 e - g -
 *
 *     a grid of signs, about half as large, of which a batch makes the keys: after the mask that
 *     of the signs from 2^32 on, then the low 32 bits of each, two to a word; none reaches 2^33
 *         key   1011 0010 AB -D   0101 0000 E- G-
 *
 * Rows that were made with TN_ROWS_BARE may come so, when all x_j are 1: n_entries and the `first`
 * of each row count as ever, but tn_rows.entry is not filled. */
enum { TN_GRID_SLOTS = 64 }; /* at most */

typedef struct tn_bare {
    const uint64_t *key;
    uint32_t stride;
    bool signs; /* the grid is of signs */
} tn_bare;

/* Returns the sign of a slot in a row of a grid of signs. */
static inline uint64_t tn_bare_sign(const uint64_t *row, uint32_t slot)
{
    const uint32_t *low = (const uint32_t *)(row + 2);
    return low[slot] | (row[1] >> slot & 1) << 32;
}

/* Returns the grid; NULL: the rows have entries. */
const tn_bare *tn_rows_bare(const tn_rows *rows);

/* Returns the key of a slot in row i of a grid, whose mask says that there is one. */
uint64_t tn_rows_grid_key(const tn_rows *rows, uint32_t i, uint32_t slot);
