/* tfslot.h - from the features of a message to the slots of a row; under io/format/tfexample.h. */
#ifndef TN_IO_TFSLOT_H
#define TN_IO_TFSLOT_H

#include "io/format/format.h"
#include "io/format/tffeature.h"
#include "io/rows/rows_private.h"

enum { TN_TF_GUESSES_MORE = 64 }; /* places of names beyond those that something reads */

/* The short road of tn_tfexample_parse. False: a message of another kind; nothing was appended. */
bool tn_tfexample_quick(tn_bytes record, const tn_schema *schema, tn_rows *rows);

/* One message on its way into a row, once its features are found. A span is the Feature of a name;
 * `quoted`: a FeatureList. */
typedef struct tn_tf_record {
    const tn_schema *schema;
    const tn_place *place;
    tn_bytes record;
    tn_rows *rows;
    tn_span *span;   /* by name */
    uint32_t *guess; /* by place in the message: the name that stood there last time */
    uint32_t n_guesses;
    uint32_t n_entries; /* so far */
} tn_tf_record;

static inline tn_bytes tn_tf_bytes_of(const tn_span *span)
{
    return (tn_bytes){span->text, span->size, false};
}

/* All that spec i reads, into the open row. */
tn_status tn_tf_take_slot(const tn_tf_record *t, uint32_t i, tn_error *err) TN_MUST_USE;

/* Faults: the message, the kind of a feature, or a value of one. */
tn_status tn_tf_damaged(const tn_tf_record *t, tn_error *err);
tn_status tn_tf_unsuited(const tn_tf_record *t, uint32_t name, tn_tf_kind kind, const char *wanted,
                         tn_error *err);
tn_status tn_tf_refused(const tn_tf_record *t, const char *name, tn_fault fault, tn_error *err);

#endif
