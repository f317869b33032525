/* test_answers.c - scores as bodies: what JSON cannot say, and names that want quotes. */
#include "extra/http/answers.h"
#include "support/test.h"

static const float first[] = {0.25F, NAN};
static const float second[] = {INFINITY, 1};

TEST(what_is_not_finite_is_null)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    const tn_served_scores s = {.n = 2, .n_tasks = 1, .name = {"pctr"}, .value = {first}};
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
        .n = 2, .n_tasks = 2, .name = {"a\"b", "c"}, .value = {first, second}};
    tn_answer_predictions(&out, &s, "v");
    assert_says(tn_text_str(&out), "[{\"a\\\"b\":0.25,\"c\":null},{\"a\\\"b\":null,\"c\":1}]");
    tn_text_clear(&out);
    tn_answer_outputs(&out, &s, "v");
    assert_says(tn_text_str(&out), "{\"outputs\":{\"a\\\"b\":[0.25,null],\"c\":[null,1]},");
}

TEST(no_rows_have_no_scores)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    const tn_served_scores s = {.n = 0, .n_tasks = 2, .name = {"a", "b"}, .value = {first, second}};
    const tn_infer_ask ask = {.model = "m", .version = "v", .wanted = UINT64_MAX};
    tn_answer_predictions(&out, &s, "v");
    assert_says(tn_text_str(&out), "{\"predictions\":[],");
    tn_text_clear(&out);
    assert_int_equal(tn_answer_infer(&out, &s, &ask), 0);
    assert_says(tn_text_str(&out), "\"shape\":[0],\"data\":[]");
}
