/* test_progress.c - the line of a run: what it says, when it is drawn, how it fits. */
#include "train/report/progress.h"

#include "support/mallocs.h"
#include "support/test.h"

static const tn_bar_state half = {.epoch = 1,
                                  .epochs = 3,
                                  .step = 1200,
                                  .epoch_done = .426,
                                  .run_done = .142,
                                  .rows = 1000000,
                                  .loss = .44981,
                                  .auc = .80712};
static const tn_bar_pace pace = {.rows_per_s = 61234, .eta_s = 192};

static void assert_line(const tn_bar_state *s, uint32_t width, const char *want)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_bar_line(s, &pace, width, &t);
    assert_string_equal(tn_text_str(&t), want);
}

TEST(a_wide_line_says_all)
{
    assert_line(&half, 120,
                "epoch 1/3  42% [============>                 ]  61.2k rows/s  step 1200  "
                "loss 0.4498  auc 0.8071  eta 0:03:12");
}

TEST(a_narrow_line_leaves_out_what_matters_less_and_keeps_its_bar)
{
    assert_line(&half, 79,
                "epoch 1/3  42% [====>     ]  61.2k rows/s  loss 0.4498  auc 0.8071  eta 0:03:12");
    assert_line(&half, 72,
                "epoch 1/3  42% [===>    ]  61.2k/s  loss 0.4498  auc 0.8071  eta 0:03:12");
    assert_line(&half, 59, "epoch 1/3  42% [======>         ]  loss 0.4498  eta 0:03:12");
    assert_line(&half, 39, "epoch 1/3  42% [===>     ]  loss 0.4498");
    assert_line(&half, 25, "epoch 1/3  42% [===>    ]");
    assert_line(&half, 12, "epoch 1/3  4");
    for (uint32_t width = 1; width < 150; width++) {
        tn_text t CLEANUP(tn_text_done) = {0};
        tn_bar_line(&half, &pace, width, &t);
        assert_true(t.size <= width);
        assert_true(width < 25 || strstr(tn_text_str(&t), " [===") != NULL);
    }
}

TEST(the_eta_of_an_epoch_is_called_so)
{
    tn_bar_state s = half;
    s.may_end_early = true;
    assert_line(&s, 79,
                "epoch 1/3  42% [===>     ]  61.2k/s  loss 0.4498  auc 0.8071  epoch eta 0:03:12");
    assert_line(&s, 0,
                "epoch 1/3  42%  61.2k rows/s  step 1200  loss 0.4498  auc 0.8071  "
                "epoch eta 0:03:12");
}

TEST(a_line_without_width_has_no_bar)
{
    assert_line(&half, 0,
                "epoch 1/3  42%  61.2k rows/s  step 1200  loss 0.4498  auc 0.8071  eta 0:03:12");
}

TEST(what_is_not_known_is_left_out)
{
    tn_bar_state s = half;
    s.epoch_done = (double)NAN;
    s.loss = (double)NAN;
    s.auc = (double)NAN;
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_bar_line(&s, &(tn_bar_pace){(double)NAN, (double)NAN}, 120, &t);
    assert_string_equal(tn_text_str(&t), "epoch 1/3  step 1200");
}

typedef struct seen {
    char text[200];
    uint32_t n;
    bool transient;
} seen;

static void see(void *arg, const char *text, bool transient)
{
    seen *s = arg;
    assert_true(strlen(text) < sizeof s->text);
    memcpy(s->text, text, strlen(text) + 1);
    s->transient = transient;
    s->n++;
}

TEST(a_terminal_sees_two_lines_per_second)
{
    seen s = {0};
    tn_bar bar CLEANUP(tn_bar_done);
    tn_bar_init(&bar, &(tn_bar_opts){.show = see, .arg = &s, .terminal = true, .width = 60}, NULL,
                1000);
    for (uint32_t i = 0; i <= 10000; i++) {
        double now = 1000 + i / 1000.0;
        if (tn_bar_due(&bar, now)) {
            tn_bar_draw(&bar, &half, now);
        }
    }
    assert_in_range(s.n, 18, 20);
    assert_true(s.transient);
    assert_true(strlen(s.text) <= 59); /* a full line would wrap on some terminals */
}

TEST(elsewhere_a_line_comes_every_so_often_and_stays)
{
    seen s = {0};
    tn_bar bar;
    tn_bar_init(&bar, &(tn_bar_opts){.show = see, .arg = &s, .every = 10}, NULL, 0);
    assert_false(tn_bar_due(&bar, 9.9));
    assert_true(tn_bar_due(&bar, 10));
    tn_bar_draw(&bar, &half, 10);
    assert_false(tn_bar_due(&bar, 19.9));
    assert_false(s.transient);
    tn_bar_done(&bar);
    tn_bar_init(&bar, &(tn_bar_opts){.every = 10}, NULL, 0); /* nobody watches */
    assert_false(tn_bar_due(&bar, 1e9));
    tn_bar_done(&bar);
}

TEST(the_eta_follows_the_share_that_is_done)
{
    seen s = {0};
    tn_bar bar CLEANUP(tn_bar_done);
    tn_bar_state at = half;
    at.rows = 5000000; /* resumed here */
    at.run_done = .5;
    tn_bar_init(&bar, &(tn_bar_opts){.show = see, .arg = &s, .every = 10}, &at, 0);
    assert_true(isnan(bar.rows_per_s));
    for (uint32_t i = 1; i <= 10; i++) {
        at.rows += 20000;
        at.run_done += .01;
        tn_bar_draw(&bar, &at, 10.0 * i);
    }
    assert_true(fabs(bar.rows_per_s - 2000) < 1e-6);
    assert_non_null(strstr(s.text, "eta 0:06:40")); /* .4 of it at .001 a second */
    assert_non_null(strstr(s.text, "2.00k rows/s"));
    for (uint32_t i = 1; i <= 20; i++) { /* twice as fast: it gets there, but does not jump */
        at.rows += 40000;
        at.run_done += .01;
        tn_bar_draw(&bar, &at, 100 + 10.0 * i);
        assert_true(i > 1 || bar.rows_per_s < 3000);
    }
    assert_true(fabs(bar.rows_per_s - 4000) < 10);
}

TEST(where_a_run_may_end_early_time_is_told_to_the_end_of_the_epoch)
{
    static const char *const want[] = {"loss",    "0:00:40", "0:00:30",
                                       "0:00:20", "0:00:10", "0:00:50"};
    seen s = {0};
    tn_bar bar CLEANUP(tn_bar_done);
    tn_bar_init(&bar, &(tn_bar_opts){.show = see, .arg = &s, .every = 10}, NULL, 0);
    for (uint32_t i = 0; i < 6; i++) { /* a fifth of an epoch in ten seconds, of 20 epochs */
        const tn_bar_state at = {.epoch = 1 + i / 5,
                                 .epochs = 20,
                                 .epoch_done = i % 5 / 5.,
                                 .run_done = i / 100.,
                                 .may_end_early = true};
        tn_bar_draw(&bar, &at, 10. * (i + 1));
        assert_non_null(strstr(s.text, want[i]));
    }
}

TEST(a_resumed_run_does_not_take_its_past_for_speed)
{
    seen s = {0};
    tn_bar bar CLEANUP(tn_bar_done);
    tn_bar_state at = half;
    at.rows = 10000; /* of this process */
    at.run_done = .9;
    tn_bar_init(&bar, &(tn_bar_opts){.show = see, .arg = &s, .every = 10}, NULL, 0);
    tn_bar_draw(&bar, &at, 10);
    assert_true(strstr(s.text, "eta") == NULL);
    assert_non_null(strstr(s.text, "1.00k rows/s"));
    at.rows += 10000;
    at.run_done += .01;
    tn_bar_draw(&bar, &at, 20);
    assert_non_null(strstr(s.text, "eta 0:01:30"));
}

TEST(reading_before_the_first_step_counts_for_no_rate)
{
    seen s = {0};
    tn_bar bar CLEANUP(tn_bar_done);
    tn_bar_state at = half;
    tn_bar_init(&bar, &(tn_bar_opts){.show = see, .arg = &s, .terminal = true}, NULL, 0);
    tn_bar_begin(&bar, 60); /* a minute to fill the first window */
    assert_false(tn_bar_due(&bar, 60.1));
    assert_true(tn_bar_due(&bar, 60.6));
    at.rows = 1000;
    tn_bar_draw(&bar, &at, 61);
    assert_true(fabs(bar.rows_per_s - 1000) < 1e-6);
}

TEST(a_warm_bar_allocates_nothing)
{
    seen s = {0};
    tn_bar bar CLEANUP(tn_bar_done);
    tn_bar_init(&bar, &(tn_bar_opts){.show = see, .arg = &s, .every = 10}, NULL, 0);
    tn_bar_draw(&bar, &half, 10);
    tn_bar_draw(&bar, &half, 20);
    uint64_t before = tn_mallocs();
    for (uint32_t i = 3; i < 100; i++) {
        tn_bar_draw(&bar, &half, 10.0 * i);
    }
    assert_int_equal(tn_mallocs() - before, 0);
}

TEST(counts_durations_and_sizes_are_short)
{
    static const struct {
        double value;
        const char *count, *duration, *bytes;
    } want[] = {
        {0, "0", "0:00:00", "0 bytes"},
        {999, "999", "0:16:39", "999 bytes"},
        {999.7, "1.00k", "0:16:40", "1.0 kB"},
        {1250, "1.25k", "0:20:50", "1.2 kB"},
        {61234, "61.2k", "17:00:34", "61 kB"},
        {123456, "123k", "1d 10:17:36", "123 kB"},
        {1250000, "1.25M", "14d 11:13:20", "1.2 MB"},
        {7.4e9, "7.40G", "-:--:--", "7.4 GB"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        tn_text t CLEANUP(tn_text_done) = {0};
        tn_put_count(&t, want[i].value);
        assert_string_equal(tn_text_str(&t), want[i].count);
        tn_text_clear(&t);
        tn_put_duration(&t, want[i].value);
        assert_string_equal(tn_text_str(&t), want[i].duration);
        tn_text_clear(&t);
        tn_put_bytes(&t, want[i].value);
        assert_string_equal(tn_text_str(&t), want[i].bytes);
    }
}
