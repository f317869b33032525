/* test_target.c - which labels there may be, by what the loss makes of them. */
#include "base/keys/target.h"

#include "config/tree.h"
#include "io/read/schema_inference.h"
#include "io/setup.h"
#include "support/test.h"

/* "1 0 .5 -1 2 -3.5 1e9 1.1e9 nan" as the target reads them; x: no label. */
static void check(tn_target target, const char *want)
{
    static const char *const texts[] = {"1",    "0",   ".5",    "-1",  "2",
                                        "-3.5", "1e9", "1.1e9", "nan", "x"};
    const tn_label_rule rule = {.column = "label", .target = target, .threshold = (double)NAN};
    tn_text got CLEANUP(tn_text_done) = {0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        float y = -77;
        const bool good = tn_label_of_text(&rule, texts[i], strlen(texts[i]), &y);
        tn_text_addf(&got, good ? "%s%g" : "%sx", i > 0 ? " " : "", (double)y);
    }
    assert_string_equal(tn_text_str(&got), want);
}

TEST(labels_are_those_of_the_target)
{
    check(TN_TARGET_CLICK, "1 0 0.5 0 x x x x x x");
    check(TN_TARGET_SIDE, "1 0 x 0 x x x x x x");
    check(TN_TARGET_NUMBER, "1 0 0.5 -1 2 -3.5 1e+09 x x x");
    check(TN_TARGET_ORDER, "1 0 0.5 -1 2 -3.5 1e+09 x x x");
}

static const char *bind(setup *s, tn_target target, const char *label)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    const tn_schema *schema = NULL;
    const tn_binder b = {.arena = s->arena, .diag = &s->diag};
    tn_data_opts data = s->data;
    tn_text_addf(&t, "{label: %s}", label);
    data.label = tn_tree_get(tn_tree_read_flow(s->arena, tn_text_str(&t), "test"), "label");
    data.target = target;
    tn_text_clear(&s->diag.text);
    s->diag.n_errors = 0;
    const tn_status status = tn_schema_new(&schema, &data, &s->slots, &b, &s->err);
    assert_int_equal(status == TN_OK, s->diag.n_errors == 0);
    return tn_text_str(&s->diag.text);
}

TEST(texts_mean_labels_of_the_target)
{
    OPEN(setup, s, "{data: {format: csv}, slots: [a]}");
    assert_string_equal(bind(&s, TN_TARGET_CLICK, "{column: y, values: {a: .5, b: 1}}"), "");
    assert_string_equal(bind(&s, TN_TARGET_NUMBER, "{column: y, values: {a: -7, b: 3.5}}"), "");
    assert_non_null(
        strstr(bind(&s, TN_TARGET_CLICK, "{column: y, values: {a: -7}}"), "not within 0 .. 1"));
    assert_non_null(strstr(bind(&s, TN_TARGET_SIDE, "{column: y, values: {a: .5, b: 1}}"),
                           "a label of this loss is 0 or 1, not 0.5"));
    assert_non_null(strstr(bind(&s, TN_TARGET_NUMBER, "{column: y, values: {a: 2e9}}"),
                           "not within -1000000000 .. 1000000000"));
}
