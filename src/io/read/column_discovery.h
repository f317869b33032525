/* column_discovery.h - what the head of a file says of its format and its columns.
 *
 *     csv, tsv     the header; c1, c2, .. where the first line holds a number, or header is false
 *     jsonl        the members of its records, those of objects within by their dotted path
 *     tfrecord     the features and feature lists of its records
 *     libsvm, libffm by their pairs; they have no columns
 *
 * For tools that look at data of which nobody has written a configuration yet. Only the first
 * TN_DISCOVERY_BYTES of the first file are looked at, decompressed, so the same data always give
 * the same columns.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_strs tn_strs;   /* config/values.h */
typedef struct tn_text tn_text;   /* base/core/text.h */
typedef struct tn_tree tn_tree;   /* config/tree.h */

enum { TN_DISCOVERY_BYTES = 1 << 20 };

typedef struct tn_discovery_column {
    const char *name;
    const char *type; /* of a slot that takes all of its values: str; int and float of TFRecords */
} tn_discovery_column;

typedef struct tn_discovery {
    const char *path; /* the file that was looked at */
    const char *format;
    bool named; /* csv, tsv: by a header */
    bool trim;  /* csv, tsv: a blank stands beside a delimiter */
    uint32_t n; /* 0: the format has no columns, or fixed ones */
    const tn_discovery_column *column;
} tn_discovery;

/* `data`: the section of that name as far as it is given, or NULL; what it says is not looked for.
 * All of *out lives in `arena`. TN_E_DATA: no such file, one that can be read only once, or one
 * whose format or columns cannot be told; TN_E_IO, TN_E_MEMORY. */
tn_status tn_discovery_find(tn_discovery *out, const tn_strs *paths, const tn_tree *data,
                            tn_arena *arena, tn_error *err) TN_MUST_USE;

/* Whether the columns of a format are found here; the others have slots of their own. */
bool tn_discovery_has_columns(const char *format);

/* The name of a slot that reads column i: "name: price", or "name: c3_unit_price, column: unit
 * price" where slots cannot be called so. */
void tn_discovery_name(const tn_discovery *d, uint32_t i, tn_text *out);

/* The sections `data` (without `train` and a label) and `slots` that read every column, as YAML. */
void tn_discovery_config(const tn_discovery *d, tn_text *out);
