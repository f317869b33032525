/* tfexample.h - tf.Example and tf.SequenceExample messages to rows.
 *
 *     Example         { Features features = 1 }
 *     SequenceExample { Features context = 1; FeatureLists feature_lists = 2 }
 *     Features        { repeated entry { string key = 1; Feature value = 2 } = 1 }
 *     FeatureLists    { repeated entry { string key = 1; FeatureList value = 2 } = 1 }
 *     FeatureList     { repeated Feature feature = 1 }
 *
 * One pass finds the features that the schema reads; then each slot takes its values. A feature
 * list feeds a slot one value per step. Nothing is trusted, nothing that is unknown is refused.
 */
#pragma once

#include "io/format/format.h"

/* tn_format.parse of a bare message. */
tn_status tn_tfexample_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows,
                             tn_error *err) TN_MUST_USE;

/* The same for most messages, in less time. False: one of another kind; nothing was appended. */
bool tn_tfexample_parse_fast(tn_bytes record, const tn_schema *schema, tn_rows *rows);

enum { TN_TF_SHAPES_MORE = 64 }; /* places of entries beyond those that something reads */
