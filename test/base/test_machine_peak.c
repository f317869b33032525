/* test_machine_peak.c - the peaks of a machine: figures that a machine can have, and what fails. */
#include "base/machine/machine_peak.h"

#include "support/test.h"

/* A thousandth of a slow core to a hundred times a fast one; bytes likewise. */
static void assert_plausible(double value, double least, double most)
{
    assert_true(isfinite(value) && value >= least && value <= most);
}

TEST(one_thread_multiplies_at_some_rate)
{
    assert_plausible(tn_peak_gflops(1), .01, 1e5);
}

TEST(vectors_have_a_name)
{
    const char *kind = tn_peak_kind();
    assert_true(strcmp(kind, "avx512") == 0 || strcmp(kind, "avx2") == 0 ||
                strcmp(kind, "plain") == 0);
}

TEST(threads_are_measured_together)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        tn_peaks peaks = {0};
        assert_int_equal(tn_peaks_measure(threads, .01, &peaks, NULL), TN_OK);
        assert_plausible(peaks.gflops, .01, 1e6);
        assert_plausible(peaks.bytes, 1e6, 1e14);
    }
}

TEST(missing_memory_is_told_and_gives_no_figure)
{
    uint64_t failed = 0;
    tn_status status = TN_E_MEMORY;
    for (uint64_t nth = 1; status != TN_OK; nth++) {
        tn_error err = {0};
        tn_peaks peaks = {.gflops = -1, .bytes = -1};
        tn_alloc_fail_at(nth);
        status = tn_peaks_measure(2, .01, &peaks, &err);
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || status == TN_E_MEMORY);
        if (status != TN_OK) {
            assert_true(peaks.gflops < 0 && peaks.bytes < 0);
            failed++;
        }
    }
    assert_true(failed > 0);
}
