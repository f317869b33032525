/* test_recorder.c - requests are kept as they were, the last ones, and no long ones. */
#include "extra/http/recorder.h"
#include "support/test.h"

#include <time.h>

CLOSER(tn_recorder_free);

/* The replayed requests as text. */
static tn_status add(void *arg, const tn_http_request *r, const tn_recorded *scored, tn_error *err)
{
    (void)err;
    tn_text_addf(arg, "%s,%s,%s,%u,%g:%.*s;", r->content_type != NULL ? r->content_type : "-",
                 r->format != NULL ? r->format : "-", tn_route_word(scored->route), scored->rows,
                 scored->sum, r->body.size < 20 ? (int)r->body.size : 20, r->body.data);
    return TN_OK;
}

static const char *all_of(tn_recorder *r, uint32_t model)
{
    static char text[50000];
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    assert_ok(tn_recorder_replay(r, model, add, &out, &err), err.text);
    (void)snprintf(text, sizeof text, "%s", tn_text_str(&out));
    return text;
}

static void keep(tn_recorder *r, uint32_t model, const char *body, size_t size, const char *format)
{
    const struct timespec pause = {.tv_nsec = 5100000}; /* some requests a second are kept */
    const tn_recorded scored = {.route = TN_ROUTE_SCORE, .rows = 2, .sum = 0.5};
    const tn_http_request request = {.method = "POST",
                                     .path = "/score",
                                     .content_type = "text/csv",
                                     .format = format,
                                     .body = {body, size, false}};
    tn_recorder_keep(r, model, &request, &scored);
    (void)nanosleep(&pause, NULL);
}

TEST(requests_are_kept_as_they_were)
{
    tn_recorder *r FREED(tn_recorder_free) = NULL;
    tn_error err = {0};
    assert_ok(tn_recorder_new(&r, 2, &err), err.text);
    assert_string_equal(all_of(r, 0), "");
    keep(r, 0, "a\n1\n", 4, NULL);
    keep(r, 1, "b", 1, "jsonl");
    assert_string_equal(all_of(r, 0), "text/csv,-,score,2,0.5:a\n1\n;");
    assert_string_equal(all_of(r, 1), "text/csv,jsonl,score,2,0.5:b;");
}

TEST(long_bodies_and_those_at_once_are_not_kept)
{
    static char body[16385];
    tn_recorder *r FREED(tn_recorder_free) = NULL;
    tn_error err = {0};
    assert_ok(tn_recorder_new(&r, 1, &err), err.text);
    memset(body, 'x', sizeof body);
    keep(r, 0, body, sizeof body, NULL);
    assert_string_equal(all_of(r, 0), "");
    keep(r, 0, body, sizeof body - 1, NULL);
    const tn_http_request request = {.method = "POST", .path = "/score", .body = {"y", 1, false}};
    for (int i = 0; i < 3; i++) {
        tn_recorder_keep(r, 0, &request, &(tn_recorded){.route = TN_ROUTE_SCORE});
    }
    assert_string_equal(all_of(r, 0), "text/csv,-,score,2,0.5:xxxxxxxxxxxxxxxxxxxx;"
                                      "-,-,score,0,0:y;");
}

TEST(the_last_ones_are_kept)
{
    tn_recorder *r FREED(tn_recorder_free) = NULL;
    tn_error err = {0};
    assert_ok(tn_recorder_new(&r, 1, &err), err.text);
    for (int i = 0; i < 257; i++) {
        char body[8];
        const int size = snprintf(body, sizeof body, "<%d>", i);
        keep(r, 0, body, (size_t)size, NULL);
    }
    const char *all = all_of(r, 0);
    assert_null(strstr(all, "<0>"));
    assert_says(all, "<1>");
    assert_says(all, "<256>");
}

static tn_status refuse(void *arg, const tn_http_request *r, const tn_recorded *scored,
                        tn_error *err)
{
    (void)r;
    (void)scored;
    ++*(int *)arg;
    return tn_fail(err, TN_E_DATA, "no");
}

TEST(a_fault_ends_the_replay)
{
    int calls = 0;
    tn_recorder *r FREED(tn_recorder_free) = NULL;
    tn_error err = {0};
    assert_ok(tn_recorder_new(&r, 1, &err), err.text);
    keep(r, 0, "a", 1, NULL);
    keep(r, 0, "b", 1, NULL);
    assert_int_equal(tn_recorder_replay(r, 0, refuse, &calls, &err), TN_E_DATA);
    assert_int_equal(calls, 1);
}
