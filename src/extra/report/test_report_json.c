/* test_report_json.c - the numbers of the page are those of the metrics. */
#include "extra/report/report_json.h"

#include "base/codec/json.h"
#include "support/test.h"
#include "train/resultkit.h"

/* A document and its tree. */
typedef struct document {
    tn_text text;
    tn_arena *arena;
    const tn_json *top;
} document;

static document document_of(const resultkit *k)
{
    document d = {.arena = tn_arena_new(1 << 12)};
    assert_int_equal(tn_report_json(&k->findings, NULL, &d.text, NULL), TN_OK);
    assert_int_equal(tn_json_parse(&d.top, d.text.data, d.text.size, d.arena, "it", NULL), TN_OK);
    return d;
}

static void document_done(document *d)
{
    tn_arena_free(d->arena);
    tn_text_done(&d->text);
}

static void assert_has(const document *d, const char *text)
{
    assert_says(tn_text_str(&d->text), text);
}

/* A number of a row of a table, or of a list of points; NAN: null. */
static double at(const tn_json *list, uint32_t row, uint32_t column)
{
    const tn_json *rows = list->kind == TN_JSON_OBJECT ? tn_json_get(list, "rows") : list;
    const tn_json *cell = tn_json_item(tn_json_item(rows, row), column);
    double value = (double)NAN;
    assert_non_null(cell);
    assert_true(tn_json_as_f64(cell, &value) || cell->kind == TN_JSON_NULL);
    return value;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

TEST(the_facts_say_what_was_judged_on_what_and_when_it_was_trained)
{
    static const char line[] = "{\"kind\":\"train\",\"step\":12,\"t\":1700000000}\n";
    static const char hash[] = "00112233445566778899aabbccddeeff";
    const char *data[] = {"logs/day&night.tsv", "b.tsv"};
    resultkit k CLEANUP(resultkit_done);
    TMPDIR(dir);
    PATH_IN(path, dir, "metrics.jsonl");
    assert_int_equal(tn_file_replace(path, line, sizeof line - 1, NULL), TN_OK);
    resultkit_make(&k, true, "item");
    k.run.data.test = (tn_strs){2, data};
    k.evaluation.calibrated_by = "platt";
    k.findings.journal = path;
    k.findings.config_hash = hash;
    document d = document_of(&k);
    assert_has(&d, "\"12 steps, 345 records, until 2023-11-14 22:13 UTC\"");
    assert_has(&d, "\"code\":\"logs/day&night.tsv b.tsv\",\"text\":\"8 records of 1 file, 0 bad, ");
    assert_has(&d, "\"code\":\"00112233445566778899aabbccddeeff\",\"text\":\"\"}");
    assert_has(&d, "\"text\":\"calibrated by platt\"");
    assert_has(&d, "\"text\":\"8 of weight above 0\"");
    assert_null(strstr(tn_text_str(&d.text), "\"model\""));
    document_done(&d);
    k.evaluation.calibrated_by = NULL;
}

TEST(figures_are_those_of_the_metrics)
{
    resultkit k CLEANUP(resultkit_done);
    resultkit_make(&k, true, "item");
    document d CLEANUP(document_done) = document_of(&k);
    assert_has(&d, "[\"auc\",0.9333333");
    const tn_json *points = tn_json_get(tn_json_get(d.top, "curve"), "points");
    assert_true(at(points, 0, 0) == 0 && at(points, 0, 1) == 0 && isnan(at(points, 0, 2)));
    assert_true(at(points, points->n - 1, 0) == 1 && at(points, points->n - 1, 1) == 1);
    assert_true(is_near(at(points, points->n - 1, 2), 3. / 8));
    const tn_json *bins = tn_json_get(d.top, "reliability");
    const tn_json *deciles = tn_json_get(d.top, "deciles");
    assert_int_equal(bins->n, 8);
    assert_int_equal(tn_json_get(deciles, "rows")->n, 8);
    const tn_interval none = tn_interval_wilson(0, 1);
    assert_true(at(bins, 0, 1) == 0 && is_near(at(bins, 0, 2), none.low));
    assert_true(is_near(at(bins, 0, 3), none.high));
    assert_true(is_near(at(bins, 0, 0), 1 / (1 + exp(3))) && at(bins, 0, 4) == 1);
    assert_true(at(deciles, 7, 4) == 1 && at(deciles, 7, 3) == 1);
    assert_true(is_near(at(deciles, 7, 8), 1 + exp(-1)));
}

TEST(each_row_is_in_a_bin_of_the_scores)
{
    resultkit k CLEANUP(resultkit_done);
    resultkit_make(&k, true, "item");
    document d CLEANUP(document_done) = document_of(&k);
    const tn_json *scores = tn_json_get(d.top, "scores");
    const tn_json *bins = tn_json_get(scores, "bins");
    double sum[2] = {0};
    for (uint32_t i = 0; i < bins->n; i++) {
        sum[0] += at(bins, i, 0);
        sum[1] += at(bins, i, 1);
    }
    assert_has(&d, "\"scores\":{\"low\":-3,\"high\":1,");
    assert_true(sum[0] == 3 && sum[1] == 5);
    assert_true(at(bins, 0, 1) == 1 && at(bins, bins->n - 1, 0) == 1);
}

TEST(slices_and_intervals_are_tables)
{
    resultkit k CLEANUP(resultkit_done);
    resultkit_make(&k, true, "item");
    tn_eval_result_intervals(&k.findings);
    document d CLEANUP(document_done) = document_of(&k);
    const tn_json *slot = tn_json_get(tn_json_item(tn_json_get(d.top, "slices"), 0), "table");
    assert_has(&d, "{\"columns\":[\"item\",\"rows\",\"auc\",\"logloss\",\"copc\",\"ctr\",\"pctr\"],"
                   "\"rows\":[[\"7\",5,0.75,");
    assert_true(at(slot, 1, 1) == 3 && is_near(at(slot, 1, 5), 2. / 3));
    const tn_json *intervals = tn_json_get(d.top, "intervals");
    assert_has(&d, "\"rows\":[[\"DeLong\",");
    assert_true(is_near(at(intervals, 0, 1), k.findings.delong.low));
    assert_true(is_near(at(intervals, 1, 2), k.findings.bootstrap.high));
}

TEST(one_class_has_no_curves)
{
    static const float logit[] = {-1, 1};
    static const float label[] = {0, 0};
    const tn_scored rows = {.n = 2, .logit = logit, .label = label};
    resultkit k CLEANUP(resultkit_done);
    resultkit_make(&k, false, "item");
    tn_metrics_clear(k.evaluation.metrics);
    assert_int_equal(tn_metrics_add(k.evaluation.metrics, &rows, NULL), TN_OK);
    document d CLEANUP(document_done) = document_of(&k);
    assert_null(tn_json_get(d.top, "curve"));
    assert_int_equal(tn_json_get(d.top, "reliability")->n, 2);
    assert_non_null(tn_json_get(d.top, "scores"));
    assert_has(&d, "[\"auc\",null,");
}

TEST(no_rows_make_a_document_too)
{
    resultkit k CLEANUP(resultkit_done);
    resultkit_make(&k, true, "item");
    tn_metrics_clear(k.evaluation.metrics);
    tn_slices_free(k.evaluation.slices[0]);
    assert_int_equal(
        tn_slices_new(&k.evaluation.slices[0], &(tn_slices_opts){.slices_max = 1}, NULL), TN_OK);
    document d CLEANUP(document_done) = document_of(&k);
    assert_has(&d, "[\"logloss\",null,");
    assert_has(&d, "\"reliability\":[]");
    assert_null(tn_json_get(d.top, "scores"));
}

TEST(rows_without_labels_have_facts_and_history_alone)
{
    resultkit k CLEANUP(resultkit_done);
    resultkit_make(&k, true, "item");
    k.label.none = true;
    document d CLEANUP(document_done) = document_of(&k);
    assert_non_null(tn_json_get(d.top, "facts"));
    assert_non_null(tn_json_get(d.top, "history"));
    assert_null(tn_json_get(d.top, "metrics"));
    assert_null(tn_json_get(d.top, "slices"));
}
