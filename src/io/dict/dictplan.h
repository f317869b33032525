/* dictplan.h - which rows of a dictionary share a table, and where all lies in the file; for
 * dictwrite.c only.
 *
 *     set      layout of the record + segments present, with its rows
 *     table    a set that has one of its own; other sets of the layout go to one that contains them
 */
#ifndef TN_IO_DICTPLAN_H
#define TN_IO_DICTPLAN_H

#include "base/core/error.h"
#include "io/dict/dictformat.h"
#include "io/dict/dictwrite.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_text tn_text; /* base/core/text.h */

enum { TN_DICT_SETS_MAX = 4096 };

typedef struct tn_dict_set {
    uint32_t layout;  /* the first record of that layout */
    uint16_t present; /* segments; 0: removed keys */
    uint16_t met;     /* that many others were met before */
    uint32_t table;
    uint64_t rows;
    uint64_t *group_rows; /* n_groups */
} tn_dict_set;

typedef struct tn_dict_column {
    uint32_t offset, scale; /* in the row; TN_DICT_NO_SCALE */
    uint32_t at, dim;       /* in the source's values */
    uint32_t segment;       /* of the file */
    uint32_t of_record;     /* bit in `present` */
} tn_dict_column;

typedef struct tn_dict_plan_table {
    const tn_dict_set *set;
    uint64_t rows;
    uint32_t stride;
    uint32_t n_columns;
    tn_dict_column column[TN_SEGMENTS_MAX];
    bool is_run;   /* its rows are as many floats on end, when the source has them side by side */
    bool has_gaps; /* its rows have bytes that are no segment's */
    uint64_t base; /* first key that the file may hold */
    uint32_t shift, buckets;
    uint64_t start_at, key_at, rows_at, group_at; /* in the file */
} tn_dict_plan_table;

typedef struct tn_dict_plan {
    const tn_dict_spec *spec;
    uint32_t *layout_of; /* per record: the first one that is like it */
    uint32_t n_sets;
    tn_dict_set *set;
    uint32_t last;      /* set that was found last */
    uint32_t *table_of; /* per set, as they were met .. */
    uint32_t *place_of; /* .. and where it stands in `set` once there are tables */
    uint32_t n_tables;
    tn_dict_plan_table *table;
    uint64_t rows;
    uint32_t n_segments;
    const char *segment[TN_SEGMENTS_MAX];
    uint64_t names_at, json_at, crc_at; /* in the file */
    size_t json_bytes;
} tn_dict_plan;

tn_status tn_dict_plan_new(tn_dict_plan **out, const tn_dict_spec *spec, tn_error *err) TN_MUST_USE;
void tn_dict_plan_free(tn_dict_plan *p); /* NULL is fine */

/* The set of a row; NULL: no memory, or too many. None of them moves before there are tables. */
tn_dict_set *tn_dict_plan_set(tn_dict_plan *p, const tn_dict_entry *e, tn_error *err);

/* After all rows were counted: sets become tables, and everything gets its place in the file. */
tn_status tn_dict_plan_tables(tn_dict_plan *p, tn_error *err) TN_MUST_USE;

/* All that stands in front of the JSON, appended: header, groups, tables, names. */
void tn_dict_plan_head(const tn_dict_plan *p, tn_text *out);

#endif
