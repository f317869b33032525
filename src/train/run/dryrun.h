/* dryrun.h - a run that trains nothing: is everything there, and what would it be? */
#pragma once

#include "base/core/text.h"

typedef struct tn_binder tn_binder;
typedef struct tn_model_plan tn_model_plan;

/* Builds the model, opens all data, reads one batch of each and scores it. `out` gets the model
 * table and a line per data set. The run directory is not touched. */
tn_status tn_dry_run(const tn_model_plan *plan, const tn_binder *b, tn_text *out,
                     tn_error *err) TN_MUST_USE;

/* The training graph: every node as a line, or a drawing in DOT. */
tn_status tn_describe_graph(const tn_model_plan *plan, const tn_binder *b, bool dot, tn_text *out,
                            tn_error *err) TN_MUST_USE;
