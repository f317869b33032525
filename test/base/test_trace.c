/* test_trace.c - spans nest, sums are of own time, and threads find their lanes. */
#include "support/test.h"

#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "base/trace/trace.h"

#include "support/mallocs.h"

CLOSER(tn_trace_close);

static tn_trace *open_trace(uint32_t ring)
{
    tn_trace *t = NULL;
    assert_int_equal(tn_trace_open(&t, ring, NULL), TN_OK);
    return t;
}

/* Until the clock has moved on: a span that must have a length. */
static void pass_us(uint64_t us)
{
    uint64_t until = tn_clock_ns() + us * 1000;
    while (tn_clock_ns() < until) {
    }
}

static tn_lane_times times_of(const tn_trace *t, uint32_t lane)
{
    tn_lane_times times;
    tn_trace_times(t, lane, &times);
    return times;
}

static double sum_of(const tn_trace *t, const tn_lane_times *times)
{
    double sum = times->other_s + times->away_s;
    for (uint32_t i = 0; i < TN_PHASES; i++) {
        sum += times->phase[i].seconds;
    }
    return sum / tn_trace_seconds(t);
}

TEST(a_phase_has_its_own_time_without_what_is_inside)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_lane *lane = tn_trace_join(t, "main");
    tn_span_begin(lane, TN_PHASE_FORWARD);
    pass_us(200);
    tn_span_begin(lane, TN_PHASE_WAIT_TEAM);
    pass_us(3000);
    tn_span_end(lane);
    tn_span_next(lane, TN_PHASE_BACKWARD);
    pass_us(500);
    tn_span_end(lane);
    tn_trace_leave(lane);
    tn_trace_end(t);
    const tn_lane_times times = times_of(t, 0);
    const tn_phase_times *x = times.phase;
    assert_true(x[TN_PHASE_FORWARD].seconds >= 200e-6);
    assert_true(x[TN_PHASE_WAIT_TEAM].seconds >= 3000e-6);
    assert_true(x[TN_PHASE_BACKWARD].seconds >= 500e-6);
    assert_true(x[TN_PHASE_FORWARD].seconds < tn_trace_seconds(t) - 3500e-6 + 1e-9);
    assert_int_equal(x[TN_PHASE_FORWARD].calls, 1);
    assert_int_equal(x[TN_PHASE_PULL].calls, 0);
}

TEST(shares_of_a_thread_sum_to_the_run)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    pass_us(300); /* away */
    tn_lane *lane = tn_trace_join(t, "main");
    pass_us(200); /* other */
    for (uint32_t i = 0; i < TN_PHASES; i++) {
        tn_lane_step(lane, i);
        tn_span_begin(lane, (tn_phase)i);
        tn_span_begin(lane, (tn_phase)(TN_PHASES - 1 - i));
        pass_us(20 + i);
        tn_span_end(lane);
        tn_span_end(lane);
    }
    tn_trace_leave(lane);
    pass_us(300);
    tn_trace_end(t);
    const tn_lane_times times = times_of(t, 0);
    assert_true(times.away_s >= 600e-6);
    assert_true(times.other_s >= 200e-6);
    assert_true(fabs(sum_of(t, &times) - 1) < 1e-6);
}

TEST(tiles_are_what_threads_would_share)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_trace_foresee(t, 4);
    tn_lane *lane = tn_trace_join(t, "main");
    tn_lane_tiles_begin(lane, 2); /* in no phase */
    tn_lane_tiles_end(lane);
    tn_span_begin(lane, TN_PHASE_BACKWARD);
    pass_us(500); /* serial */
    tn_lane_tiles_begin(lane, 6);
    pass_us(300);
    tn_span_begin(lane, TN_PHASE_ROW_GRADS); /* in a tile, a phase of its own */
    pass_us(1000);
    tn_span_end(lane);
    tn_lane_tiles_end(lane);
    tn_lane_tiles_begin(lane, 4);
    tn_lane_tiles_end(lane);
    tn_span_end(lane);
    tn_trace_leave(lane);
    tn_trace_end(t);
    const double backward = tn_trace_phase_s(t, "main", TN_PHASE_BACKWARD);
    const tn_tiles_times b = tn_trace_tiles(t, "main", TN_PHASE_BACKWARD);
    const tn_tiles_times g = tn_trace_tiles(t, "main", TN_PHASE_ROW_GRADS);
    assert_true(b.seconds >= 300e-6 && backward - b.seconds >= 500e-6);
    assert_true(b.runs == 2 && g.runs == 0);
    assert_true(b.foreseen > b.seconds / 4 && b.foreseen <= b.seconds / 3 + 1e-9);
    assert_true(fabs(g.seconds - tn_trace_phase_s(t, "main", TN_PHASE_ROW_GRADS)) < 1e-9);
    assert_true(fabs(g.foreseen - g.seconds / 3) < 1e-9); /* two tiles of six */
    assert_true(tn_trace_tiles(t, "team", TN_PHASE_BACKWARD).runs == 0);
}

TEST(a_part_counts_as_the_phase_that_is_open)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_lane *lane = tn_trace_join(t, "main");
    const char *label = tn_trace_name(t, "deep.1");
    tn_span_begin(lane, TN_PHASE_PULL);
    tn_span_part(lane, TN_PHASE_FORWARD, label);
    pass_us(100);
    tn_span_end(lane);
    tn_span_part(lane, TN_PHASE_FORWARD, NULL); /* nothing that would have to end */
    tn_span_end(lane);
    tn_span_part(lane, TN_PHASE_FORWARD, label); /* where nothing is open */
    tn_span_end(lane);
    tn_trace_leave(lane);
    tn_trace_end(t);
    const tn_lane_times times = times_of(t, 0);
    assert_int_equal(times.phase[TN_PHASE_PULL].calls, 1);
    assert_true(times.phase[TN_PHASE_PULL].seconds >= 100e-6);
    assert_int_equal(times.phase[TN_PHASE_FORWARD].calls, 1);
}

TEST(folded_spans_count_as_one_phase)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_lane *lane = tn_trace_join(t, "main");
    tn_span_begin(lane, TN_PHASE_EVALUATE);
    tn_lane_fold(lane, TN_PHASE_EVALUATE);
    tn_span_begin(lane, TN_PHASE_FORWARD);
    assert_int_equal(tn_lane_phase(lane), TN_PHASE_EVALUATE);
    pass_us(100);
    tn_span_end(lane);
    tn_lane_fold(lane, TN_PHASES);
    tn_span_next(lane, TN_PHASE_FORWARD);
    tn_span_end(lane);
    tn_trace_leave(lane);
    tn_trace_end(t);
    const tn_lane_times times = times_of(t, 0);
    assert_int_equal(times.phase[TN_PHASE_EVALUATE].calls, 1);
    assert_true(times.phase[TN_PHASE_EVALUATE].seconds >= 100e-6);
    assert_int_equal(times.phase[TN_PHASE_FORWARD].calls, 1);
}

TEST(medians_and_tails_are_of_steps)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(1024);
    tn_lane *lane = tn_trace_join(t, "main");
    for (uint64_t step = 0; step < 20; step++) {
        tn_lane_step(lane, step);
        for (uint32_t i = 0; i < 4; i++) { /* four calls, one sum */
            tn_span_begin(lane, TN_PHASE_PULL);
            pass_us(step == 7 ? 2500 : 50);
            tn_span_end(lane);
        }
    }
    tn_trace_leave(lane);
    tn_trace_end(t);
    const tn_lane_times times = times_of(t, 0);
    const tn_phase_times *pull = &times.phase[TN_PHASE_PULL];
    assert_int_equal(pull->calls, 80);
    assert_true(pull->median_s >= 0.95 * 200e-6);
    assert_true(pull->p99_s >= 0.95 * 10e-3); /* only the slow step is that long at least */
    assert_true(pull->median_s <= pull->p99_s);
}

TEST(nothing_is_recorded_without_a_trace)
{
    assert_null(tn_trace_join(NULL, "main"));
    assert_null(tn_trace_here(NULL));
    assert_null(tn_trace_name(NULL, "deep.1"));
    tn_span_begin(NULL, TN_PHASE_PULL);
    tn_span_part(NULL, TN_PHASE_PULL, "deep.1");
    tn_span_next(NULL, TN_PHASE_FORWARD);
    tn_span_end(NULL);
    tn_lane_step(NULL, 1);
    tn_lane_fold(NULL, TN_PHASE_EVALUATE);
    tn_trace_leave(NULL);
    tn_trace_close(NULL);
}

static tn_status join_and_leave(void *trace, tn_error *err)
{
    (void)err;
    tn_trace *t = trace;
    assert_null(tn_trace_here(t));
    tn_lane *lane = tn_trace_join(t, "read");
    assert_ptr_equal(tn_trace_here(t), lane);
    tn_span_begin(lane, TN_PHASE_READ); /* ends with the thread */
    pass_us(50);
    tn_trace_leave(lane);
    assert_null(tn_trace_here(t));
    return TN_OK;
}

TEST(the_next_thread_of_a_name_goes_on_in_its_lane)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_lane *mine = tn_trace_join(t, "read");
    for (uint32_t i = 0; i < 3; i++) {
        tn_thread *thread = NULL;
        assert_int_equal(tn_thread_start(&thread, "test", join_and_leave, t, NULL), TN_OK);
        assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
    }
    assert_ptr_equal(tn_trace_here(t), mine);
    tn_trace_leave(mine);
    tn_trace_end(t);
    assert_int_equal(tn_trace_lanes(t), 2);
    const tn_lane_times first = times_of(t, 0);
    const tn_lane_times second = times_of(t, 1);
    assert_string_equal(first.name, "read");
    assert_string_equal(second.name, "read 2");
    assert_int_equal(second.phase[TN_PHASE_READ].calls, 3);
    assert_true(fabs(tn_trace_phase_s(t, "read", TN_PHASE_READ) -
                     second.phase[TN_PHASE_READ].seconds) < 1e-12);
    assert_true(tn_trace_phase_s(t, "read", TN_PHASES) <= 2 * tn_trace_seconds(t));
}

TEST(recording_takes_no_memory)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(64);
    tn_lane *lane = tn_trace_join(t, "main");
    uint64_t before = tn_mallocs();
    for (uint64_t i = 0; i < 1000; i++) {
        tn_lane_step(lane, i);
        tn_span_begin(lane, TN_PHASE_FORWARD);
        tn_span_next(lane, TN_PHASE_BACKWARD);
        tn_span_end(lane);
    }
    assert_int_equal(tn_mallocs(), before);
    tn_trace_leave(lane);
}

TEST(a_thread_that_no_memory_is_left_for_is_told_in_the_table)
{
    tn_trace *t = NULL;
    for (uint64_t nth = 1; nth <= 2; nth++) { /* the lane, its ring */
        t = open_trace(16);
        tn_alloc_fail_at(nth);
        assert_null(tn_trace_join(t, "main"));
        tn_alloc_fail_at(0);
        tn_trace_end(t);
        tn_text text CLEANUP(tn_text_done) = {0};
        tn_trace_table(t, &text);
        assert_non_null(strstr(tn_text_str(&text), "no memory to record them"));
        tn_trace_close(t);
    }
    tn_error err = {0};
    tn_alloc_fail_at(1);
    assert_int_equal(tn_trace_open(&t, 16, &err), TN_E_MEMORY);
    tn_alloc_fail_at(0);
    assert_null(t);
}

TEST(the_table_has_a_line_for_every_phase_and_sums_to_a_hundred)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_lane *lane = tn_trace_join(t, "main");
    tn_span_begin(lane, TN_PHASE_WAIT_DATA);
    pass_us(700);
    tn_span_next(lane, TN_PHASE_PULL);
    pass_us(300);
    tn_trace_leave(lane);
    pass_us(100);
    tn_trace_end(t);
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_trace_table(t, &text);
    const char *line = strchr(tn_text_str(&text), '\n') + 1;
    static const char *const phases[] = {"pull", "wait: data", "other", "not running"};
    double sum = 0;
    for (uint32_t i = 0; i < 4; i++) {
        assert_memory_equal(line, i == 0 ? "main " : "     ", 5);
        assert_memory_equal(line + 17, phases[i], strlen(phases[i]));
        double seconds = 0;
        double percent = 0;
        assert_int_equal(sscanf(line + 29, "%lf %lf", &seconds, &percent), 2); /* NOLINT */
        sum += percent;
        line = strchr(line, '\n') + 1;
    }
    assert_string_equal(line, "");
    assert_true(fabs(sum - 100) <= 0.2); /* four rounded numbers */
}
