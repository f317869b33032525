/* route.c - the list of paths: a star is a name, of a model and then of a version. */
#include "extra/http/route.h"

#include <string.h>

static const struct path {
    const char *pattern;
    tn_route route;
    bool post;
} paths[] = {
    {"/v1/models/*:predict", TN_ROUTE_PREDICT, true},
    {"/v1/models/*:regress", TN_ROUTE_REGRESS, true},
    {"/v1/models/*:classify", TN_ROUTE_CLASSIFY, true},
    {"/v1/models/*/versions/*:predict", TN_ROUTE_PREDICT, true},
    {"/v1/models/*/versions/*:regress", TN_ROUTE_REGRESS, true},
    {"/v1/models/*/versions/*:classify", TN_ROUTE_CLASSIFY, true},
    {"/v1/models/*", TN_ROUTE_STATUS, false},
    {"/v1/models/*/versions/*", TN_ROUTE_STATUS, false},
    {"/v1/models/*/metadata", TN_ROUTE_METADATA, false},
    {"/v1/models/*/versions/*/metadata", TN_ROUTE_METADATA, false},
    {"/v1/models", TN_ROUTE_MODELS, false},
    {"/score", TN_ROUTE_SCORE, true},
    {"/invocations", TN_ROUTE_INVOCATIONS, true},
    {"/v2/models/*/infer", TN_ROUTE_INFER, true},
    {"/v2/models/*/versions/*/infer", TN_ROUTE_INFER, true},
    {"/v2", TN_ROUTE_V2, false},
    {"/v2/health/live", TN_ROUTE_HEALTH, false},
    {"/v2/health/ready", TN_ROUTE_READY, false},
    {"/v2/models/*", TN_ROUTE_V2_MODEL, false},
    {"/v2/models/*/versions/*", TN_ROUTE_V2_MODEL, false},
    {"/v2/models/*/ready", TN_ROUTE_V2_MODEL_READY, false},
    {"/v2/models/*/versions/*/ready", TN_ROUTE_V2_MODEL_READY, false},
    {"/v2/repository/index", TN_ROUTE_V2_INDEX, true},
    {"/v2/repository/models/*/load", TN_ROUTE_V2_LOAD, true},
    {"/ping", TN_ROUTE_READY, false},
    {"/health", TN_ROUTE_HEALTH, false},
    {"/ready", TN_ROUTE_READY, false},
    {"/metrics", TN_ROUTE_METRICS, false},
    {"/monitoring/prometheus/metrics", TN_ROUTE_METRICS, false},
    {"/", TN_ROUTE_ROOT, false},
};

/* Whether a path is of a pattern; fills the names in *out. */
static bool is_of(const char *pattern, const char *path, tn_route_match *out)
{
    tn_bytes *name = &out->name;
    while (*pattern != '\0') {
        if (*pattern != '*') {
            if (*pattern++ != *path++) {
                return false;
            }
            continue;
        }
        const size_t size = strcspn(path, "/:");
        if (size == 0) {
            return false;
        }
        *name = (tn_bytes){path, size, false};
        name = &out->version;
        path += size;
        pattern++;
    }
    return *path == '\0';
}

tn_route_match tn_route_find(const char *path, const tn_route_aliases *aliases)
{
    if (aliases->predict != NULL && strcmp(path, aliases->predict) == 0) {
        return (tn_route_match){.route = TN_ROUTE_INVOCATIONS, .post = true};
    }
    if (aliases->health != NULL && strcmp(path, aliases->health) == 0) {
        return (tn_route_match){.route = TN_ROUTE_READY};
    }
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        tn_route_match match = {.route = paths[i].route, .post = paths[i].post};
        if (is_of(paths[i].pattern, path, &match)) {
            return match;
        }
    }
    return (tn_route_match){.route = TN_ROUTE_NONE};
}

const char *tn_route_word(tn_route route)
{
    static const char *const words[TN_ROUTES] = {
        [TN_ROUTE_NONE] = "none",
        [TN_ROUTE_PREDICT] = "predict",
        [TN_ROUTE_REGRESS] = "regress",
        [TN_ROUTE_CLASSIFY] = "classify",
        [TN_ROUTE_STATUS] = "status",
        [TN_ROUTE_METADATA] = "metadata",
        [TN_ROUTE_MODELS] = "models",
        [TN_ROUTE_SCORE] = "score",
        [TN_ROUTE_INVOCATIONS] = "invocations",
        [TN_ROUTE_INFER] = "infer",
        [TN_ROUTE_V2] = "v2",
        [TN_ROUTE_V2_MODEL] = "v2_model",
        [TN_ROUTE_V2_MODEL_READY] = "v2_model_ready",
        [TN_ROUTE_V2_INDEX] = "v2_index",
        [TN_ROUTE_V2_LOAD] = "v2_load",
        [TN_ROUTE_HEALTH] = "health",
        [TN_ROUTE_READY] = "ready",
        [TN_ROUTE_METRICS] = "metrics",
        [TN_ROUTE_ROOT] = "root",
    };
    return words[route];
}
