/* test_eval_result.c - tables and JSON of an evaluation. */

#include "base/codec/json.h"
#include "support/test.h"
#include "train/resultkit.h"

static void text_of(const resultkit *k, tn_text *out)
{
    assert_int_equal(tn_eval_result_text(&k->findings, out, NULL), TN_OK);
}

TEST(tables_hold_metrics_and_slices)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, false, "item");
    text_of(&k, &text);
    const char *s = tn_text_str(&text);
    assert_non_null(strstr(s, "\nrows "));
    assert_non_null(strstr(s, "  0.933333\n")); /* 14 of 15 pairs */
    assert_non_null(strstr(s, "\n\nitem  rows"));
    assert_non_null(strstr(s, "7     5  0.750000")); /* 3 of 4 pairs */
    assert_non_null(strstr(s, "9     3  1.000000"));
    assert_null(strstr(s, "interval"));
}

TEST(exact_auc_brings_intervals)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, true, "item");
    tn_eval_result_intervals(&k.findings);
    assert_true(k.findings.has_intervals);
    assert_true(k.findings.delong.low < 14 / 15.0 && k.findings.delong.high > 14 / 15.0);
    text_of(&k, &text);
    assert_non_null(strstr(tn_text_str(&text), "auc, .95 interval by DeLong: "));
    assert_non_null(strstr(tn_text_str(&text), "auc, .95 interval by bootstrap: "));
}

/* 4 clicks of 8 rows; the map is the identity, so both columns are equal. */
TEST(a_calibration_tells_what_it_was_fitted_on)
{
    static const char *const paths[] = {"a.tsv", "b.tsv"};
    const tn_strs data = {2, paths};
    resultkit k CLEANUP(resultkit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, false, "item");
    const tn_calibrate c = {
        .opts = {.method = TN_CALIBRATE_PLATT, .path = "c.json", .data = &data},
        .n = 1,
        .of = {{.rows = 8, .after = k.evaluation.metrics}},
        .map = {{.kind = TN_CALIBRATION_PLATT, .a = 1.5, .b = -.25}},
    };
    k.findings.calibrate = &c;
    text_of(&k, &text);
    const char *s = tn_text_str(&text);
    assert_non_null(strstr(s, "\n\nplatt      before     after\nlogloss  0."));
    assert_non_null(strstr(s, "\np = sigmoid(1.5 z - 0.25), fitted on these 8 rows of a.tsv b.tsv: "
                              "other rows tell what it is worth\n"
                              "c.json: for tnet-export --calibration\n"));
    tn_text_clear(&text);
    assert_int_equal(tn_eval_result_json(&k.findings, &text, NULL), TN_OK);
    assert_non_null(strstr(tn_text_str(&text), "\"calibration\":{\"method\":\"platt\",\"file\":"
                                               "\"c.json\",\"fitted_rows\":8,\"before\":{"));
}

TEST(without_labels_there_is_no_metric)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, true, "item");
    k.label.none = true;
    tn_eval_result_intervals(&k.findings);
    assert_false(k.findings.has_intervals);
    text_of(&k, &text);
    assert_string_equal(tn_text_str(&text), "8 rows without labels\n");
}

static double number(const tn_json *doc, const char *key)
{
    double value = (double)NAN;
    assert_true(tn_json_as_f64(tn_json_get(doc, key), &value));
    return value;
}

TEST(json_is_an_eval_record)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, true, "a \"slot\"");
    tn_eval_result_intervals(&k.findings);
    assert_int_equal(tn_eval_result_json(&k.findings, &text, NULL), TN_OK);
    assert_ptr_equal(strchr(text.data, '\n'), text.data + text.size - 1);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const tn_json *doc = NULL;
    assert_int_equal(tn_json_parse(&doc, text.data, text.size, arena, "json", NULL), TN_OK);
    assert_string_equal(tn_json_as_str(tn_json_get(doc, "kind")), "eval");
    assert_string_equal(tn_json_as_str(tn_json_get(doc, "data")), "test");
    assert_string_equal(tn_json_as_str(tn_json_get(doc, "model")), "runs/a/ckpt-3");
    assert_int_equal((int)number(doc, "step"), 12);
    assert_int_equal((int)number(doc, "samples"), 345);
    assert_int_equal((int)number(doc, "epoch"), 2);
    assert_int_equal((int)number(doc, "rows"), 8);
    assert_true(fabs(number(doc, "auc") - 14 / 15.0) < 1e-12);
    assert_non_null(tn_json_as_str(tn_json_get(doc, "loss_hex")));
    const tn_json *interval = tn_json_get(doc, "auc_delong");
    assert_true(number(interval, "low") < number(interval, "high"));
    const tn_json *slot = tn_json_get(tn_json_get(doc, "slices"), "a \"slot\"");
    assert_int_equal(slot->n, 2);
    assert_string_equal(tn_json_as_str(tn_json_get(slot->first, "sign")), "0000000000000007");
}

/* What a value of a slot of this kind is called. */
static void assert_value(tn_sign_type type, tn_transform_kind transform, uint64_t sign,
                         const char *want)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, false, "x");
    k.spec.type = type;
    k.spec.transform.kind = transform;
    tn_eval_result_value(&k.findings, 0, &(tn_slice){.sign = sign}, &text);
    assert_string_equal(tn_text_str(&text), want);
}

TEST(values_read_as_they_were_written)
{
    assert_value(TN_SIGN_ID, TN_TRANSFORM_IDENTITY, UINT64_MAX, "18446744073709551615");
    assert_value(TN_SIGN_INT, TN_TRANSFORM_IDENTITY, UINT64_MAX, "-1");
    assert_value(TN_SIGN_HEX, TN_TRANSFORM_IDENTITY, 0x68fd1e64, "68fd1e64");
    assert_value(TN_SIGN_STR, TN_TRANSFORM_IDENTITY, 0x1a, "000000000000001a");
    assert_value(TN_SIGN_INT, TN_TRANSFORM_LN2_BUCKET, 5, "ln2 5");
    assert_value(TN_SIGN_INT, TN_TRANSFORM_LN2_BUCKET, UINT64_C(0x1ffffffff), "-1");
    assert_value(TN_SIGN_FLOAT, TN_TRANSFORM_BUCKETS, 3, "3");
}

TEST(rare_values_are_counted_not_listed)
{
    resultkit k CLEANUP(resultkit_done);
    tn_slice slice[2];
    tn_slice_cut cut;
    resultkit_make(&k, false, "x");
    assert_int_equal(tn_eval_result_slices(&k.findings, 0, 1, slice, &cut, NULL), TN_OK);
    assert_int_equal(cut.n, 1);
    assert_int_equal(cut.hidden, 1);
    assert_int_equal(slice[0].sign, 7);
}
