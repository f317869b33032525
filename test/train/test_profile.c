/* test_profile.c - a recorded run: the same bits, a line for every thread, a verdict, a file. */
#include "base/codec/json.h"
#include "base/trace/tracelane.h"
#include "support/test.h"
#include "train/report/profile.h"
#include "train/trainrun.h"

enum { RUN_TICKS = 1000000 };

static tn_profile *open_profile(void)
{
    tn_profile *p = NULL;
    assert_int_equal(tn_profile_open(&p, NULL), TN_OK);
    return p;
}

static trainrun record(const char *const *more, tn_profile *p)
{
    TMPDIR(dir);
    trainrun o = trainrun_record(dir, more, p);
    return o;
}

TEST(a_recorded_run_gives_the_same_bits)
{
    static const char *const one[] = {"train.threads=1", NULL};
    static const char *const three[] = {"train.threads=3", "eval.every=5steps", NULL};
    uint32_t plain = trainrun_hash(one);
    tn_profile *p = open_profile();
    assert_int_equal(record(one, p).hash, plain);
    tn_profile_close(p);
    p = open_profile();
    assert_int_equal(record(three, p).hash, plain);
    tn_profile_close(p);
}

static void assert_in(const char *text, const char *want)
{
    assert_says(text, want);
}

TEST(the_text_has_every_thread_the_totals_and_a_verdict)
{
    static const char *const more[] = {"train.threads=2", NULL};
    static const char *const want[] = {
        "main             ",
        "\n                 pull ",
        "\n                 forward ",
        " evaluate ",
        " checkpoint ",
        " push dense ",
        " wait: team ",
        "\nteam             ",
        "\nread             ",
        "\nparse            parse ",
        "\nbatch            shuffle",
        " localize ",
        "\neval read        ",
        " rows/s; ",
        "\nnodes in the latest ",

        " % of the multiply-add peak, ",
        "the roofline is ",
        "\nserial: ",
    };
    tn_profile *p = open_profile();
    assert_false(tn_profile_ended(p));
    assert_int_equal(record(more, p).status, TN_OK);
    assert_true(tn_profile_ended(p));
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_profile_text(p, &text, NULL), TN_OK);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_in(tn_text_str(&text), want[i]);
    }
    text.data[text.size - 1] = '\0'; /* the verdict is the last line, whichever it is */
    assert_in(strrchr(text.data, '\n') + 1, " time");
    tn_profile_close(p);
}

/* The number in the line of the totals that begins with it. */
static double kflop_of(const char *const *more)
{
    tn_profile *p = open_profile();
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(record(more, p).status, TN_OK);
    assert_int_equal(tn_profile_text(p, &text, NULL), TN_OK);
    const char *at = strstr(tn_text_str(&text), " kFLOP a row");
    assert_non_null(at);
    while (at[-1] != '\n') {
        at--;
    }
    double kflop = strtod(at, NULL);
    tn_profile_close(p);
    return kflop;
}

TEST(a_short_last_batch_does_not_change_the_work_of_a_row)
{
    static const char *const whole[] = {"train.batch=100", "train.max_steps=2", NULL};
    static const char *const rest[] = {"train.batch=100", NULL};
    double kflop = kflop_of(whole);
    assert_true(kflop > 0 && fabs(kflop_of(rest) - kflop) < 0.06);
}

TEST(the_file_has_the_nodes_of_the_graph)
{
    TMPDIR(dir);
    PATH_IN(path, dir, "trace.json");
    tn_profile *p = open_profile();
    assert_int_equal(record(NULL, p).status, TN_OK);
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_profile_write(p, path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 26, &text, NULL), TN_OK);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
    const tn_json *list = NULL;
    assert_int_equal(tn_json_parse(&list, text.data, text.size, arena, path, NULL), TN_OK);
    assert_in(tn_text_str(&text), "\"name\":\"deep.1\",\"pid\":1,");
    assert_in(tn_text_str(&text), "\"cat\":\"backward\"");
    tn_profile_close(p);
}

TEST(a_run_that_fails_is_told_as_far_as_it_came)
{
    static const char *const diverges[] = {"train.optimizer={type: sgd, lr: 1e6}", NULL};
    static const char *const no_data[] = {"data.train=/none", NULL};
    tn_profile *p = open_profile();
    assert_int_equal(record(diverges, p).status, TN_E_DIVERGED);
    assert_true(tn_profile_ended(p));
    tn_profile_close(p);
    p = open_profile();
    assert_int_not_equal(record(no_data, p).status, TN_OK);
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_true(tn_profile_ended(p)); /* a table of hardly anything, and no totals */
    assert_int_equal(tn_profile_text(p, &text, NULL), TN_OK);
    assert_null(strstr(tn_text_str(&text), "roofline"));
    tn_profile_close(p);
}

TEST(no_profile_is_nothing_to_do)
{
    tn_profile_begin(NULL, NULL);
    tn_profile_end(NULL, NULL);
    tn_profile_close(NULL);
    tn_profile *p = open_profile();
    tn_profile_end(p, NULL); /* it never began */
    assert_false(tn_profile_ended(p));
    tn_profile_close(p);
}

/* ---- verdicts ---- */

typedef struct spent {
    tn_phase phase;
    uint64_t percent; /* of the run */
} spent;

/* A lane that did this for so much of the run; written by hand, since clocks of shared machines do
 * not keep shares. */
static void add_lane(tn_trace *t, const char *name, const spent *did)
{
    tn_lane *lane = tn_trace_join(t, name);
    tn_trace_leave(lane);
    for (; did->phase != TN_PHASES; did++) {
        lane->sum[did->phase].total = RUN_TICKS / 100 * did->percent;
        lane->present += RUN_TICKS / 100 * did->percent;
    }
}

/* The sentence about a run whose main thread did this, while a parser was busy for half of it. */
static void assert_verdict(const spent *main_thread, const char *want)
{
    static const spent parser[] = {{TN_PHASE_PARSE, 45}, {TN_PHASE_WAIT_INPUT, 5}, {TN_PHASES, 0}};
    tn_trace *t = NULL;
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_trace_open(&t, 16, NULL), TN_OK);
    t->begin = t->begin_ns = 0;
    t->end = RUN_TICKS;
    t->end_ns = 1000000000;
    add_lane(t, "main", main_thread);
    add_lane(t, "parse", parser);
    const tn_effort effort = {.seconds = 1,
                              .rows_per_s = 1e5,
                              .flops = 1e6,
                              .bytes = 1e3,
                              .threads = 1,
                              .peak = {.gflops = 200, .bytes = 1e10}};
    tn_bound_text(t, &effort, &text);
    assert_in(tn_text_str(&text), want);
    assert_int_equal(tn_text_str(&text)[text.size - 1], '\n');
    tn_trace_close(t);
}

TEST(the_verdict_names_what_takes_the_time)
{
    static const spent data[] = {{TN_PHASE_WAIT_DATA, 31}, {TN_PHASE_FORWARD, 60}, {TN_PHASES, 0}};
    static const spent eval[] = {{TN_PHASE_EVALUATE, 30}, {TN_PHASE_WAIT_DATA, 20}, {TN_PHASES, 0}};
    static const spent save[] = {
        {TN_PHASE_CHECKPOINT, 40}, {TN_PHASE_EVALUATE, 30}, {TN_PHASES, 0}};
    static const spent team[] = {{TN_PHASE_WAIT_TEAM, 25}, {TN_PHASE_BACKWARD, 70}, {TN_PHASES, 0}};
    static const spent net[] = {{TN_PHASE_WAIT_DATA, 9},
                                {TN_PHASE_FORWARD, 30},
                                {TN_PHASE_BACKWARD, 40},
                                {TN_PHASE_PULL, 20},
                                {TN_PHASES, 0}};
    static const spent table[] = {
        {TN_PHASE_FORWARD, 30}, {TN_PHASE_PULL, 30}, {TN_PHASE_PUSH_ROWS, 40}, {TN_PHASES, 0}};
    assert_verdict(data, "training waits 31 % of the time for data, most of all for 'parse', busy "
                         "90 % of its time: more data.readers");
    assert_verdict(eval, "evaluations take 30 % of the time: a larger eval.every");
    assert_verdict(save, "checkpoints take 40 % of the time: a larger checkpoint.every");
    assert_verdict(team, "threads wait 25 % of the time for each other: a larger train.batch");
    assert_verdict(net, "the net bounds the run: 70 % of the steps' time is forward and backward, "
                        "and 50 % of the multiply-add peak is reached");
    assert_verdict(table,
                   "the table bounds the run: 70 % of the steps' time is pulling and pushing "
                   "rows, 30 % the net");
}

TEST(the_roofline_is_the_nearer_of_two_limits)
{
    tn_effort e = {.flops = 1e6, .bytes = 1e3, .peak = {.gflops = 100, .bytes = 1e10}};
    assert_true(fabs(tn_effort_limit(&e) - 1e5) < 1e-3);
    e.bytes = 1e6;
    assert_true(fabs(tn_effort_limit(&e) - 1e4) < 1e-3);
}
