/* service.c - finds the route of a request, the version of its model, and answers. */
#include "extra/http/service.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "extra/http/call.h"
#include "extra/http/json_cursor.h"
#include "serve/exported_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tn_service {
    tn_service_opts opts;
    tn_serve_metrics *metrics;
    tn_recorder *recorder;
    atomic_bool draining;
};

tn_status tn_service_new(tn_service **out, const tn_service_opts *opts, tn_error *err)
{
    tn_service *s = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a server", err));
    s->opts = *opts;
    const uint32_t models = tn_model_set_count(opts->models);
    tn_status status = tn_serve_metrics_new(&s->metrics, opts->workers + 1, models, err);
    status = status == TN_OK ? tn_recorder_new(&s->recorder, models, err) : status;
    if (status != TN_OK) {
        tn_service_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_service_free(tn_service *s)
{
    if (s != NULL) {
        tn_serve_metrics_free(s->metrics);
        tn_recorder_free(s->recorder);
        tn_free(s);
    }
}

void tn_service_drain(tn_service *s)
{
    atomic_store(&s->draining, true);
}

bool tn_service_is_draining(const tn_service *s)
{
    return atomic_load(&s->draining);
}

tn_serve_metrics *tn_service_metrics(tn_service *s)
{
    return s->metrics;
}

/* ---- failures ---- */

/* Appends a sentence of a failure: its first line, without the word for a compiler's error. */
static void add_sentence(tn_text *out, const char *text)
{
    static const char mark[] = ": error: ";
    const char *end = text + strcspn(text, "\n");
    const char *at = strstr(text, mark);
    tn_text line = {0};
    if (at != NULL && at < end) {
        tn_text_add(&line, text, (size_t)(at - text));
        tn_text_adds(&line, ": ");
        text = at + sizeof mark - 1;
    }
    tn_text_add(&line, text, (size_t)(end - text));
    tn_json_quote(out, tn_text_str(&line), line.size);
    tn_text_done(&line);
}

static void write_error(tn_reply *reply, uint32_t code, const char *text)
{
    tn_text_clear(&reply->body);
    reply->code = code;
    reply->content_type = "application/json";
    reply->json_bytes = 0;
    tn_text_adds(&reply->body, "{\"error\":");
    add_sentence(&reply->body, text);
    tn_text_adds(&reply->body, "}\n");
}

void tn_reply_error(tn_reply *reply, uint32_t code, const char *fmt, ...)
{
    enum { MOST = 1024 };
    char text[MOST];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    write_error(reply, code, text);
}

static uint32_t code_of(tn_status status)
{
    const bool asked_wrong = status == TN_E_DATA || status == TN_E_USAGE || status == TN_E_CONFIG;
    return asked_wrong ? 400 : status == TN_E_LIMIT ? 413 : status == TN_E_MEMORY ? 503 : 500;
}

/* ---- routes without a model ---- */

static tn_status call_health(tn_call *c, tn_error *err)
{
    (void)err;
    tn_text_adds(&c->reply->body, "{\"live\":true}\n");
    return TN_OK;
}

static tn_status call_ready(tn_call *c, tn_error *err)
{
    (void)err;
    if (tn_service_is_draining(c->service)) {
        tn_reply_error(c->reply, 503, "the server drains: it answers what has begun, and ends");
    } else {
        tn_text_adds(&c->reply->body, "{\"ready\":true}\n");
    }
    return TN_OK;
}

static tn_status call_model_ready(tn_call *c, tn_error *err)
{
    TN_TRY(call_ready(c, err));
    if (c->reply->code == 200) {
        tn_text_clear(&c->reply->body);
        tn_text_addf(&c->reply->body, "{\"name\":\"%s\",\"ready\":true}\n",
                     tn_model_set_name(c->models, c->version->model));
    }
    return TN_OK;
}

static tn_status call_metrics(tn_call *c, tn_error *err)
{
    (void)err;
    c->reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    tn_serve_metrics_text(c->service->metrics, c->models, &c->reply->body);
    return TN_OK;
}

static tn_status call_root(tn_call *c, tn_error *err)
{
    (void)err;
    c->reply->content_type = "text/plain; charset=utf-8";
    tn_text_adds(&c->reply->body, "tnet-serve " TN_VERSION "\n");
    for (uint32_t i = 0; i < tn_model_set_count(c->models); i++) {
        tn_text_addf(&c->reply->body, "POST /v1/models/%s:predict\n",
                     tn_model_set_name(c->models, i));
    }
    tn_text_adds(&c->reply->body, "POST /score\nGET /metrics\n");
    return TN_OK;
}

/* The function of each route; `of_model`: it wants a version of a model. */
static const struct route_call {
    tn_status (*call)(tn_call *c, tn_error *err);
    bool of_model;
} calls[TN_ROUTES] = {
    [TN_ROUTE_PREDICT] = {tn_call_predict, true},
    [TN_ROUTE_REGRESS] = {tn_call_predict, true},
    [TN_ROUTE_CLASSIFY] = {tn_call_predict, true},
    [TN_ROUTE_STATUS] = {tn_call_status, true},
    [TN_ROUTE_METADATA] = {tn_call_metadata, true},
    [TN_ROUTE_MODELS] = {tn_call_models, false},
    [TN_ROUTE_SCORE] = {tn_call_lines, true},
    [TN_ROUTE_INVOCATIONS] = {tn_call_invocations, true},
    [TN_ROUTE_INFER] = {tn_call_infer, true},
    [TN_ROUTE_V2] = {tn_call_v2, false},
    [TN_ROUTE_V2_MODEL] = {tn_call_v2_model, true},
    [TN_ROUTE_V2_MODEL_READY] = {call_model_ready, true},
    [TN_ROUTE_V2_INDEX] = {tn_call_v2_index, false},
    [TN_ROUTE_V2_LOAD] = {tn_call_v2_load, true},
    [TN_ROUTE_HEALTH] = {call_health, false},
    [TN_ROUTE_READY] = {call_ready, false},
    [TN_ROUTE_METRICS] = {call_metrics, false},
    [TN_ROUTE_ROOT] = {call_root, false},
};

/* Finds the version of the model that a request is for. */
static bool take_version(tn_call *c)
{
    tn_bytes name = c->match.name;
    bool found = false;
    if (name.size == 0 && c->request->model != NULL) {
        name = (tn_bytes){c->request->model, strlen(c->request->model), false};
    }
    c->version = tn_model_set_take(c->models, name, c->match.version, &found);
    if (!found) {
        tn_reply_error(c->reply, 404, "there is no model '%.*s'", (int)name.size,
                       name.size > 0 ? name.data : "");
    } else if (c->version == NULL) {
        tn_reply_error(c->reply, 404, "model '%.*s' has no version '%.*s' that is open",
                       (int)name.size, name.data, (int)c->match.version.size,
                       c->match.version.data);
    }
    return c->version != NULL;
}

/* Calls the route, and makes an answer of a failure. */
static void call(tn_call *c)
{
    tn_error err = {0};
    const struct route_call *route = &calls[c->match.route];
    if (route->of_model && !take_version(c)) {
        return;
    }
    tn_status status = route->call(c, &err);
    status = status == TN_OK ? tn_text_check(&c->reply->body, "an answer", &err) : status;
    if (status != TN_OK) {
        write_error(c->reply, code_of(status), err.text);
    } else if (c->scored.rows > 0) {
        tn_recorder_keep(c->service->recorder, c->version->model, c->request, &c->scored);
    }
    if (c->version != NULL) {
        tn_model_set_give(c->models, c->version);
    }
}

void tn_service_answer(tn_service *s, uint32_t worker, const tn_http_request *request,
                       tn_reply *reply)
{
    const bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    const bool posts = strcmp(request->method, "POST") == 0;
    tn_call c = {.service = s,
                 .models = s->opts.models,
                 .worker = worker,
                 .rows_max = s->opts.rows_max,
                 .request = request,
                 .match = tn_route_find(request->path, &s->opts.aliases),
                 .reply = reply};
    tn_text_clear(&reply->body);
    reply->code = 200;
    reply->route = c.match.route;
    reply->content_type = "application/json";
    reply->allow = NULL;
    reply->json_bytes = 0;
    reply->version[0] = '\0';
    if (c.match.route == TN_ROUTE_NONE) {
        tn_reply_error(reply, 404, "there is no path '%.256s'", request->path);
    } else if (c.match.post ? !posts : !reads) {
        reply->allow = c.match.post ? "POST" : "GET, HEAD";
        tn_reply_error(reply, 405, "%.16s is not for '%.256s', which takes %s", request->method,
                       request->path, reply->allow);
    } else {
        (void)tn_flush_denormals(); /* as in all threads that compute */
        call(&c);
    }
}

/* ---- a version before it is published ---- */

enum { JUDGED_ROWS_MIN = 100 };

/* The sums of scores of the recorded requests, by the versions before and by the new one. */
typedef struct judging {
    tn_service *service;
    tn_model_version *fresh;
    tn_reply reply;
    uint64_t rows;
    double before, now;
} judging;

static tn_status replay(void *arg, const tn_http_request *request, const tn_recorded *scored,
                        tn_error *err)
{
    judging *j = arg;
    tn_call c = {.service = j->service,
                 .models = j->service->opts.models,
                 .rows_max = j->service->opts.rows_max,
                 .request = request,
                 .match = {.route = scored->route, .post = true},
                 .version = j->fresh,
                 .reply = &j->reply,
                 .replays = true};
    tn_text_clear(&j->reply.body);
    const tn_status status = calls[scored->route].call(&c, err);
    if (status != TN_OK && j->service->opts.max_shift > 0) {
        tn_error_context(err, "a request that was answered is refused");
        return status;
    }
    j->rows += scored->rows;
    j->before += scored->sum;
    j->now += c.scored.sum;
    return TN_OK;
}

tn_status tn_service_judge(void *service, tn_model_version *fresh, tn_error *err)
{
    judging j = {.service = service, .fresh = fresh};
    const double most = j.service->opts.max_shift;
    const tn_target target = tn_served_exported(fresh->served)->data.target;
    const tn_status status = tn_recorder_replay(j.service->recorder, fresh->model, replay, &j, err);
    tn_text_done(&j.reply.body);
    TN_TRY(status);
    if (most > 0 && target == TN_TARGET_CLICK && j.rows >= JUDGED_ROWS_MIN &&
        (j.now > most * j.before || j.now * most < j.before)) {
        return tn_fail(
            err, TN_E_DATA,
            "version %s predicts %.3g clicks for the last %llu rows that predicted %.3g, "
            "beyond --max-shift %g",
            tn_served_version(fresh->served), j.now, (unsigned long long)j.rows, j.before, most);
    }
    return TN_OK;
}
