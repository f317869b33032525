/* test_generate_file.c - generated files: the same bytes for any thread count and any range, in any
 * format the same rows, and the truth that is written beside them. */
#include "base/codec/json.h"
#include "base/math/fmath.h"
#include "base/thread/team.h"
#include "extra/synth/generate_file.h"
#include "io/datasets.h"
#include "support/test.h"

static int set_up(void **state)
{
    static datasets d;
    datasets_open(&d, 3);
    *state = &d;
    return 0;
}

static int tear_down(void **state)
{
    datasets_close(*state);
    return 0;
}

static tn_gen_opts plain(uint64_t first, uint64_t rows)
{
    return (tn_gen_opts){
        .preset = TN_GEN_PLAIN,
        .model = TN_GEN_FM,
        .rows = rows,
        .first_row = first,
        .seed = 3,
        .slots = 5,
        .ids = 40,
        .multi = 2,
        .values_max = 3,
        .numeric = 2,
        .missing = 0.1,
        .zipf = 1,
        .rate = 0.3,
        .spread = 1.5,
        .interaction = 0.5,
        .dim = 4,
    };
}

static tn_gen_opts preset(uint32_t which, uint64_t rows)
{
    tn_gen_opts o = plain(0, rows);
    o.preset = which;
    o.slots = o.ids = o.multi = o.values_max = o.numeric = TN_UNSET_U32;
    o.missing = o.rate = (double)NAN;
    return o;
}

/* Writes a file and returns the data set that reads it. */
static tn_dataset *make(datasets *d, tn_gen_opts o, const char *format, const char *name,
                        tn_gen_report *report)
{
    tn_generator *g = NULL;
    tn_text yaml CLEANUP(tn_text_done) = {0};
    tn_sink *sink = NULL;
    const tn_gen_place at = {.format = format, .path = datasets_path(d, name)};
    assert_int_equal(tn_generator_new(&g, &o, d->team, &d->err), TN_OK);
    assert_int_equal(tn_gen_config(g, &at, &yaml, &d->err), TN_OK);
    tn_dataset *set = datasets_bind(d, yaml.data, TN_DATASET_AS_READ);
    assert_ok(tn_sink_open(&sink, datasets_path(d, name), NULL, TN_COMPRESSION_NONE, &d->err),
              d->err.text);
    assert_int_equal(tn_gen_write(g, set->schema, sink, d->team, report, &d->err), TN_OK);
    assert_int_equal(tn_sink_commit(sink, &d->err), TN_OK);
    assert_int_equal(datasets_read(d, name)->size, report->bytes);
    tn_generator_free(g);
    return set;
}

TEST_WITH(set_up, tear_down, bytes_do_not_depend_on_threads_or_range)
{
    datasets *d = *state;
    enum { N = 30000, CUT = 11111 };
    tn_gen_report report;
    (void)make(d, plain(0, N), "libffm", "three", &report);
    tn_team_close(d->team);
    d->team = NULL;
    (void)make(d, plain(0, N), "libffm", "one", &report);
    (void)make(d, plain(0, CUT), "libffm", "head", &report);
    (void)make(d, plain(CUT, N - CUT), "libffm", "tail", &report);
    const tn_text *whole = datasets_read(d, "three");
    const tn_text *one = datasets_read(d, "one");
    const tn_text *head = datasets_read(d, "head");
    const tn_text *tail = datasets_read(d, "tail");
    assert_int_equal(one->size, whole->size);
    assert_memory_equal(one->data, whole->data, whole->size);
    assert_int_equal(head->size + tail->size, whole->size);
    assert_memory_equal(head->data, whole->data, head->size);
    assert_memory_equal(tail->data, whole->data + head->size, tail->size);
}

TEST_WITH(set_up, tear_down, all_formats_hold_the_same_rows)
{
    datasets *d = *state;
    static const char *const formats[] = {"libffm", "libsvm", "csv", "tsv", "tfrecord"};
    const tn_text *first = NULL;
    for (uint32_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        tn_gen_report report;
        tn_dataset *set = make(d, plain(7, 3000), formats[i], formats[i], &report);
        tn_dataset *out = datasets_target(d, set, "{format: tfrecord}", 0);
        assert_non_null(out);
        assert_int_equal(datasets_convert(d, set, formats[i], out, "out", 0), TN_OK);
        const tn_text *file = datasets_read(d, "out");
        first = first == NULL ? file : first;
        assert_int_equal(file->size, first->size);
        assert_memory_equal(file->data, first->data, first->size);
    }
}

TEST_WITH(set_up, tear_down, presets_read_back_in_their_formats)
{
    datasets *d = *state;
    static const struct {
        uint32_t preset;
        const char *format;
    } cases[] = {
        {TN_GEN_CRITEO, "criteo"}, {TN_GEN_CRITEO, "csv"},      {TN_GEN_CRITEO, "tfrecord"},
        {TN_GEN_MOVIES, "csv"},    {TN_GEN_MOVIES, "tfrecord"}, {TN_GEN_MOVIES, "tsv"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_gen_report report;
        tn_dataset *set = make(d, preset(cases[i].preset, 2000), cases[i].format, "made", &report);
        tn_dataset *same = datasets_target(
            d, set, cases[i].format[0] == 'c' ? "{format: csv}" : "{format: tfrecord}", 0);
        assert_non_null(same);
        assert_int_equal(datasets_convert(d, set, "made", same, "again", 0), TN_OK);
        if (strcmp(cases[i].format, "csv") == 0) {
            assert_string_equal(datasets_read(d, "made")->data, datasets_read(d, "again")->data);
        }
    }
}

TEST_WITH(set_up, tear_down, unknown_spellings_are_refused)
{
    datasets *d = *state;
    tn_generator *g = NULL;
    tn_text yaml CLEANUP(tn_text_done) = {0};
    tn_gen_opts o = preset(TN_GEN_MOVIES, 10);
    assert_int_equal(tn_generator_new(&g, &o, NULL, &d->err), TN_OK);
    assert_int_equal(tn_gen_config(g, &(tn_gen_place){"libsvm", "x", NULL}, &yaml, &d->err),
                     TN_E_CONFIG);
    assert_int_equal(tn_gen_config(g, &(tn_gen_place){"criteo", "x", NULL}, &yaml, &d->err),
                     TN_E_CONFIG);
    tn_generator_free(g);
    o = plain(0, 10);
    o.truth = true;
    assert_int_equal(tn_generator_new(&g, &o, NULL, &d->err), TN_OK);
    assert_int_equal(tn_gen_config(g, &(tn_gen_place){"libffm", "x", NULL}, &yaml, &d->err),
                     TN_E_CONFIG);
    assert_non_null(strstr(d->err.text, "no column for 'truth'"));
    tn_generator_free(g);
    o = plain(0, 10);
    o.drift = 0.5;
    o.days = 2;
    assert_int_equal(tn_generator_new(&g, &o, NULL, &d->err), TN_OK);
    assert_int_equal(tn_gen_config(g, &(tn_gen_place){"libsvm", "x", NULL}, &yaml, &d->err),
                     TN_E_CONFIG);
    assert_non_null(strstr(d->err.text, "ids that come and go"));
    tn_generator_free(g);
}

TEST_WITH(set_up, tear_down, the_truth_is_written_beside_the_rows)
{
    datasets *d = *state;
    enum { N = 20000 };
    tn_gen_report report;
    tn_gen_opts o = plain(0, N);
    (void)make(d, o, "libffm", "rows", &report);
    assert_int_equal(report.rows, N);
    assert_int_equal(report.oracle.rows, N);
    /* all 5 * 40 ids and 2 numbers occur; every slot is empty now and then, so none is redundant;
     * k (k - 1) / 2 rotations change nothing */
    assert_int_equal(report.parameters, 1 + 202 * 5);
    assert_int_equal(report.free_parameters, 1 + 202 * 5 - 6);
    assert_true(report.oracle.auc > 0.7 && report.oracle.auc < 0.95);
    tn_generator *g = NULL;
    tn_text text CLEANUP(tn_text_done) = {0};
    const tn_json *json = NULL;
    assert_int_equal(tn_generator_new(&g, &o, NULL, &d->err), TN_OK);
    tn_gen_truth_json(g, &report, &text);
    assert_int_equal(tn_json_parse(&json, text.data, text.size, d->arena, "truth", &d->err), TN_OK);
    double value = 0;
    assert_true(tn_json_as_f64(tn_json_get(json, "bias"), &value));
    assert_true(value == g->truth.bias);
    assert_true(tn_json_as_f64(tn_json_get(tn_json_get(json, "oracle"), "auc"), &value));
    assert_true(value == report.oracle.auc);
    tn_generator_free(g);
}

TEST_WITH(set_up, tear_down, one_hot_slots_are_counted_once_less)
{
    datasets *d = *state;
    tn_gen_report report;
    tn_gen_opts o = plain(0, 20000);
    o.model = TN_GEN_LR;
    o.multi = 0;
    o.numeric = 0;
    o.missing = 0;
    (void)make(d, o, "libffm", "rows", &report);
    assert_int_equal(report.parameters, 1 + 200);
    assert_int_equal(report.free_parameters, 1 + 200 - 5);
}

static double logit(double p)
{
    return log(p / (1 - p));
}

TEST(auc_and_logloss_are_those_of_a_small_example)
{
    static const double p[] = {.9, .8, .8, .3, .3, .3, .1, .6};
    static const int y[] = {1, 0, 1, 0, 0, 1, 0, 1};
    tn_oracle_row row[8];
    for (int i = 0; i < 8; i++) {
        row[i] = (tn_oracle_row){logit(p[i]), y[i] == 1};
    }
    tn_oracle o = tn_oracle_judge(row, 8);
    assert_int_equal(o.rows, 8);
    assert_int_equal(o.clicks, 4);
    assert_true(fabs(o.auc - .78125) < 1e-12);
    assert_true(fabs(o.logloss - .558931351) < 1e-9);
}

TEST(the_expected_figures_count_every_outcome)
{
    /* two rows: clicks go to 1 or 2 alone with odds p1 q2 and p2 q1 */
    double p1 = .7;
    double p2 = .2;
    tn_oracle_row row[2] = {{logit(p1), true}, {logit(p2), false}};
    tn_oracle o = tn_oracle_judge(row, 2);
    double right = p1 * (1 - p2);
    double wrong = p2 * (1 - p1);
    assert_true(fabs(o.auc_expected - right / (right + wrong)) < 1e-12);
    double h1 = -p1 * log(p1) - (1 - p1) * log(1 - p1);
    double h2 = -p2 * log(p2) - (1 - p2) * log(1 - p2);
    assert_true(fabs(o.logloss_expected - (h1 + h2) / 2) < 1e-12);
    assert_true(o.auc == 1);
}

TEST(ties_count_half)
{
    tn_oracle_row row[4] = {{0, true}, {0, false}, {0, true}, {0, false}};
    tn_oracle o = tn_oracle_judge(row, 4);
    assert_true(o.auc == .5);
    assert_true(fabs(o.auc_expected - .5) < 1e-15);
    assert_true(fabs(o.logloss - 0.69314718055994531) < 1e-15);
}

TEST(one_class_has_no_auc)
{
    tn_oracle_row row[2] = {{1, true}, {2, true}};
    assert_true(isnan(tn_oracle_judge(row, 2).auc));
    assert_true(isnan(tn_oracle_judge(row, 0).auc));
    assert_true(isnan(tn_oracle_judge(row, 0).logloss));
}

TEST(what_is_thrown_agrees_with_what_is_expected)
{
    enum { N = 200000 };
    static tn_oracle_row row[N];
    uint64_t stream = tn_stream2(3, TN_RNG_GENERATE, 77);
    for (uint32_t i = 0; i < N; i++) {
        row[i].logit = 1.5 * tn_normal(tn_draw(stream, i)) - 1;
        row[i].click = tn_unit(tn_draw(stream, N + i)) < tn_sigmoid(row[i].logit);
    }
    tn_oracle o = tn_oracle_judge(row, N);
    assert_true(fabs(o.auc - o.auc_expected) < .004);
    assert_true(fabs(o.logloss - o.logloss_expected) < .004);
    assert_true(o.auc > .7 && o.auc < .9);
}
