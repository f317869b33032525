/* test_forecast.c - what a step will take: arithmetic on given rates, and rates that are measured.
 */
#include "extra/forecast/forecast.h"

#include "base/thread/threads.h"
#include "base/trace/trace.h"
#include "config/diag.h"
#include "support/test.h"
#include "train/config/run.h"
#include "train/golden.h"
#include "train/report/step_forecast.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* 4 ms a step, reading far ahead of it. */
static const tn_pace steady = {.step = 4e-3,
                               .step_busy = 7e-3,
                               .reads = true,
                               .hand_out = 1e-3,
                               .batches = 64,
                               .keys = {1000, 1000},
                               .examples = 1000,
                               .run_examples = 64000,
                               .data_examples = 64000,
                               .batch = 100,
                               .threads = 2,
                               .cpus = 2};

TEST(the_slowest_of_what_goes_on_side_by_side_counts)
{
    tn_pace p = steady;
    tn_forecast f = tn_forecast_of(&p);
    assert_true(near(f.seconds, 4e-3) && near(f.old, 4e-3) && f.waits == 0);
    assert_string_equal(f.bound, "steps");
    p.hand_out = 6e-3;
    p.cpus = 16;
    f = tn_forecast_of(&p);
    assert_true(near(f.seconds, 6e-3) && near(f.waits, 2e-3));
    assert_string_equal(f.bound, "reading");
    p.hand_out = 3e-3; /* 7 and 3 ms of work on two processors */
    p.cpus = 2;
    f = tn_forecast_of(&p);
    assert_true(near(f.seconds, 5e-3));
    assert_string_equal(f.bound, "processors");
    p.reads = false;
    assert_true(near(tn_forecast_of(&p).seconds, 4e-3));
}

TEST(a_window_is_waited_for_but_for_what_is_ready)
{
    tn_pace p = steady;
    p.window = 64e-3;
    tn_forecast f = tn_forecast_of(&p);
    assert_true(near(f.seconds, 5e-3) && near(f.waits, 1e-3) && near(f.old, 5e-3));
    p.ahead = 8;
    assert_true(near(tn_forecast_of(&p).waits, .5e-3));
    p.ahead = 20;
    assert_true(near(tn_forecast_of(&p).seconds, 4e-3));
    p.ahead = 0;
    p.window = 640e-3;
    assert_string_equal(tn_forecast_of(&p).bound, "reading");
}

TEST(rows_that_are_made_get_fewer)
{
    tn_pace p = steady;
    p.new_row = 1e-6;
    p.keys[0] = 10000; /* 10 new ones an example, for ever */
    p.keys[1] = 20000;
    p.examples = 2000;
    tn_forecast f = tn_forecast_of(&p);
    assert_true(near(f.new_rows, 1000) && near(f.seconds, 5e-3) && near(f.old, 4e-3));
    p.run_examples = 4 * p.data_examples; /* in the first of four epochs */
    assert_true(near(tn_forecast_of(&p).new_rows, 250));
    p.run_examples = 32000;      /* the run ends before its data */
    p.keys[0] = 20000 / sqrt(2); /* as the root of the examples */
    assert_true(near(tn_forecast_of(&p).new_rows, 20000 * 4 / 320.));
    p.keys[0] = p.keys[1]; /* all there are */
    assert_true(near(tn_forecast_of(&p).new_rows, 20000 / 320.));
    p.run_examples = p.data_examples = 0; /* nothing is known of the data but what was seen */
    assert_true(near(tn_forecast_of(&p).new_rows, 1000));
}

TEST(a_run_predicts_from_its_first_steps)
{
    tn_paced p = {.batch = 100, .batches = 20, .ahead = 4};
    tn_paced_step(&p, 1, 1.5);
    for (uint32_t i = 0; i < 16; i++) {
        assert_true(p.predicted == 0);
        tn_paced_step(&p, .01, .11);
    }
    assert_true(near(p.predicted, .1 + (1 - 4 * .1) / 20));
    tn_paced_step(&p, 0, 9);
    assert_true(near(p.predicted, .1 + (1 - 4 * .1) / 20));
    assert_true(near(p.seconds, 1.5 + 16 * .11 + 9) && p.n == 18);
}

/* Rows of the golden configurations' data, over and over. */
static void write_rows(const char *path, uint32_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("id\tprice\tlabel\tweight\tuser\titem\thist\ttags\ttags_x\tcity\trare\n", f);
    for (uint32_t i = 0; i < n; i++) {
        (void)fprintf(f, "r%u\t%u.5\t%u\t1\t%u\t%u\t\t\t\t%u\t\n", i, i % 90, i % 2, i % 700,
                      i % 311, i % 17);
    }
    assert_int_equal(fclose(f), 0);
}

static tn_pace measured(const char *data, const char *threads, tn_text *text)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const char *const more[] = {data, "train.batch=256", threads, NULL};
    const tn_model_plan *plan = golden_plan(arena, "lr", more);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_error err = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_worker *w = NULL;
    tn_pace p;
    tn_trace *trace = NULL;
    const tn_worker_opts opts = {.training = true, .threads = 1};
    assert_int_equal(tn_worker_new(&w, plan, &opts, &b, &err), TN_OK);
    if (tn_run_threads(plan->run) > tn_cpu_count()) {
        assert_int_equal(tn_trace_open(&trace, 1, &err), TN_OK);
    }
    assert_ok(tn_pace_measure(w, trace, &p, &err), err.text);
    tn_pace_text(&p, text);
    tn_worker_free(w);
    tn_trace_close(trace);
    return p;
}

/* FLOPs over the peak said 2,486,957,746 rows/s. */
TEST(linear_weights_are_no_faster_than_reading)
{
    char train[320];
    tn_text text CLEANUP(tn_text_done) = {0};
    TMPDIR(dir);
    PATH_IN(path, dir, "rows.tsv");
    (void)snprintf(train, sizeof train, "data.train=%s", path);
    write_rows(path, 3000);
    tn_pace p = measured(train, "train.threads=1", &text);
    tn_forecast f = tn_forecast_of(&p);
    assert_true(p.reads && p.hand_out > 0 && p.step > 0 && p.step_busy > 0);
    assert_true(f.seconds >= p.hand_out && f.seconds >= p.step);
    assert_true(p.batch / f.seconds < 1e7);
    assert_true(p.data_examples > 2900 && p.data_examples < 3100);
    assert_true(p.keys[1] > 1000 && p.keys[1] < 1100); /* 700 + 311 + 17, and what prices make */
    assert_non_null(strstr(tn_text_str(&text), "expected step: "));
    tn_text_clear(&text);
    p = measured("data.train=none.tsv", "train.threads=1", &text);
    assert_true(!p.reads && p.step > 0 && p.keys[1] > 1000);
    assert_non_null(strstr(tn_text_str(&text), "not measured, there is no file to read"));
}

TEST(more_threads_than_processors_are_foreseen)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    const tn_pace p = measured("data.train=none.tsv", "train.threads=1000", &text);
    assert_true(p.foreseen && p.threads == 1000 && p.cpus == 1000);
    assert_true(p.serial > 0 && p.serial < p.step && p.step_busy == p.alone);
    assert_true(p.step < p.alone + 1e-3); /* 1000 threads look for tiles */
    const tn_pace one = measured("data.train=none.tsv", "train.threads=1", &text);
    assert_true(!one.foreseen && one.alone == 0);
    assert_non_null(
        strstr(tn_text_str(&text), "\nforeseen for 1000 processors from one thread's "));
}
