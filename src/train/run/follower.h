/* follower.h - a rank other than 0: it trains its parts of the data, holds its part of the model,
 * and carries out what rank 0 orders (train/peers/leader.h).
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_binder tn_binder;
typedef struct tn_model_plan tn_model_plan;
typedef struct tn_outcome tn_outcome;
typedef struct tn_run_text tn_run_text;
typedef struct tn_strs tn_strs;
typedef struct tn_watch tn_watch;

/* The same as tn_train, which calls it. Rank 0 reports the outcome: here only the steps and samples
 * that this rank has learned from are set. */
tn_status tn_follower_run(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                          const tn_binder *b, tn_outcome *out, tn_error *err) TN_MUST_USE;

/* The data to evaluate. */
typedef struct tn_follower_data {
    const tn_strs *paths;
    const tn_strs *fetch; /* nodes whose values rank 0 wants; NULL: none */
} tn_follower_data;

/* Trains nothing: reads its part of the checkpoint that rank 0 says. Then it scores its parts of
 * the data, or, for an export, writes its rows where rank 0 finds them (train/export/export.h);
 * `data` may be NULL then. */
tn_status tn_follower_serve(const tn_model_plan *plan, const tn_run_text *text,
                            const tn_watch *watch, const tn_follower_data *data, const tn_binder *b,
                            tn_error *err) TN_MUST_USE;
