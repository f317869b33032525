/* recorder.h - the last requests that were scored, by model: a new version answers them before it
 * is published.
 *
 * So pages and memory that requests touch are there when the first one comes, and scores that have
 * moved too far are seen before anybody gets them. Some hundred requests a second are copied, by
 * whichever worker finds the lock free; none waits for it. They lie in memory alone.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "extra/http/route.h"

#include <stdint.h>

/* A request as the server has received it. Texts are lent, NULL where a header or parameter is
 * missing. */
typedef struct tn_http_request {
    const char *method, *path;
    const char *content_type, *accept;
    const char *json_bytes;             /* Inference-Header-Content-Length */
    const char *model, *format, *label; /* parameters of the query */
    tn_bytes body;
} tn_http_request;

typedef struct tn_recorder tn_recorder;

/* A request and the scores that it got. */
typedef struct tn_recorded {
    tn_route route;
    uint32_t rows;
    double sum; /* sum of the scores of the first task */
} tn_recorded;

tn_status tn_recorder_new(tn_recorder **out, uint32_t models, tn_error *err) TN_MUST_USE;
void tn_recorder_free(tn_recorder *r); /* NULL is fine */

/* Keeps a copy of a request if it is time for one and it has at most 16 kB. Any thread. */
void tn_recorder_keep(tn_recorder *r, uint32_t model, const tn_http_request *request,
                      const tn_recorded *scored);

/* Calls `replay` for each request of a model that is kept, 256 at most. Any thread. */
typedef tn_status tn_replay_fn(void *arg, const tn_http_request *request, const tn_recorded *scored,
                               tn_error *err);
tn_status tn_recorder_replay(tn_recorder *r, uint32_t model, tn_replay_fn *replay, void *arg,
                             tn_error *err) TN_MUST_USE;
