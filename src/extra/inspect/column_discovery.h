/* column_discovery.h - what the head of a file says of its format and its columns.
 *
 *     csv, tsv     the header; c1, c2, .. where the first line is data, or header is false; what
 *                  separates fields: a tab, ',', ';', '|' or the byte 1, where nothing says it
 *     jsonl        the members of its records, those of objects within by their dotted path
 *     tfrecord     the features and feature lists of its records
 *     libsvm, libffm, vw by their lines; they have no columns
 *
 * For tools that look at data of which nobody has written a configuration yet. Only the first
 * TN_DISCOVERY_BYTES of the first file are looked at, decompressed, so the same data always give
 * the same columns.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_strs tn_strs;   /* config/values.h */
typedef struct tn_text tn_text;   /* base/core/text.h */
typedef struct tn_tree tn_tree;   /* config/tree.h */

enum { TN_DISCOVERY_BYTES = 1 << 20 };

typedef struct tn_discovery_column {
    const char *name;
    const char *type;   /* type of a slot that takes all values: str; for TFRecords int, float */
    uint32_t place;     /* number of the field, from 0 */
    const char *unread; /* why no slot can read it; NULL: one can */
} tn_discovery_column;

typedef struct tn_discovery {
    const char *path; /* the file that was looked at */
    const char *format;
    bool named;            /* csv, tsv: by a header */
    bool trim;             /* csv, tsv: a blank is beside a delimiter */
    const char *delimiter; /* csv, tsv: not that of the format; NULL: it is, or it was given */
    uint32_t n;            /* 0: the format has no columns, or fixed ones */
    uint32_t n_unread;
    const tn_discovery_column *column; /* n, then n_unread that no slot can read */
} tn_discovery;

/* Looks at the head of the data. `data` is the section of that name as far as it is given, or NULL;
 * options in it are kept. All of *out lives in `arena`. TN_E_DATA: there is no such file, it can be
 * read only once, or its format or columns are not recognised; TN_E_IO, TN_E_MEMORY. */
tn_status tn_discovery_find(tn_discovery *out, const tn_strs *paths, const tn_tree *data,
                            tn_arena *arena, tn_error *err) TN_MUST_USE;

/* Whether the columns of a format are found here; the others have slots of their own. */
bool tn_discovery_has_columns(const char *format);

/* Whether a column of this name may be the label: label, click, target .., of any case. */
bool tn_discovery_is_label(const char *name);

/* The name of a slot that reads column i: "name: price", or "name: c3_unit_price, column: unit
 * price" where slots cannot be called so. `more` goes behind the name: "_weekday", or "". */
void tn_discovery_name(const tn_discovery *d, uint32_t i, const char *more, tn_text *out);

/* The sections `data` (without `train` and a label) and `slots` that read every column, as YAML. */
void tn_discovery_config(const tn_discovery *d, tn_text *out);
