/* service.h - from a request to an answer: everything of the server but sockets.
 *
 *     tn_service_answer(service, worker, &request, &reply);
 *
 * A worker answers one request at a time, by memory of its own (service.c keeps it). A failure is a
 * code of HTTP and {"error": "one sentence"}, never a part of an answer:
 *
 *     400 a value, a field or the JSON     404 no such path, model or version     405 method
 *     413 too many rows                    415 a content type that is not read    500 ours
 *     503 draining, or no memory
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "extra/http/model_set.h"
#include "extra/http/recorder.h"
#include "extra/http/route.h"
#include "extra/http/serve_metrics.h"

#include <stdatomic.h>

typedef struct tn_reply {
    uint32_t code;
    tn_route route;
    const char *content_type;
    const char *allow; /* methods, of a 405; else NULL */
    tn_text body;      /* owned by the worker; lent until its next request */
    size_t json_bytes; /* Inference-Header-Content-Length of a binary answer; 0: none */
    char version[33];  /* model id that made the answer; "" where none did */
} tn_reply;

typedef struct tn_service tn_service;

typedef struct tn_service_opts {
    tn_model_set *models; /* must outlive it */
    uint32_t workers;
    uint32_t rows_max;
    double max_shift; /* see tn_service_judge; 0: whatever a version says */
    tn_route_aliases aliases;
} tn_service_opts;

tn_status tn_service_new(tn_service **out, const tn_service_opts *opts, tn_error *err) TN_MUST_USE;
void tn_service_free(tn_service *s); /* NULL is fine */

/* Answers a request on a worker's thread; *reply is filled whole. */
void tn_service_answer(tn_service *s, uint32_t worker, const tn_http_request *request,
                       tn_reply *reply);

/* Fills a reply with a code and a sentence, for refusals before a body is there. */
void tn_reply_error(tn_reply *reply, uint32_t code, const char *fmt, ...) TN_PRINTF(3, 4);

/* Has a version answer the requests that were recorded, before it is published. TN_E_DATA: it
 * refuses one that was answered, or the mean of the clicks that it predicts is more than max_shift
 * times what it was, or less than a max_shift-th. A tn_judge_fn; the argument is the service. */
tn_status tn_service_judge(void *service, tn_model_version *fresh, tn_error *err) TN_MUST_USE;

/* From now on the server drains: it is not ready any more, and goes on answering. */
void tn_service_drain(tn_service *s);
bool tn_service_is_draining(const tn_service *s);
tn_serve_metrics *tn_service_metrics(tn_service *s);
