/* serve_metrics.h - counters of the server, and their text for Prometheus (format 0.0.4).
 *
 * Each worker counts in memory of its own, on cache lines that nobody else writes; who asks for the
 * text adds them up. All functions but tn_serve_metrics_text are for the worker's thread.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"
#include "extra/http/model_set.h"
#include "extra/http/route.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_serve_metrics tn_serve_metrics;

/* Reasons for which a request or a connection is refused before it is read. */
typedef enum tn_rejection {
    TN_REJECT_BODY,  /* 413: longer than the limit */
    TN_REJECT_QUEUE, /* 429: too many requests at once */
    TN_REJECT_TIME,  /* 408: the request was too slow */
    TN_REJECTIONS,
} tn_rejection;

tn_status tn_serve_metrics_new(tn_serve_metrics **out, uint32_t workers, uint32_t models,
                               tn_error *err) TN_MUST_USE;
void tn_serve_metrics_free(tn_serve_metrics *m); /* NULL is fine */

/* Counts an answer, and the seconds from the request's head to its answer. */
void tn_count_answer(tn_serve_metrics *m, uint32_t worker, tn_route route, uint32_t code,
                     double seconds);
/* Counts the rows of a request that were scored by a model, and the sum of their scores. */
void tn_count_rows(tn_serve_metrics *m, uint32_t worker, uint32_t model, uint32_t rows,
                   double scores, double seconds);
/* Counts a refusal; `worker` is any that the caller alone counts for. */
void tn_count_rejection(tn_serve_metrics *m, uint32_t worker, tn_rejection why);
/* The connections that are open, of all workers. Any thread. */
atomic_uint *tn_serve_connections(tn_serve_metrics *m);

/* Appends all of it. Any thread. */
void tn_serve_metrics_text(tn_serve_metrics *m, tn_model_set *models, tn_text *out);
