/* test_trace_report.c - a file that viewers read, from rings that wrap, and the nodes in them. */
#include "support/test.h"

#include "base/codec/json.h"
#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "base/trace/trace.h"

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

/* The events of a trace; they live in `arena`. */
static const tn_json *events_of(const tn_trace *t, tn_arena *arena)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    const tn_json *list = NULL;
    assert_int_equal(tn_trace_json(t, &text, NULL), TN_OK);
    assert_int_equal(tn_json_parse(&list, text.data, text.size, arena, "a trace", NULL), TN_OK);
    assert_int_equal(list->kind, TN_JSON_LIST);
    return list;
}

static double number_of(const tn_json *event, const char *key)
{
    double value = (double)NAN;
    assert_true(tn_json_as_f64(tn_json_get(event, key), &value));
    return value;
}

static bool is_kind(const tn_json *event, const char *kind)
{
    return strcmp(tn_json_as_str(tn_json_get(event, "ph")), kind) == 0;
}

TEST(the_file_holds_complete_events_that_nest)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(64);
    tn_lane *lane = tn_trace_join(t, "main");
    const char *label = tn_trace_name(t, "deep.1");
    for (uint64_t step = 5; step < 8; step++) {
        tn_lane_step(lane, step);
        tn_span_begin(lane, TN_PHASE_FORWARD);
        tn_span_part(lane, TN_PHASE_FORWARD, label);
        tn_span_end(lane);
        tn_span_begin(lane, TN_PHASE_WAIT_TEAM);
        tn_span_end(lane);
        tn_span_end(lane);
    }
    tn_trace_leave(lane);
    tn_trace_end(t);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const tn_json *list = events_of(t, arena);
    assert_int_equal(list->n, 2 + 9);
    const tn_json *e = list->first;
    assert_true(is_kind(e, "M") && is_kind(e->next, "M"));
    assert_string_equal(tn_json_as_str(tn_json_get(e->next, "name")), "thread_name");
    assert_string_equal(tn_json_as_str(tn_json_get(tn_json_get(e->next, "args"), "name")), "main");
    static const char *const names[] = {"forward", "deep.1", "wait: team"};
    static const char *const kinds[] = {"work", "forward", "wait"};
    double outer_end = 0;
    double last = 0;
    uint32_t i = 0;
    for (e = e->next->next; e != NULL; e = e->next, i++) {
        double from = number_of(e, "ts");
        double to = from + number_of(e, "dur");
        assert_true(is_kind(e, "X"));
        assert_string_equal(tn_json_as_str(tn_json_get(e, "name")), names[i % 3]);
        assert_string_equal(tn_json_as_str(tn_json_get(e, "cat")), kinds[i % 3]);
        assert_true(number_of(e, "pid") == 1 && number_of(e, "tid") == 1);
        assert_int_equal((uint32_t)number_of(tn_json_get(e, "args"), "step"), 5 + i / 3);
        assert_true(from >= last);
        assert_true(i % 3 == 0 || to <= outer_end + 1e-6);
        outer_end = i % 3 == 0 ? to : outer_end;
        last = from;
    }
}

static uint64_t pulls_of(const tn_trace *t)
{
    tn_lane_times times;
    tn_trace_times(t, 0, &times);
    return times.phase[TN_PHASE_PULL].calls;
}

TEST(a_full_ring_keeps_the_latest_spans_and_all_sums)
{
    enum { RING = 8, SPANS = 1000 };
    tn_trace *t FREED(tn_trace_close) = open_trace(RING);
    tn_lane *lane = tn_trace_join(t, "main");
    for (uint64_t i = 0; i < SPANS; i++) {
        tn_lane_step(lane, i);
        tn_span_begin(lane, TN_PHASE_PULL);
        tn_span_end(lane);
    }
    tn_trace_leave(lane);
    tn_trace_end(t);
    assert_int_equal(pulls_of(t), SPANS);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const tn_json *list = events_of(t, arena);
    uint32_t n = 0;
    for (const tn_json *e = list->first; e != NULL; e = e->next) {
        if (is_kind(e, "X")) {
            uint64_t step = (uint64_t)number_of(tn_json_get(e, "args"), "step");
            assert_true(step >= SPANS - RING && step < SPANS);
            n++;
        }
    }
    assert_in_range(n, RING - 1, RING);
}

static tn_status join_and_leave(void *trace, tn_error *err)
{
    (void)err;
    tn_lane *lane = tn_trace_join(trace, "read");
    tn_span_begin(lane, TN_PHASE_READ);
    pass_us(50);
    tn_trace_leave(lane);
    return TN_OK;
}

TEST(the_file_begins_where_every_ring_still_holds_all)
{
    enum { RING = 8 };
    tn_trace *t FREED(tn_trace_close) = open_trace(RING);
    tn_lane *lane = tn_trace_join(t, "main");
    tn_thread *thread = NULL; /* one early span in a ring that never fills */
    assert_int_equal(tn_thread_start(&thread, "test", join_and_leave, t, NULL), TN_OK);
    assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
    for (uint64_t i = 0; i < UINT64_C(3) * RING; i++) {
        tn_span_begin(lane, TN_PHASE_PULL);
        pass_us(2);
        tn_span_end(lane);
    }
    tn_trace_leave(lane);
    tn_trace_end(t);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    for (const tn_json *e = events_of(t, arena)->first; e != NULL; e = e->next) {
        assert_true(is_kind(e, "M") || strcmp(tn_json_as_str(tn_json_get(e, "name")), "pull") == 0);
    }
}

TEST(names_are_escaped)
{
    static const char name[] = "a \"quoted\"\\ name\n\x01 \xff";
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_lane *lane = tn_trace_join(t, "ma\"in");
    tn_span_begin(lane, TN_PHASE_FORWARD);
    tn_span_part(lane, TN_PHASE_FORWARD, tn_trace_name(t, name));
    tn_trace_leave(lane);
    tn_trace_end(t);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const tn_json *e = events_of(t, arena)->first->next;
    assert_string_equal(tn_json_as_str(tn_json_get(tn_json_get(e, "args"), "name")), "ma\"in");
    assert_string_equal(tn_json_as_str(tn_json_get(e->next->next, "name")),
                        "a \"quoted\"\\ name\n\x01 \xef\xbf\xbd");
}

TEST(nodes_are_summed_over_threads_from_the_first_whole_step_on)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(64);
    const char *deep = tn_trace_name(t, "deep.1");
    const char *wide = tn_trace_name(t, "wide");
    for (uint64_t thread = 0; thread < 2; thread++) {
        tn_lane *lane = tn_trace_join(t, thread == 0 ? "main" : "team");
        for (uint64_t step = 1; step <= 3; step++) {
            tn_lane_step(lane, step);
            tn_span_begin(lane, TN_PHASE_FORWARD);
            tn_span_part(lane, TN_PHASE_FORWARD, wide);
            tn_span_end(lane);
            tn_span_part(lane, TN_PHASE_FORWARD, deep);
            pass_us(300);
            tn_span_end(lane);
            tn_span_end(lane);
        }
        tn_trace_leave(lane);
    }
    tn_trace_end(t);
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    assert_int_equal(tn_trace_nodes(t, &text, &err), TN_OK);
    const char *at = strstr(tn_text_str(&text), "nodes in the latest 2 steps, all threads\n");
    assert_non_null(at);
    assert_non_null(strstr(at, "\ndeep.1 "));
    assert_non_null(strstr(at, "\nwide "));
    double ms = 0;
    unsigned long long tiles = 0;
    at = strstr(at, "\ndeep.1 ") + 1;
    assert_int_equal(sscanf(at, "deep.1 forward %lf %*f %llu", &ms, &tiles), 2); /* NOLINT */
    assert_int_equal(tiles, 4);
    assert_true(ms >= 0.6 - 0.001);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_trace_nodes(t, &text, &err), TN_E_MEMORY);
    tn_alloc_fail_at(0);
}

TEST(a_trace_without_threads_is_a_valid_file)
{
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_trace_end(t);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    assert_int_equal(events_of(t, arena)->n, 1);
}

TEST(a_file_replaces_another_and_a_bad_path_is_an_error)
{
    char path[300];
    TMPDIR(dir);
    (void)snprintf(path, sizeof path, "%s/trace.json", dir);
    tn_trace *t FREED(tn_trace_close) = open_trace(16);
    tn_trace_end(t);
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_replace(path, "old", 3, &err), TN_OK);
    assert_int_equal(tn_trace_write(t, path, &err), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &text, &err), TN_OK);
    assert_int_equal(tn_text_str(&text)[0], '[');
    (void)snprintf(path, sizeof path, "%s/none/trace.json", dir);
    assert_int_equal(tn_trace_write(t, path, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "/none' to write into"));
}
