/* call.h - one request on its way to an answer, which the files of routes share. */
#pragma once

#include "extra/http/service.h"

/* The version of the model that a request is for is taken before a route begins, and given back
 * after it. */
typedef struct tn_call {
    tn_service *service;
    tn_model_set *models;
    uint32_t worker, rows_max;
    const tn_http_request *request;
    tn_route_match match;
    tn_model_version *version; /* NULL: the route is of no model */
    tn_reply *reply;
    bool replays;       /* the request was answered before: nothing is counted or kept */
    tn_recorded scored; /* rows and the sum of their scores */
} tn_call;

/* Routes that score (score_routes.c). A failure becomes a code and a sentence. */
tn_status tn_call_predict(tn_call *c, tn_error *err) TN_MUST_USE; /* also regress, classify */
tn_status tn_call_lines(tn_call *c, tn_error *err) TN_MUST_USE;   /* /score */
tn_status tn_call_invocations(tn_call *c, tn_error *err) TN_MUST_USE;
tn_status tn_call_infer(tn_call *c, tn_error *err) TN_MUST_USE;

/* Routes that describe models (model_routes.c). */
tn_status tn_call_status(tn_call *c, tn_error *err) TN_MUST_USE;
tn_status tn_call_metadata(tn_call *c, tn_error *err) TN_MUST_USE;
tn_status tn_call_models(tn_call *c, tn_error *err) TN_MUST_USE;
tn_status tn_call_v2(tn_call *c, tn_error *err) TN_MUST_USE;
tn_status tn_call_v2_model(tn_call *c, tn_error *err) TN_MUST_USE;
tn_status tn_call_v2_index(tn_call *c, tn_error *err) TN_MUST_USE;
tn_status tn_call_v2_load(tn_call *c, tn_error *err) TN_MUST_USE;
