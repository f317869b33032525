/* score_routes.c - the routes that score: bodies become rows, rows scores, scores answers. */
#include "base/core/clock.h"
#include "base/core/number.h"
#include "extra/http/answers.h"
#include "extra/http/call.h"
#include "io/rows/rows.h"

#include <string.h>
#include <strings.h>

/* The model, memory and rows of a request. */
typedef struct scoring {
    tn_served *served;
    tn_served_hand *hand;
    tn_row_sink to;
    tn_served_scores scores;
} scoring;

static tn_status begin(const tn_call *c, scoring *s, const tn_row_kind *kind, tn_error *err)
{
    s->served = c->version->served;
    s->hand = tn_served_hand_of(s->served, c->worker);
    return tn_served_sink(s->served, s->hand, kind, &s->to, err);
}

/* Begins a request of JSON, whose rows the reader of JSON lines parses. */
static tn_status begin_json(const tn_call *c, scoring *s, const char *source, tn_error *err)
{
    const tn_row_kind kind = {.format = "jsonl", .source = source, .rows_max = c->rows_max};
    TN_TRY(begin(c, s, &kind, err));
    s->to.named = true;
    return TN_OK;
}

/* Scores the rows that are there, and counts them. */
static tn_status score(tn_call *c, scoring *s, tn_error *err)
{
    const double before_s = tn_clock_s();
    TN_TRY(tn_served_score(s->served, s->hand, &s->to, &s->scores, err));
    double sum = 0;
    for (uint32_t i = 0; i < s->scores.n; i++) {
        sum += (double)s->scores.value[0][i];
    }
    c->scored = (tn_recorded){.route = c->match.route, .rows = s->scores.n, .sum = sum};
    if (!c->replays) {
        tn_count_rows(tn_service_metrics(c->service), c->worker, c->version->model, s->scores.n,
                      sum, tn_clock_s() - before_s);
    }
    memcpy(c->reply->version, tn_served_version(s->served), sizeof c->reply->version - 1);
    return TN_OK;
}

/* Finds the task that a request means by its signature: the first, unless it names another. */
static uint32_t find_task(const tn_served_scores *s, const tn_json_span *signature)
{
    for (uint32_t k = 0; k < s->n_tasks; k++) {
        if (tn_json_span_is(signature, s->name[k])) {
            return k;
        }
    }
    return 0;
}

/* Reads the rows of `instances`, `inputs`, or what pandas writes. */
static tn_status read_rows(scoring *s, const tn_json_body *b, tn_error *err)
{
    if (b->instances.data != NULL) {
        return tn_rows_of_objects(&s->to, &b->instances, err);
    }
    if (b->dataframe_records.data != NULL) {
        s->to.source = "dataframe_records";
        return tn_rows_of_objects(&s->to, &b->dataframe_records, err);
    }
    if (b->dataframe_split.data != NULL) {
        s->to.source = "dataframe_split";
        return tn_rows_of_frame(&s->to, &b->dataframe_split, err);
    }
    if (b->inputs.data == NULL) {
        return tn_fail(err, TN_E_DATA, "the body has no member 'instances' or 'inputs'");
    }
    s->to.source = "inputs";
    return *b->inputs.data == '{' ? tn_rows_of_columns(&s->to, &b->inputs, err)
                                  : tn_rows_of_objects(&s->to, &b->inputs, err);
}

/* Reads `examples`, and before them the `context` that they share. */
static tn_status read_examples(scoring *s, const tn_json_body *b, tn_error *err)
{
    if (b->examples.data == NULL) {
        return tn_fail(err, TN_E_DATA, "the body has no member 'examples'");
    }
    if (b->context.data != NULL) {
        TN_TRY(tn_served_share(s->hand, &s->to, &b->context, err));
    }
    return tn_rows_of_objects(&s->to, &b->examples, err);
}

tn_status tn_call_predict(tn_call *c, tn_error *err)
{
    const bool predicts = c->match.route == TN_ROUTE_PREDICT;
    const char *version = tn_served_version(c->version->served);
    tn_text *out = &c->reply->body;
    tn_json_body b;
    scoring s;
    TN_TRY(tn_json_body_read(&b, c->request->body, err));
    TN_TRY(begin_json(c, &s, predicts ? "instances" : "examples", err));
    TN_TRY(predicts ? read_rows(&s, &b, err) : read_examples(&s, &b, err));
    TN_TRY(score(c, &s, err));
    if (c->match.route == TN_ROUTE_REGRESS) {
        tn_answer_regress(out, &s.scores, find_task(&s.scores, &b.signature_name), version);
    } else if (!predicts) {
        tn_answer_classify(out, &s.scores, find_task(&s.scores, &b.signature_name), version);
    } else if (b.inputs.data != NULL) {
        tn_answer_outputs(out, &s.scores, version);
    } else {
        tn_answer_predictions(out, &s.scores, version);
    }
    return TN_OK;
}

/* ---- lines ---- */

/* Whether a content type is this one, whatever parameters follow it. */
static bool is_type(const char *type, const char *word)
{
    const size_t size = strlen(word);
    return type != NULL && strncasecmp(type, word, size) == 0 &&
           (type[size] == '\0' || type[size] == ';' || type[size] == ' ');
}

/* The format that a content type names; NULL: none, so the training data's. */
static const char *format_of_type(const char *type)
{
    static const char *const types[][2] = {
        {"text/csv", "csv"},
        {"application/csv", "csv"},
        {"text/tab-separated-values", "tsv"},
        {"application/jsonlines", "jsonl"},
        {"application/jsonl", "jsonl"},
        {"application/x-ndjson", "jsonl"},
        {"application/ndjson", "jsonl"},
        {"application/json", "jsonl"},
        {"text/libsvm", "libsvm"},
        {"text/x-libsvm", "libsvm"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (is_type(type, types[i][0])) {
            return types[i][1];
        }
    }
    return NULL;
}

/* Whether a line of JSON is a body for another path, and so no row. */
static bool is_body(const scoring *s, tn_bytes body)
{
    tn_json_body b;
    return s->to.rows->n == 1 && strcmp(s->to.format->name, "jsonl") == 0 &&
           !tn_json_has_field(s->to.schema, body) && tn_json_body_read(&b, body, NULL) == TN_OK &&
           (b.instances.data != NULL || b.inputs.data != NULL || b.examples.data != NULL);
}

tn_status tn_call_lines(tn_call *c, tn_error *err)
{
    const tn_http_request *r = c->request;
    scoring s;
    const bool unlabelled = r->label != NULL && strcmp(r->label, "none") == 0;
    if (r->label != NULL && !unlabelled && strcmp(r->label, "given") != 0) {
        return tn_fail(err, TN_E_USAGE, "label=%.32s is neither 'none' nor 'given'", r->label);
    }
    const tn_row_kind kind = {
        .format = r->format != NULL ? r->format : format_of_type(r->content_type),
        .unlabelled = unlabelled,
        .source = "row",
        .rows_max = c->rows_max,
    };
    TN_TRY(begin(c, &s, &kind, err));
    TN_TRY(tn_rows_of_lines(&s.to, r->body, err));
    if (is_body(&s, r->body)) {
        return tn_fail(err, TN_E_DATA, "the body is no row, but one for /v1/models/NAME:predict");
    }
    TN_TRY(score(c, &s, err));
    if (r->accept != NULL && strstr(r->accept, "application/json") != NULL) {
        tn_answer_predictions(&c->reply->body, &s.scores, tn_served_version(s.served));
    } else {
        c->reply->content_type = "text/plain; charset=utf-8";
        tn_answer_lines(&c->reply->body, &s.scores);
    }
    return TN_OK;
}

tn_status tn_call_invocations(tn_call *c, tn_error *err)
{
    tn_json_body b;
    scoring s;
    const char *type = c->request->content_type;
    if (type != NULL && !is_type(type, "application/json")) {
        if (format_of_type(type) == NULL && !is_type(type, "text/plain")) {
            tn_reply_error(c->reply, 415, "the content type '%.64s' is not read here", type);
            return TN_OK;
        }
        return tn_call_lines(c, err);
    }
    TN_TRY(tn_json_body_read(&b, c->request->body, err));
    TN_TRY(begin_json(c, &s, "instances", err));
    TN_TRY(read_rows(&s, &b, err));
    TN_TRY(score(c, &s, err));
    tn_answer_predictions(&c->reply->body, &s.scores, tn_served_version(s.served));
    return TN_OK;
}

/* ---- the Open Inference Protocol ---- */

/* Whether an object has the member `name` with the value true. */
static bool is_true(const tn_json_span *object, const char *name)
{
    tn_json_cursor c = tn_json_cursor_of(object->data, object->size);
    tn_json_span value;
    tn_bytes key;
    bool found = false;
    bool more = object->data != NULL && tn_json_cursor_enter(&c, '{');
    while (more && tn_json_cursor_member(&c, &key)) {
        more = tn_json_cursor_value(&c, &value);
        found =
            found || (more && key.size == strlen(name) && memcmp(key.data, name, key.size) == 0 &&
                      value.size == 4 && memcmp(value.data, "true", 4) == 0);
    }
    return found;
}

/* Reads one item of `outputs`: its name is that of a task. */
static tn_status read_output(tn_json_cursor *c, const tn_served_scores *s, tn_infer_ask *ask,
                             tn_error *err)
{
    tn_json_span name = {0};
    tn_json_span parameters = {0};
    tn_json_span other;
    tn_bytes key;
    bool more = tn_json_cursor_enter(c, '{');
    while (more && tn_json_cursor_member(c, &key)) {
        const bool names = key.size == 4 && memcmp(key.data, "name", 4) == 0;
        const bool tells = key.size == 10 && memcmp(key.data, "parameters", 10) == 0;
        more = tn_json_cursor_value(c, names ? &name : tells ? &parameters : &other);
    }
    uint32_t k = 0;
    while (k < s->n_tasks && !tn_json_span_is(&name, s->name[k])) {
        k++;
    }
    if (k == s->n_tasks) {
        return tn_fail(err, TN_E_DATA, "the model has no output %.*s",
                       (int)(name.data != NULL ? name.size : 1),
                       name.data != NULL ? name.data : "?");
    }
    ask->wanted |= UINT64_C(1) << k;
    ask->binary = ask->binary || is_true(&parameters, "binary_data");
    return TN_OK;
}

/* Reads which outputs are wanted; none are named: all. */
static tn_status read_outputs(const tn_json_body *b, const tn_served_scores *s, tn_infer_ask *ask,
                              tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(b->outputs.data, b->outputs.size);
    bool more = b->outputs.data != NULL && tn_json_cursor_enter(&c, '[');
    ask->binary = is_true(&b->parameters, "binary_data_output");
    while (more && tn_json_cursor_item(&c)) {
        TN_TRY(read_output(&c, s, ask, err));
        more = c.fault == NULL;
    }
    if (b->outputs.data != NULL) {
        TN_TRY(tn_json_cursor_check(&c, "outputs", err));
    }
    ask->wanted = ask->wanted != 0 ? ask->wanted : UINT64_MAX;
    return TN_OK;
}

tn_status tn_call_infer(tn_call *c, tn_error *err)
{
    const tn_http_request *r = c->request;
    tn_bytes json = r->body;
    uint64_t size = r->body.size;
    tn_json_body b;
    scoring s;
    if (r->json_bytes != NULL &&
        (tn_read_u64(r->json_bytes, strlen(r->json_bytes), &size) != TN_NUM_OK ||
         size > r->body.size)) {
        return tn_fail(err, TN_E_DATA,
                       "Inference-Header-Content-Length is %.32s, and the body has %zu bytes",
                       r->json_bytes, r->body.size);
    }
    json.size = (size_t)size;
    const tn_bytes binary = {r->body.data + size, r->body.size - (size_t)size, false};
    TN_TRY(tn_json_body_read(&b, json, err));
    if (b.inputs.data == NULL) {
        return tn_fail(err, TN_E_DATA, "the body has no member 'inputs'");
    }
    TN_TRY(begin_json(c, &s, "inputs", err));
    TN_TRY(tn_rows_of_tensors(&s.to, &b.inputs, binary, err));
    TN_TRY(score(c, &s, err));
    tn_infer_ask ask = {.model = tn_model_set_name(c->models, c->version->model),
                        .version = tn_served_version(s.served),
                        .id = b.id};
    TN_TRY(read_outputs(&b, &s.scores, &ask, err));
    c->reply->json_bytes = tn_answer_infer(&c->reply->body, &s.scores, &ask);
    if (c->reply->json_bytes > 0) {
        c->reply->content_type = "application/octet-stream";
    }
    return TN_OK;
}
