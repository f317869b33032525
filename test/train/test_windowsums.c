/* test_windowsums.c - a `train` record is about its window, and about nothing before it.
 */
#include "train/windowsums.h"

#include "support/test.h"

static void a_record_holds_what_passed_since_the_one_before(void **state)
{
    (void)state;
    tn_window_sums w;
    const tn_scored none = {0};
    const tn_learned learned = {.loss = 0.5, .grad_norm = 3};
    assert_int_equal(tn_window_sums_init(&w, 1, 10, NULL), TN_OK);
    tn_report_step step = {.learned = &learned,
                           .rows = &none,
                           .joint = 100,
                           .wait_read_s = 0.001,
                           .wait_pull_s = 0.002,
                           .wait_push_s = 0.004,
                           .compute_s = 0.008,
                           .bytes_in = 1000,
                           .bytes_out = 3000};
    assert_int_equal(tn_window_sums_add(&w, &step, NULL), TN_OK);
    step.wait_pull_s = 0.006;
    step.bytes_in = 1500;
    step.bytes_out = 3700;
    assert_int_equal(tn_window_sums_add(&w, &step, NULL), TN_OK);
    tn_journal_train_record r = tn_window_sums_record(&w, 12);
    assert_true(r.rows_per_s == 100 && r.grad_norm == 3);
    assert_true(r.wait_read_ms > 0.999 && r.wait_read_ms < 1.001);
    assert_true(r.wait_pull_ms > 3.999 && r.wait_pull_ms < 4.001);
    assert_true(r.wait_push_ms > 3.999 && r.wait_push_ms < 4.001);
    assert_int_equal(r.pulled_bytes, 1500);
    assert_int_equal(r.pushed_bytes, 3700);
    tn_window_sums_clear(&w, 12);
    step.wait_pull_s = 0;
    step.bytes_in = 1700;
    step.bytes_out = 3800;
    assert_int_equal(tn_window_sums_add(&w, &step, NULL), TN_OK);
    r = tn_window_sums_record(&w, 13);
    assert_true(r.wait_pull_ms == 0 && r.rows_per_s == 100);
    assert_int_equal(r.pulled_bytes, 200);
    assert_int_equal(r.pushed_bytes, 100);
    tn_window_sums_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_holds_what_passed_since_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
