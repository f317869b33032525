/* test_window_totals.c - a `train` record is about its window, and about nothing before it.
 */
#include "train/report/window_totals.h"

#include "base/codec/json.h"
#include "support/test.h"

/* One that waited for rows for so long. */
static tn_step_turn turn_of(double rows_s)
{
    return (tn_step_turn){.learned = {.loss = 0.5, .grad_norm = 3},
                          .waited_s = 0.001,
                          .waits = {.rows_s = rows_s, .weights_s = 0.004},
                          .took_s = 0.008};
}

/* A number of the record of the window: "rows_per_s", "wait_ms.pull". */
static double figure(const tn_window_totals *w, double now, const char *key)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const tn_json *record = NULL;
    double value = 0;
    tn_json_open(&text, '{');
    tn_window_totals_record(w, now, false, &text);
    tn_json_close(&text, '}');
    assert_int_equal(tn_json_parse(&record, text.data, text.size, arena, "record", NULL), TN_OK);
    const char *dot = strchr(key, '.');
    assert_true(tn_json_as_f64(tn_json_get(dot != NULL ? tn_json_get(record, "wait_ms") : record,
                                           dot != NULL ? dot + 1 : key),
                               &value));
    return value;
}

static bool is_near(double value, double wanted)
{
    return fabs(value - wanted) < 1e-9;
}

TEST(a_record_holds_what_passed_since_the_one_before)
{
    tn_window_totals w;
    const tn_step_turn turn[] = {turn_of(0.002), turn_of(0.006), turn_of(0)};
    assert_int_equal(tn_window_totals_init(&w, &(tn_metrics_opts){.sampling = 1}, NULL, 10, NULL),
                     TN_OK);
    tn_window_step step = {.turn = &turn[0], .joint = 100, .bytes_in = 1000, .bytes_out = 3000};
    tn_window_totals_add(&w, &step);
    step.turn = &turn[1];
    step.bytes_in = 1500;
    step.bytes_out = 3700;
    tn_window_totals_add(&w, &step);
    assert_true(figure(&w, 12, "rows_per_s") == 100 && figure(&w, 12, "grad_norm") == 3);
    assert_true(is_near(figure(&w, 12, "wait_ms.read"), 1));
    assert_true(is_near(figure(&w, 12, "wait_ms.pull"), 4));
    assert_true(is_near(figure(&w, 12, "wait_ms.push"), 4));
    assert_true(is_near(figure(&w, 12, "compute_ms"), 8));
    assert_true(figure(&w, 12, "pulled_bytes") == 1500);
    assert_true(figure(&w, 12, "pushed_bytes") == 3700);
    tn_window_totals_clear(&w, 12);
    step.turn = &turn[2];
    step.bytes_in = 1700;
    step.bytes_out = 3800;
    tn_window_totals_add(&w, &step);
    assert_true(figure(&w, 13, "wait_ms.pull") == 0 && figure(&w, 13, "rows_per_s") == 100);
    assert_true(figure(&w, 13, "pulled_bytes") == 200);
    assert_true(figure(&w, 13, "pushed_bytes") == 100);
    tn_window_totals_done(&w);
}

/* What other ranks have reported so far. */
typedef struct others {
    tn_ranks_sums sums;
    tn_metrics *scores;
} others;

static void sums_of(void *self, tn_ranks_sums *out)
{
    *out = ((const others *)self)->sums;
}

static tn_status scores_of(void *self, tn_metrics *m, tn_error *err)
{
    tn_metrics_clear(m);
    return tn_metrics_merge(m, ((const others *)self)->scores, err);
}

/* They have that many more rows, half of them clicks, each of loss .25. */
static void report(others *o, uint32_t rows)
{
    static const float logit[] = {-1, 1};
    static const float label[] = {0, 1};
    const tn_scored pair = {.n = 2, .logit = logit, .label = label};
    for (uint32_t i = 0; i < rows; i += 2) {
        assert_int_equal(tn_metrics_add(o->scores, &pair, NULL), TN_OK);
    }
    o->sums.rows += rows;
    o->sums.loss += .25 * rows;
    o->sums.weight += rows;
}

TEST(other_ranks_count_in_the_window_in_which_they_report)
{
    static const float logit[] = {2, -2, -3, -4};
    static const float label[] = {0, 0, 1, 0};
    const tn_scored rows = {.n = 4, .logit = logit, .label = label};
    const tn_step_turn turn = {.learned = {.loss = 1}, .weight = 4};
    const tn_window_step step = {.turn = &turn, .joint = 4};
    static const tn_ranks_ops ops = {.sums = sums_of, .scores = scores_of};
    others all = {0};
    const tn_ranks ranks = {&ops, &all};
    tn_window_totals w;
    assert_int_equal(tn_metrics_new(&all.scores, &(tn_metrics_opts){.coarse = true}, NULL), TN_OK);
    assert_int_equal(tn_window_totals_init(&w, &(tn_metrics_opts){.sampling = 1}, &ranks, 10, NULL),
                     TN_OK);
    report(&all, 12);
    tn_window_totals_add(&w, &step);
    assert_int_equal(tn_metrics_add(w.metrics, &rows, NULL), TN_OK);
    assert_int_equal(tn_window_totals_hear(&w, NULL), TN_OK);
    assert_int_equal(tn_metrics_rows(tn_window_totals_metrics(&w)), 16);
    assert_true(figure(&w, 11, "rows_per_s") == 16 && figure(&w, 11, "loss") == (4 + 3) / 16.);
    tn_window_totals_clear(&w, 11);
    report(&all, 4);
    tn_window_totals_add(&w, &step);
    assert_int_equal(tn_metrics_add(w.metrics, &rows, NULL), TN_OK);
    assert_int_equal(tn_window_totals_hear(&w, NULL), TN_OK);
    assert_int_equal(tn_window_totals_hear(&w, NULL), TN_OK); /* twice is as once */
    assert_int_equal(tn_metrics_rows(tn_window_totals_metrics(&w)), 8);
    assert_true(figure(&w, 12, "rows_per_s") == 8 && figure(&w, 12, "loss") == (4 + 1) / 8.);
    const double auc = 9 / 15.; /* the clicks at 1, 1 and -3 are above 4, 4 and 1 of 5 others */
    assert_true(is_near(figure(&w, 12, "auc"), auc));
    tn_window_totals_done(&w);
    tn_metrics_free(all.scores);
}
