/* schema_inference.h - schemas, of which some need a look at the data first.
 *
 * Two defaults depend on the data: the slots of libffm, libfm and vw files when the configuration
 * lists none, and `index_base: auto`. Both are decided once, from the head of the first file of
 * data.train, so every reader of a run agrees. Nothing is opened when neither is asked for.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_schema tn_schema; /* io/schema/schema.h */
typedef struct tn_tables tn_tables; /* config/values.h */
struct tn_binder;
struct tn_data_opts;

/* The schema of `data` and `slots` (tn_slot_opts items), which must outlive it; it lives in
 * b->arena. Faults go to b->diag; then *out is NULL and the status TN_E_CONFIG, with the columns of
 * the first file as a hint where no slots are listed. Without slots, libsvm has one slot `_`, and
 * libffm, and libfm where its first pair has a field, one slot f<number> for every field within the
 * first 10,000 lines (and 64 MiB), vw one of `type: str` for every namespace; `index_base: auto`
 * looks at the first 1000 rows. TN_E_DATA and TN_E_IO when the file cannot be read, TN_E_MEMORY. */
tn_status tn_schema_new(const tn_schema **out, const struct tn_data_opts *data,
                        const tn_tables *slots, const struct tn_binder *b,
                        tn_error *err) TN_MUST_USE;
