/* columns.h - the names a schema reads, numbered, and who reads what.
 *
 *     slots: user, hist, tags {values: tags_x}      label: label
 *
 *     name     0 label   1 user   2 hist   3 tags   4 tags_x
 *     label    0         spec  1 2 3       values  - - 4
 *
 * A parser looks a name of its record up once and then knows all its readers. Lives in the
 * schema's arena; read-only after tn_columns_new.
 */
#ifndef TN_IO_COLUMNS_H
#define TN_IO_COLUMNS_H

#include "io/schema/schema.h"

typedef struct tn_columns {
    uint32_t n;
    const char *const *name;
    const uint32_t *name_size;
    uint32_t label, weight, group, record_id; /* TN_NOWHERE: nothing reads one */
    const uint32_t *spec;                     /* n_specs: the name it reads */
    const uint32_t *values;                   /* n_specs: the name of its x_j, or TN_NOWHERE */
    uint32_t readers_max;                     /* specs that read the same name, at most */
    const uint64_t *word; /* of a name: its first eight bytes, zeros behind a shorter one */
    const uint32_t *only; /* of a name: the spec that alone reads it, or TN_NOWHERE */
    bool alone;           /* so are the names of all specs */
    const uint32_t *fast_path_end; /* n_specs: the first spec behind it of another fast path */
    const uint32_t *slot;          /* n_specs: as in the spec */
    const uint64_t *salt;          /* n_specs: likewise */
    uint32_t mask;                 /* of `table`: places hold a number + 1, or 0 */
    const uint32_t *table;
    uint32_t n_fields; /* libffm: the spec of a field number below this, or TN_NOWHERE */
    const uint32_t *spec_of_field;
    uint32_t n_ranges; /* libsvm: specs in ascending order of their ranges */
    const uint32_t *spec_by_range;
} tn_columns;

/* From a schema whose specs are complete. Faults (overlapping ranges, fields) go to b->diag. */
tn_status tn_columns_new(const tn_columns **out, const tn_schema *schema, const struct tn_binder *b,
                         tn_error *err) TN_MUST_USE;

/* The number of a name, or TN_NOWHERE. */
uint32_t tn_columns_find(const tn_columns *columns, const char *text, size_t size);

/* The spec that takes an index, or TN_NOWHERE. */
uint32_t tn_columns_of_index(const tn_columns *columns, const tn_schema *schema, uint64_t index);

#endif
