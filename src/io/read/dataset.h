/* dataset.h - the sections `data:` and `slots:` on their own, for tools that read and write files
 * without training.
 *
 *     tn_dataset from, to;
 *     TN_TRY(tn_dataset_bind(&from, tree, TN_DATASET_AS_READ, TN_TARGET_CLICK, &binder, err));
 *     TN_TRY(tn_dataset_bind_target(&to, &from, target_tree, 0, &binder, err));
 *
 * Everything lives in the binder's arena.
 */
#pragma once

#include "base/core/error.h"
#include "io/schema/dataopts.h"

typedef struct tn_schema tn_schema; /* io/schema/schema.h */
typedef struct tn_text tn_text;     /* base/core/text.h */

typedef struct tn_dataset {
    tn_data_opts data;
    tn_tables slots;
    const tn_schema *schema;
} tn_dataset;

extern const tn_field tn_dataset_fields[]; /* both sections and nothing else */

enum {
    /* Rules that drop or merge values are off: max_len, duplicates, drop_zero, absent. A row then
     * holds what its record holds. */
    TN_DATASET_AS_READ = 1,
    /* As tn_writer's TN_WRITE_SIGNS: slots of keys become type id, without transforms. */
    TN_DATASET_SIGNS = 2,
};

/* From the tree of a configuration; other sections are not looked at: `target` is of its loss.
 * Every file is one part, so that lines are known wherever a fault is met. Faults go to b->diag. */
tn_status tn_dataset_bind(tn_dataset *out, const tn_tree *root, uint32_t flags, tn_target target,
                          const tn_binder *b, tn_error *err) TN_MUST_USE;

/* The same rows in another file: the slots of `from`, which must outlive it, and the options of
 * `data` (a map like the section `data:`, with `format`), which inherit the names of label, weight,
 * group and record id and nothing else. libffm, and libfm of several slots: they get field numbers
 * when none has one. */
tn_status tn_dataset_bind_target(tn_dataset *out, const tn_dataset *from, const tn_tree *data,
                                 uint32_t flags, const tn_binder *b, tn_error *err) TN_MUST_USE;

/* The sections that describe it, as YAML, without options of slots that its format does not read;
 * `path` becomes data.train, `columns` (tn_writer_columns, or NULL) data.columns where a text has
 * no header. */
void tn_dataset_config(const tn_dataset *d, const char *path, const char *columns, tn_text *out);
