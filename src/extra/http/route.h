/* route.h - which paths the server answers, and what each of them is.
 *
 *     POST /v1/models/ads/versions/6636c5aa:predict       PREDICT, name ads, version 6636c5aa
 *
 * The list is route.c's; --help, docs/serving.md and the metric tnet_requests_total use its words.
 */
#pragma once

#include "base/core/bytes.h"

typedef enum tn_route {
    TN_ROUTE_NONE,
    TN_ROUTE_PREDICT,
    TN_ROUTE_REGRESS,
    TN_ROUTE_CLASSIFY,
    TN_ROUTE_STATUS,
    TN_ROUTE_METADATA,
    TN_ROUTE_MODELS,
    TN_ROUTE_SCORE,
    TN_ROUTE_INVOCATIONS,
    TN_ROUTE_INFER,
    TN_ROUTE_V2,
    TN_ROUTE_V2_MODEL,
    TN_ROUTE_V2_MODEL_READY,
    TN_ROUTE_V2_INDEX,
    TN_ROUTE_V2_LOAD,
    TN_ROUTE_HEALTH,
    TN_ROUTE_READY,
    TN_ROUTE_METRICS,
    TN_ROUTE_ROOT,
    TN_ROUTES,
} tn_route;

typedef struct tn_route_match {
    tn_route route; /* NONE: there is no such path */
    bool post;      /* it takes POST, else GET and HEAD */
    tn_bytes name;  /* name of the model; size 0: none is given */
    tn_bytes version;
} tn_route_match;

/* Further paths that a platform wants; NULL: none. */
typedef struct tn_route_aliases {
    const char *predict; /* AIP_PREDICT_ROUTE */
    const char *health;  /* AIP_HEALTH_ROUTE */
} tn_route_aliases;

/* Finds the route of a path, without a query. What it returns points into `path`. */
tn_route_match tn_route_find(const char *path, const tn_route_aliases *aliases);
const char *tn_route_word(tn_route route); /* "predict" */
