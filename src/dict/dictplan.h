/* dictplan.h - which rows of a dictionary share a table, and where all lies in the file; for
 * dictwrite.c only.
 *
 *     set      layout of the record + segments present, with its rows
 *     table    a set that has one of its own; other sets of the layout go to one that contains them
 */
#pragma once

#include "base/core/error.h"
#include "dict/dictformat.h"
#include "dict/dictwrite.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_text tn_text;   /* base/core/text.h */

enum { TN_DICT_SETS_MAX = 4096 };

typedef struct tn_dict_set {
    uint32_t layout;  /* the first record of that layout */
    uint16_t present; /* segments; 0: removed keys */
    uint32_t table;
    uint64_t rows;
    uint64_t *group_rows; /* n_groups */
} tn_dict_set;

typedef struct tn_dict_column {
    uint32_t at;        /* in the source's values */
    uint32_t of_record; /* bit in `present` */
} tn_dict_column;

typedef struct tn_dict_plan_table {
    const tn_dict_set *set;
    tn_dict_table_head head;
    tn_dict_column column[TN_DICT_SEGMENTS]; /* a segment each */
    bool is_run;   /* its rows are as many floats on end, when the source has them side by side */
    bool has_gaps; /* its rows have bytes that are no segment's */
} tn_dict_plan_table;

typedef struct tn_dict_plan {
    const tn_dict_spec *spec;
    tn_arena *arena;
    uint32_t *layout_of; /* per record: the first one that is like it */
    bool *crowded;       /* per record: it has more sets than tables */
    uint32_t n_sets;
    tn_dict_set *set; /* in the order in which rows had them */
    uint16_t *order;  /* numbers of the sets, sorted by table */
    tn_dict_plan_table *table;
    tn_dict_header head;
    bool has_new_types; /* values that readers of version 1.0 do not know */
    uint32_t n_segments;
    const char *segment[TN_SEGMENTS_MAX];
} tn_dict_plan;

/* Makes an empty plan; it is to be done with after a failure, too. */
tn_status tn_dict_plan_init(tn_dict_plan *p, const tn_dict_spec *spec, tn_error *err) TN_MUST_USE;
void tn_dict_plan_done(tn_dict_plan *p);

/* Finds the number of a row's set, and counts the row. */
tn_status tn_dict_plan_set(tn_dict_plan *p, const tn_dict_entry *e, uint16_t *out,
                           tn_error *err) TN_MUST_USE;

/* Makes tables of the sets after all rows were counted, and gives everything its place in the
 * file. */
tn_status tn_dict_plan_tables(tn_dict_plan *p, tn_error *err) TN_MUST_USE;

/* Appends all that precedes the JSON: header, groups, tables, names. */
void tn_dict_plan_head(const tn_dict_plan *p, tn_text *out);
