/* test_service.c - requests and their answers without sockets, and versions that change. */
#include "extra/http/answers.h"
#include "extra/http/service.h"
#include "serve/exported_model.h"
#include "support/test.h"
#include "train/exportkit.h"

#include <time.h>

static const char model[] = "{type: widedeep, hidden: [8]}";

/* One export, made once, and a folder that its copies are published in. */
static exportkit kit;
static tn_exported exported;
static char folder[256];

GROUP_SET_UP
{
    exportkit_open(&kit, model, NULL);
    exportkit_train(&kit);
    exported = exportkit_export(&kit);
}

GROUP_TEAR_DOWN
{
    exportkit_close(&kit);
}

typedef struct served {
    tn_model_set *models;
    tn_service *service;
    tn_reply reply;
} served;

static void served_open(served *s, const char *path)
{
    static const char *const names[] = {"ads"};
    const char *const paths[] = {path};
    tn_error err = {0};
    const tn_model_set_opts set = {
        .paths = {1, paths}, .names = {1, names}, .served = {.hands = 2}, .poll_s = 0.05};
    memset(s, 0, sizeof *s);
    assert_ok(tn_model_set_open(&s->models, &set, &err), err.text);
    const tn_service_opts opts = {
        .models = s->models, .workers = 2, .rows_max = 100, .max_shift = 2};
    assert_ok(tn_service_new(&s->service, &opts, &err), err.text);
}

static void served_close(served *s)
{
    tn_text_done(&s->reply.body);
    tn_service_free(s->service);
    tn_model_set_close(s->models);
}

/* Answers a request; the body as a text. */
static const char *ask(served *s, tn_http_request request, const char *body)
{
    if (request.method == NULL) {
        request.method = body != NULL ? "POST" : "GET";
    }
    request.body = (tn_bytes){body, body != NULL ? strlen(body) : 0, false};
    tn_service_answer(s->service, 1, &request, &s->reply);
    return tn_text_str(&s->reply.body);
}

static const char *post(served *s, const char *path, const char *body)
{
    return ask(s, (tn_http_request){.path = path}, body);
}

/* Reads `n` numbers between commas, after the first bracket after `from`. */
static void read_numbers(const char *text, const char *from, double *out, uint32_t n)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    at = strchr(at, '[');
    for (uint32_t i = 0; i < n; i++) {
        char *end;
        assert_non_null(at);
        out[i] = strtod(at + 1, &end);
        assert_true(end > at + 1);
        at = end;
    }
}

/* "0.25" for each row of edge.csv, as tnet-score prints it. */
static void wanted_lines(tn_text *out)
{
    uint32_t n = 0;
    float *logit FREED(tn_free) = exportkit_scorer_logits(&kit, exported.path, &n);
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(out, "%.9g\n", (double)(float)(1 / (1 + exp(-(double)logit[i]))));
    }
}

static void read_edge(tn_text *out)
{
    PATH_IN(path, kit.dir, "edge.csv");
    tn_error err = {0};
    assert_ok(tn_file_read_all(path, 1 << 20, out, &err), err.text);
}

TEST(lines_of_the_training_data_have_the_scores_of_the_export)
{
    tn_text wanted CLEANUP(tn_text_done) = {0};
    tn_text edge CLEANUP(tn_text_done) = {0};
    OPEN(served, s, exported.path);
    wanted_lines(&wanted);
    read_edge(&edge);
    assert_string_equal(post(&s, "/score", tn_text_str(&edge)), tn_text_str(&wanted));
    assert_int_equal(s.reply.code, 200);
    assert_string_equal(s.reply.version, exported.model_id);
}

static const char instance[] =
    "{\"user\":1,\"item\":\"a1\",\"hist\":[\"a1\",\"a2\"],\"tags\":[\"t1\",\"t2\"],\"weights\":[1,"
    "0.5],\"seq\":[1,2],\"top\":3,\"topx\":2,\"gone\":\"ff\",\"age\":30,\"count\":7,\"amount\":2.5,"
    "\"price\":9.5,\"height\":150,\"speed\":4,\"drift\":1}";

/* The score of the first row of edge.csv, which is `instance`. */
static void first_line(char out[32])
{
    tn_text wanted CLEANUP(tn_text_done) = {0};
    wanted_lines(&wanted);
    (void)snprintf(out, 32, "%.*s", (int)strcspn(tn_text_str(&wanted), "\n"), tn_text_str(&wanted));
}

TEST(json_has_the_scores_of_the_training_data)
{
    char body[2000];
    char want[300];
    char first[32];
    OPEN(served, s, exported.path);
    first_line(first);
    (void)snprintf(body, sizeof body, "{\"instances\":[%s,\n%s]}", instance, instance);
    (void)snprintf(want, sizeof want, "{\"predictions\":[%s,%s],\"model_version\":\"%s\"}\n", first,
                   first, exported.model_id);
    assert_string_equal(post(&s, "/v1/models/ads:predict", body), want);
    (void)snprintf(body, sizeof body, "{\"examples\":[%s]}", instance);
    (void)snprintf(want, sizeof want, "{\"results\":[%s],", first);
    assert_says(post(&s, "/v1/models/ads:regress", body), want);
    assert_says(post(&s, "/v1/models/ads:classify", body), first);
    const tn_http_request lines = {.path = "/invocations", .content_type = "application/jsonlines"};
    assert_says(ask(&s, lines, instance), first);
    const tn_http_request json = {
        .path = "/score", .format = "jsonl", .accept = "application/json"};
    assert_says(ask(&s, json, instance), first);
}

TEST(a_context_counts_for_each_example)
{
    static const char body[] =
        "{\"context\":{\"user\":1,\"hist\":[\"a1\",\"a2\"],\"tags\":[\"t1\",\"t2\"],"
        "\"weights\":[1,0.5],\"seq\":[1,2],\"age\":30,\"price\":9.5,\"height\":150,\"speed\":4},"
        "\"examples\":[{\"item\":\"a9\"},{\"item\":\"a1\",\"top\":3,\"topx\":2,\"gone\":\"ff\","
        "\"count\":7,\"amount\":2.5,\"drift\":1}]}";
    char first[32];
    double score[2] = {0};
    OPEN(served, s, exported.path);
    first_line(first);
    const char *reply = post(&s, "/v1/models/ads:regress", body);
    read_numbers(reply, "results", score, 2);
    assert_true(fabs(score[1] - strtod(first, NULL)) < 1e-6);
    assert_true(fabs(score[0] - score[1]) > 1e-5);
    assert_says(post(&s, "/v1/models/ads:regress", "{\"context\":5,\"examples\":[]}"),
                "the context is no object");
    (void)post(&s, "/v1/models/ads:regress", "{\"context\":{},\"examples\":[{},{}]}");
    assert_int_equal(s.reply.code, 200);
}

/* Asks, and compares code and a part of the answer. */
static void refused(served *s, tn_http_request request, const char *body, uint32_t code,
                    const char *says)
{
    const char *reply = ask(s, request, body);
    fail_if(s->reply.code != code, "%s: %u: %s", request.path, s->reply.code, reply);
    assert_says(reply, says);
    assert_memory_equal(reply, "{\"error\":\"", 10);
}

TEST(refusals_have_a_code_and_a_sentence)
{
    char rows[1000] = "{\"instances\":[{}";
    OPEN(served, s, exported.path);
    for (int i = 0; i < 100; i++) {
        memcpy(rows + strlen(rows), ",{}", 4);
    }
    memcpy(rows + strlen(rows), "]}", 3);
    const tn_http_request predict = {.path = "/v1/models/ads:predict"};
    refused(&s, predict, rows, 413, "more than 100 rows");
    refused(&s, predict, "{", 400, "the body is no JSON: byte 2");
    refused(&s, predict, "{}", 400, "no member 'instances'");
    refused(&s, predict, "{\"instances\":[{},{\"usr\":1}]}", 400,
            "instances:2: no member is a field of the model");
    refused(&s, (tn_http_request){.path = "/score", .format = "jsonl"}, "{\"instances\":[{}]}", 400,
            "for /v1/models/NAME:predict");
    refused(&s, predict, "{\"instances\":[{\"user\":\"x\"}]}", 400,
            "instances:1:10: expected a decimal integer, found \\\"x\\\"\"}");
    refused(&s, (tn_http_request){.path = "/v1/models/ads:predict", .method = "GET"}, "", 405,
            "which takes POST");
    assert_string_equal(s.reply.allow, "POST");
    refused(&s, (tn_http_request){.path = "/metrics", .method = "PUT"}, "", 405, "GET, HEAD");
    refused(&s, (tn_http_request){.path = "/no"}, "", 404, "there is no path '/no'");
    refused(&s, (tn_http_request){.path = "/v1/models/x:predict"}, "{}", 404, "no model 'x'");
    refused(&s, (tn_http_request){.path = "/v1/models/ads/versions/00000000:predict"}, "{}", 404,
            "model 'ads' has no version '00000000'");
    refused(&s, (tn_http_request){.path = "/score", .format = "crb"}, "", 400, "format 'crb'");
    refused(&s, (tn_http_request){.path = "/score", .label = "x"}, "", 400, "label=x");
    refused(&s, (tn_http_request){.path = "/invocations", .content_type = "image/png"}, "", 415,
            "image/png");
    refused(&s, (tn_http_request){.path = "/v2/models/ads/infer", .json_bytes = "9"}, "{}", 400,
            "Inference-Header-Content-Length");
}

TEST(a_version_is_named_by_its_first_digits)
{
    char path[100];
    OPEN(served, s, exported.path);
    (void)snprintf(path, sizeof path, "/v1/models/ads/versions/%.8s", exported.model_id);
    assert_says(ask(&s, (tn_http_request){.path = path}, NULL), "AVAILABLE");
    (void)snprintf(path, sizeof path, "/v1/models/ads/versions/%.7s", exported.model_id);
    (void)ask(&s, (tn_http_request){.path = path}, NULL);
    assert_int_equal(s.reply.code, 404);
}

TEST(tensors_are_answered_as_json_and_as_bytes)
{
    static const char json[] =
        "{\"id\":\"q\",\"inputs\":[{\"name\":\"user\",\"shape\":[2],\"datatype\":\"INT64\","
        "\"data\":[1,2]}]}";
    static const char bytes[] =
        "{\"inputs\":[{\"name\":\"user\",\"shape\":[2],\"datatype\":\"INT64\",\"data\":[1,2]}],"
        "\"outputs\":[{\"name\":\"pctr\",\"parameters\":{\"binary_data\":true}}]}";
    double want[2] = {0};
    float have[2];
    OPEN(served, s, exported.path);
    const char *reply = post(&s, "/v2/models/ads/infer", json);
    assert_says(reply, "\"id\":\"q\"");
    read_numbers(reply, "\"data\"", want, 2);
    reply = post(&s, "/v2/models/ads/infer", bytes);
    assert_int_equal(s.reply.body.size, s.reply.json_bytes + sizeof have);
    memcpy(have, reply + s.reply.json_bytes, sizeof have);
    assert_float_equal(have[0], (float)want[0], 0);
    assert_float_equal(have[1], (float)want[1], 0);
    assert_says(post(&s, "/v2/models/ads/infer",
                     "{\"inputs\":[{\"name\":\"user\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":"
                     "[1]}],\"outputs\":[{\"name\":\"no\"}]}"),
                "no output \\\"no\\\"");
}

TEST(a_server_that_drains_answers_and_is_not_ready)
{
    OPEN(served, s, exported.path);
    (void)ask(&s, (tn_http_request){.path = "/ready"}, NULL);
    assert_int_equal(s.reply.code, 200);
    tn_service_drain(s.service);
    refused(&s, (tn_http_request){.path = "/ready"}, NULL, 503, "drains");
    refused(&s, (tn_http_request){.path = "/ping"}, NULL, 503, "drains");
    (void)ask(&s, (tn_http_request){.path = "/health"}, NULL);
    assert_int_equal(s.reply.code, 200);
    (void)post(&s, "/v1/models/ads:predict", "{\"instances\":[{}]}");
    assert_int_equal(s.reply.code, 200);
}

TEST(metrics_count_answers_and_rows)
{
    OPEN(served, s, exported.path);
    (void)post(&s, "/v1/models/ads:predict", "{\"instances\":[{},{}]}");
    tn_count_answer(tn_service_metrics(s.service), 1, s.reply.route, s.reply.code, 1e-3);
    const char *text = ask(&s, (tn_http_request){.path = "/metrics"}, NULL);
    assert_says(text, "tnet_requests_total{path=\"predict\",code=\"200\"} 1\n");
    assert_says(text, "tnet_request_seconds_bucket{le=\"0.0008\"} 0\n");
    assert_says(text, "tnet_request_seconds_bucket{le=\"0.0016\"} 1\n");
    assert_says(text, "tnet_request_seconds_bucket{le=\"+Inf\"} 1\n");
    assert_says(text, "tnet_rows_total{model=\"ads\"} 2\n");
    assert_says(text, exported.model_id);
}

/* ---- answers ---- */

static const float some[] = {0.25F, NAN};
static const float others[] = {INFINITY, 1};

TEST(what_is_not_finite_is_null)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    const tn_served_scores s = {.n = 2, .n_tasks = 1, .name = {"pctr"}, .value = {some}};
    tn_answer_predictions(&out, &s, "v");
    assert_string_equal(tn_text_str(&out),
                        "{\"predictions\":[0.25,null],\"model_version\":\"v\"}\n");
    tn_text_clear(&out);
    tn_answer_lines(&out, &s);
    assert_string_equal(tn_text_str(&out), "0.25\nnan\n");
}

TEST(names_of_tasks_are_quoted)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    const tn_served_scores s = {
        .n = 2, .n_tasks = 2, .name = {"a\"b", "c"}, .value = {some, others}};
    tn_answer_predictions(&out, &s, "v");
    assert_says(tn_text_str(&out), "[{\"a\\\"b\":0.25,\"c\":null},{\"a\\\"b\":null,\"c\":1}]");
    tn_text_clear(&out);
    tn_answer_outputs(&out, &s, "v");
    assert_says(tn_text_str(&out), "{\"outputs\":{\"a\\\"b\":[0.25,null],\"c\":[null,1]},");
}

TEST(no_rows_have_no_scores)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    const tn_served_scores s = {.n = 0, .n_tasks = 2, .name = {"a", "b"}, .value = {some, others}};
    const tn_infer_ask whose = {.model = "m", .version = "v", .wanted = UINT64_MAX};
    tn_answer_predictions(&out, &s, "v");
    assert_says(tn_text_str(&out), "{\"predictions\":[],");
    tn_text_clear(&out);
    assert_int_equal(tn_answer_infer(&out, &s, &whose), 0);
    assert_says(tn_text_str(&out), "\"shape\":[0],\"data\":[]");
}

/* ---- versions ---- */

static const char ids[2][33] = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"};

/* Copies the export into the folder under another name. */
static void put_copy(const char *name)
{
    char to[400];
    tn_error err = {0};
    (void)snprintf(to, sizeof to, "%s/%s", folder, name);
    assert_ok(tn_copy_tree(exported.path, to, NULL, &err), err.text);
}

static void put_word(const char *file, const char *word)
{
    char path[400];
    tn_error err = {0};
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    assert_ok(tn_file_replace(path, word, strlen(word), &err), err.text);
}

/* Waits until that many swaps are done and failed. */
static void await_swaps(served *s, uint64_t done, uint64_t failed)
{
    tn_swap_counts have = {0};
    for (int i = 0; i < 2000 && (have.done != done || have.failed != failed); i++) {
        const struct timespec pause = {.tv_nsec = 5000000};
        (void)nanosleep(&pause, NULL);
        have = tn_model_set_swaps(s->models, 0);
    }
    assert_int_equal(have.done, done);
    assert_int_equal(have.failed, failed);
}

TEST(a_folder_publishes_what_latest_and_pin_name)
{
    tn_error err = {0};
    bool found = false;
    tn_tmpdir_make(folder);
    put_copy(ids[0]);
    put_copy(ids[1]);
    put_word("LATEST", ids[0]);
    OPEN(served, s, folder);
    assert_ok(tn_model_set_watch(s.models, tn_service_judge, s.service, &err), err.text);
    tn_model_version *old = tn_model_set_take(s.models, (tn_bytes){0}, (tn_bytes){0}, &found);
    put_word("LATEST", ids[1]);
    await_swaps(&s, 1, 0);
    tn_model_version *now = tn_model_set_take(s.models, (tn_bytes){0}, (tn_bytes){0}, &found);
    assert_ptr_not_equal(now, old);
    assert_string_equal(tn_served_version(old->served), exported.model_id); /* still open */
    tn_model_set_give(s.models, old);
    tn_model_set_give(s.models, now);
    put_word("PIN", ids[0]);
    await_swaps(&s, 2, 0);
    put_word("PIN", "../elsewhere");
    await_swaps(&s, 2, 1);
    put_word("PIN", "cccccccccccccccccccccccccccccccc");
    await_swaps(&s, 2, 2);
    (void)post(&s, "/v1/models/ads:predict", "{\"instances\":[{}]}");
    assert_int_equal(s.reply.code, 200);
    put_word("PIN", ids[1]);
    await_swaps(&s, 3, 2);
    tn_tmpdir_remove(folder);
}

TEST(a_damaged_version_stays_out)
{
    char path[400];
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    tn_tmpdir_make(folder);
    put_copy(ids[0]);
    put_copy(ids[1]);
    put_word("LATEST", ids[0]);
    OPEN(served, s, folder);
    assert_ok(tn_model_set_watch(s.models, tn_service_judge, s.service, &err), err.text);
    (void)snprintf(path, sizeof path, "%s/%s/dict.tnd", folder, ids[1]);
    assert_ok(tn_file_read_all(path, 1 << 24, &text, &err), err.text);
    text.data[text.size / 2] = (char)(text.data[text.size / 2] ^ 1);
    assert_ok(tn_file_replace(path, text.data, text.size, &err), err.text);
    put_word("LATEST", ids[1]);
    await_swaps(&s, 0, 1);
    (void)post(&s, "/v1/models/ads:predict", "{\"instances\":[{}]}");
    assert_int_equal(s.reply.code, 200);
    text.data[text.size / 2] = (char)(text.data[text.size / 2] ^ 1); /* it is mended */
    assert_ok(tn_file_replace(path, text.data, text.size, &err), err.text);
    assert_string_equal(post(&s, "/v2/repository/models/ads/load", ""), "{}\n");
    await_swaps(&s, 1, 1); /* without waiting for a minute */
    tn_tmpdir_remove(folder);
}

TEST(names_of_models_are_words)
{
    static const char *const wrong[] = {"a b", "", ".x", "a/b", "a:b"};
    const char *const paths[] = {exported.path, exported.path};
    static const char *const same[] = {"ads", "ads"};
    tn_model_set *set = NULL;
    tn_error err = {0};
    tn_model_set_opts opts = {.paths = {1, paths}, .served = {.hands = 1}, .poll_s = 1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        opts.names = (tn_strs){1, &wrong[i]};
        assert_int_equal(tn_model_set_open(&set, &opts, &err), TN_E_USAGE);
        assert_null(set);
    }
    opts.paths.n = 2;
    opts.names = (tn_strs){2, same};
    assert_int_equal(tn_model_set_open(&set, &opts, &err), TN_E_USAGE);
    assert_says(err.text, "two models are called 'ads'");
    opts.paths.n = 1;
    opts.names.n = 0;
    assert_ok(tn_model_set_open(&set, &opts, &err), err.text);
    assert_string_equal(tn_model_set_name(set, 0), "export");
    tn_model_set_close(set);
}
