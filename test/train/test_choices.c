/* test_choices.c - what the data decide: passes, batch, early stop, and bounds of buckets. */
#include "train/config/choices.h"

#include "base/core/text.h"
#include "config/diag.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "models/model.h"
#include "support/test.h"
#include "train/config/run_bind.h"

#include <math.h>
#include <sys/stat.h>

typedef struct fixture {
    char dir[256];
    tn_arena *arena;
    tn_diag diag;
    tn_binder b;
    const tn_tree *tree;
    tn_run run;
    tn_text said;
    tn_error err;
} fixture;

static void write_file(fixture *f, const char *name, const tn_text *text)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", f->dir, name);
    assert_int_equal(tn_file_replace(path, tn_text_str(text), text->size, &f->err), TN_OK);
}

SET_UP
{
    static fixture f;
    f = (fixture){.arena = tn_arena_new(1 << 16)};
    f.b = (tn_binder){.arena = f.arena, .diag = &f.diag};
    tn_tmpdir_make(f.dir);
    tn_text valid = {0};
    tn_text_adds(&valid, "label,a\n1,7\n0,8\n1,9\n");
    write_file(&f, "valid", &valid);
    tn_text_done(&valid);
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    tn_text_done(&f->said);
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
    tn_tmpdir_remove(f->dir);
}

/* A column `a`, and `n` rows of it: their number, or what `value` says. */
static void write_rows(fixture *f, const char *name, uint32_t n, const char *const *value)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_text_adds(&t, "label,a\n");
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(&t, "%u,", i % 2);
        if (value != NULL) {
            tn_text_addf(&t, "%s\n", value[i]);
        } else {
            tn_text_addf(&t, "%u\n", i + 1);
        }
    }
    write_file(f, name, &t);
}

/* `config` is completed by the files "rows" and, with `valid`, "valid" of the folder. */
static tn_status try_to_choose(fixture *f, const char *config, const char *past, uint32_t peers)
{
    tn_text t = {0};
    for (const char *c = config; *c != '\0'; c++) {
        if (*c == '@') {
            tn_text_adds(&t, f->dir);
        } else {
            tn_text_addc(&t, *c);
        }
    }
    tn_diag_done(&f->diag);
    f->diag = (tn_diag){0};
    tn_text_clear(&f->said);
    f->tree = tn_tree_read_flow(f->arena, tn_text_str(&t), "test");
    tn_text_done(&t);
    tn_run_bind(&f->b, f->tree, &f->run);
    fail_if(f->diag.n_errors > 0, "%s", tn_text_str(&f->diag.text));
    f->run.cluster.size = peers;
    return tn_choices_make(&f->b, past, &f->tree, &f->run, &f->said, &f->err);
}

static void choose(fixture *f, const char *config, const char *past, uint32_t peers)
{
    fail_if(try_to_choose(f, config, past, peers) != TN_OK, "%s%s", tn_text_str(&f->diag.text),
            f->err.text);
}

/* Passes, batch and monitor, in the run as in the configuration that is saved. */
static void check(const fixture *f, uint32_t epochs, uint32_t batch, const char *monitor)
{
    const tn_train_opts *t = &f->run.train;
    char text[16];
    assert_int_equal(t->epochs, epochs);
    assert_int_equal(t->batch, batch);
    (void)snprintf(text, sizeof text, "%u", epochs);
    assert_string_equal(tn_tree_at(f->tree, "train.epochs")->text, text);
    (void)snprintf(text, sizeof text, "%u", batch);
    assert_string_equal(tn_tree_at(f->tree, "train.batch")->text, text);
    const tn_tree *watched = tn_tree_at(f->tree, "train.stop.monitor");
    if (monitor == NULL) {
        assert_null(t->stop.monitor);
        assert_null(watched);
    } else {
        assert_non_null(t->stop.monitor);
        assert_string_equal(t->stop.monitor, monitor);
        assert_string_equal(watched->text, monitor);
    }
}

static void check_said(const fixture *f, const char *words)
{
    assert_string_equal(tn_text_str(&f->said), words);
}

#define CSV "data: {format: csv, train: '@/rows'}, slots: [a], model: {type: lr}"
#define VALID                                                                                      \
    "data: {format: csv, train: '@/rows', valid: '@/valid'}, slots: [a], model: {type: lr}"

TEST_ON(fixture *f, few_rows_are_passed_more_often_in_smaller_steps)
{
    write_rows(f, "rows", 249999, NULL);
    choose(f, "{" CSV "}", "", 0);
    check(f, 3, 256, NULL); /* of 977 steps */
    check_said(f, "chosen for about 249999 rows: train.batch=256, train.epochs=3 of 977 steps,\n"
                  "  data.shuffle=262144");
    choose(f, "{" CSV ", train: {epochs: auto, batch: auto}}", "", 0);
    check(f, 3, 256, NULL);
    write_rows(f, "rows", 250000, NULL);
    choose(f, "{" CSV "}", "", 0);
    check(f, 9, 1024, NULL); /* of 245 steps */
    write_rows(f, "rows", 99999, NULL);
    choose(f, "{" VALID "}", "", 0);
    check(f, 20, 256, "valid.logloss");
    write_rows(f, "rows", 100000, NULL);
    choose(f, "{" VALID "}", "", 0);
    check(f, 20, 1024, "valid.logloss");
    check_said(f, "chosen for about 100000 rows: train.batch=1024, train.epochs=20 of 98 steps,\n"
                  "  fewer when valid.logloss is no better 2 times in a row, data.shuffle=262144");
    write_rows(f, "rows", 1, NULL);
    choose(f, "{" CSV "}", "", 0);
    check(f, 20, 256, NULL);
    choose(f, "{" VALID "}", "", 0); /* a stop ends them */
    check(f, 100, 256, "valid.logloss");
    write_rows(f, "rows", 256 * 25, NULL);
    choose(f, "{" VALID "}", "", 0);
    check(f, 40, 256, "valid.logloss"); /* 1,000 steps */
    write_rows(f, "rows", 256 * 50, NULL);
    choose(f, "{" VALID "}", "", 0);
    check(f, 20, 256, "valid.logloss");
    write_rows(f, "rows", 0, NULL);
    choose(f, "{" CSV "}", "", 0);
    check_said(f, "");
}

TEST_ON(fixture *f, rows_that_are_trained_on_do_not_end_the_passes)
{
    write_rows(f, "rows", 1000, NULL);
    choose(f, "{" CSV "}", "", 0);
    const uint32_t alone = f->run.train.epochs;
    choose(f,
           "{data: {format: csv, train: '@/rows', valid: '@/rows'}, slots: [a], model: {type: "
           "lr}}",
           "", 0);
    check(f, alone, 256, NULL);
    assert_null(strstr(tn_text_str(&f->said), "valid.logloss"));
}

static void check_shuffle(const fixture *f, uint32_t rows)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", rows);
    assert_int_equal(f->run.data.shuffle, rows);
    assert_string_equal(tn_tree_at(f->tree, "data.shuffle")->text, text);
}

TEST_ON(fixture *f, a_small_file_is_permuted_as_a_whole)
{
    static const struct {
        uint32_t rows, shuffle;
    } at[] = {{65536, 65536}, {65537, 262144}, {262144, 262144}, {262145, 65536}};
    for (uint32_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        write_rows(f, "rows", at[i].rows, NULL);
        choose(f, "{" CSV "}", "", 0);
        check_shuffle(f, at[i].shuffle);
        assert_true((at[i].shuffle == 262144) ==
                    (strstr(tn_text_str(&f->said), " data.shuffle=262144") != NULL));
    }
    write_rows(f, "rows", 70000, NULL);
    choose(f, "{" CSV ", train: {epochs: 1, batch: 1}}", "", 0);
    check_shuffle(f, 262144); /* whatever else is written down */
    check_said(f, "");
    choose(f, "{" CSV ", train: {epochs: 1}}", "", 0);
    check_shuffle(f, 262144);
    choose(f, "{" CSV "}", "data: {shuffle: 77}\ntrain: {epochs: 2, batch: 8}\n", 0);
    check_shuffle(f, 77);
    choose(f, "{data: {format: csv, train: '@/rows', shuffle: 5}, slots: [a], model: lr}", "", 0);
    check_shuffle(f, 5);
    assert_null(strstr(tn_text_str(&f->said), "shuffle"));
}

/* `n` rows, the first `clicks` of which are clicks. */
static void write_sorted(fixture *f, const char *name, uint32_t n, uint32_t clicks)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_text_adds(&t, "label,a\n");
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(&t, "%d,%u\n", i < clicks, i);
    }
    write_file(f, name, &t);
}

TEST_ON(fixture *f, rows_in_the_order_of_their_labels_are_mixed_over_all_files)
{
    write_sorted(f, "rows", 400000, 100000);
    choose(f, "{" CSV "}", "", 0);
    check_shuffle(f, 524288);
    assert_false(f->run.data.ordered); /* any more */
    assert_non_null(
        strstr(tn_text_str(&f->said),
               "\nthe labels come in order: data.shuffle=524288 mixes the rows of all"));
    write_sorted(f, "rows", 500, 500); /* two files, of one class each */
    write_sorted(f, "more", 900, 0);
    choose(f, "{data: {format: csv, train: ['@/rows', '@/more']}, slots: [a], model: lr}", "", 0);
    check_shuffle(f, 524288);
    choose(f,
           "{data: {format: csv, train: ['@/rows', '@/more'], shuffle: 65536}, slots: [a], "
           "model: lr}",
           "", 0); /* as it is written, which is told */
    assert_true(f->run.data.ordered);
    write_sorted(f, "more", 900, 830); /* a rate that wanders, of .92 and 1 */
    choose(f, "{data: {format: csv, train: ['@/rows', '@/more']}, slots: [a], model: lr}", "", 0);
    check_shuffle(f, 65536);
    assert_false(f->run.data.ordered);
}

TEST_ON(fixture *f, two_thousand_steps_are_enough)
{
    write_rows(f, "rows", 20000, NULL);
    choose(f, "{" VALID ", train: {batch: 10}}", "", 0);
    check(f, 1, 10, NULL);
    check_said(f, "chosen for about 20000 rows: train.epochs=1 of 2000 steps");
    choose(f, "{" VALID ", train: {batch: 11}}", "", 0);
    check(f, 20, 11, "valid.logloss");
    assert_true(f->run.train.epochs_chosen && !f->run.train.batch_chosen);
    choose(f, "{" VALID ", train: {epochs: 20}}", "", 0);
    assert_true(!f->run.train.epochs_chosen && f->run.train.batch_chosen);
    choose(f, "{" CSV ", train: {batch: 11}}", "", 0);
    check(f, 2, 11, NULL);
}

/* Nothing stops them. */
TEST_ON(fixture *f, what_learns_by_heart_takes_few_passes_without_validation)
{
    char config[200];
    for (const tn_model *const *m = tn_all_models; *m != NULL; m++) {
        const char *name = (*m)->choice.name;
        if (strcmp(name, "graph") == 0) {
            continue; /* wants more options */
        }
        (void)snprintf(config, sizeof config,
                       "{data: {format: csv, train: '@/rows'}, slots: [a], model: {type: %s}}",
                       name);
        write_rows(f, "rows", 1000, NULL);
        choose(f, config, "", 0);
        check(f, strcmp(name, "lr") == 0 ? 20 : 4, 256, NULL);
        write_rows(f, "rows", 200000, NULL);
        choose(f, config, "", 0);
        check(f, 3, 256, NULL);
    }
}

TEST_ON(fixture *f, peers_take_a_step_together)
{
    write_rows(f, "rows", 20000, NULL);
    choose(f, "{" CSV ", train: {batch: 10}}", "", 4);
    check(f, 4, 10, NULL);
    assert_non_null(strstr(tn_text_str(&f->said), "train.epochs=4 of 500 steps"));
    choose(f, "{" CSV ", train: {batch: 10}, cluster: {staleness: inf}}", "", 4);
    check(f, 1, 10, NULL);
    choose(f, "{" CSV ", train: {batch: 10}, cluster: {staleness: 1}}", "", 4);
    check(f, 1, 10, NULL);
    choose(f, "{" CSV "}", "", 4); /* the batch is that of one process */
    check(f, 20, 256, NULL);
}

TEST_ON(fixture *f, what_is_written_is_left_as_it_is)
{
    write_rows(f, "rows", 1000, NULL);
    choose(f, "{" VALID ", train: {epochs: 3}}", "", 0);
    check(f, 3, 256, NULL);
    check_said(f, "chosen for about 1000 rows: train.batch=256");
    choose(f, "{" VALID ", train: {epochs: 3, batch: 9}}", "train: {epochs: 8, batch: 80}", 0);
    check(f, 3, 9, NULL);
    check_said(f, "");
    /* data that nobody needs to look at need not be there */
    choose(f, "{data: {format: csv, train: '@/none'}, slots: [a], train: {epochs: 1, batch: 1}}",
           "", 0);
    check_said(f, "");
    assert_int_equal(try_to_choose(f, "{data: {format: csv, train: '@/none'}, slots: [a]}", "", 0),
                     TN_E_DATA);
}

TEST_ON(fixture *f, one_metric_is_watched)
{
    write_rows(f, "rows", 1000, NULL);
    choose(f, "{" VALID ", train: {stop: {monitor: valid.auc}}}", "", 0);
    check(f, 100, 256, "valid.auc");
    assert_non_null(strstr(tn_text_str(&f->said), "fewer when valid.auc is no better"));
    choose(f, "{" VALID ", train: {stop: {patience: 5}}}", "", 0);
    check(f, 100, 256, "valid.logloss");
    assert_int_equal(f->run.train.stop.patience, 5);
    assert_non_null(strstr(tn_text_str(&f->said), "is no better 5 times in a row"));
    choose(f, "{" VALID ", train: {reduce_on_plateau: {factor: 0.5, monitor: valid.auc}}}", "", 0);
    check(f, 100, 256, "valid.auc");
}

TEST_ON(fixture *f, what_comes_by_a_pipe_is_not_touched)
{
    PATH_IN(path, f->dir, "rows");
    assert_int_equal(mkfifo(path, 0600), 0); /* who opens it waits for ever */
    choose(f, "{" CSV "}", "", 0);
    check(f, 1, 1024, NULL);
    check_said(f, "chosen for data that come by a pipe: train.batch=1024, train.epochs=1");
    choose(f, "{data: {format: csv, train: '-'}, slots: [a]}", "", 0);
    check(f, 1, 1024, NULL);
    assert_int_equal(try_to_choose(f,
                                   "{data: {format: csv, train: '@/rows'}, slots: "
                                   "[{name: a, type: float}], train: {epochs: 1, batch: 1}}",
                                   "", 0),
                     TN_E_CONFIG);
    assert_string_equal(f->err.text, "slot 'a': the bounds of its buckets are found in the data "
                                     "before training begins, and data.train comes by a pipe\n"
                                     "hint: write them as 'transform: {buckets: [..]}'");
}

TEST_ON(fixture *f, a_run_that_goes_on_keeps_its_choices)
{
    static const char past[] = "train:\n  epochs: 7\n  batch: 300\n  stop:\n"
                               "    monitor: valid.auc\n";
    write_rows(f, "rows", 1000, NULL);
    choose(f, "{" VALID "}", past, 0);
    check(f, 7, 300, "valid.auc");
    check_said(f, "");
    choose(f, "{" CSV "}", past, 0); /* who exports may have no data.valid */
    check(f, 7, 300, NULL);
    choose(f, "{" VALID ", train: {epochs: 9}}", past, 0);
    check(f, 9, 300, NULL);
    choose(f, "{" VALID ", train: {batch: 50, stop: {monitor: valid.ne}}}", past, 0);
    check(f, 7, 50, "valid.ne");
    choose(f, "{data: {format: csv, train: '@/none'}, slots: [a]}", past, 0); /* not looked at */
    check(f, 7, 300, NULL);
    choose(f, "{" CSV "}", "train: {threads: 1}", 0); /* that says nothing of them */
    check(f, 20, 256, NULL);
}

/* ---- buckets ---- */

/* The transform of the slot, in the configuration. */
static void check_transform(const fixture *f, const char *words)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    const tn_tree *slot = tn_tree_get(f->tree, "slots")->first;
    assert_string_equal(tn_tree_get(slot, "name")->text, "a");
    tn_tree_print_flow(&t, tn_tree_get(slot, "transform"));
    assert_string_equal(tn_text_str(&t), words);
}

#define SLOT(options)                                                                              \
    "{data: {format: csv, train: '@/rows'}, slots: [{name: a, " options                            \
    "}], model: {type: lr}, train: {epochs: 1, batch: 1}}"

TEST_ON(fixture *f, bounds_are_found_in_the_data)
{
    static const char *const odd[] = {"-5", "", "-5", "", "-1.5", "", "0", "7e2", "-5", "3"};
    static const char *const heavy[] = {"1", "2", "2", "2", "2", "2", "2", "3", "4", "5"};
    static const char *const one[] = {"4", "4", "4"};
    static const char *const two[] = {"1", "1", "2"};
    static const char *const middle[] = {"1", "3", "3", "3", "3", "3", "4"};
    write_rows(f, "rows", 4000, NULL);
    choose(f, SLOT("type: float"), "", 0);
    check_transform(f, "{buckets: [201, 401, 601, 801, 1001, 1201, 1401, 1601, 1801, 2001, 2201, "
                       "2401, 2601, 2801, 3001, 3201, 3401, 3601, 3801]}");
    check_said(f, "chosen: buckets of 'a'");
    write_rows(f, "rows", 100, NULL);
    choose(f, SLOT("type: float, transform: {quantiles: 4}"), "", 0);
    check_transform(f, "{buckets: [26, 51, 76]}");
    choose(f, SLOT("type: int, transform: {quantiles: 7}"), "", 0);
    check_transform(f, "{buckets: [16, 31, 45, 59, 73, 87]}");
    write_rows(f, "rows", 200000, NULL);
    choose(f, SLOT("type: float, transform: {quantiles: 2}"), "", 0);
    check_transform(f, "{buckets: [100001]}");
    write_rows(f, "rows", 10, odd);
    choose(f, SLOT("type: float, transform: {quantiles: 3}"), "", 0);
    check_transform(f, "{buckets: [-1.5, 3]}"); /* of seven numbers: three are -5 */
    write_rows(f, "rows", 10, heavy);
    choose(f, SLOT("type: float, transform: {quantiles: 4}"), "", 0);
    check_transform(f, "{buckets: [2, 3, 5]}");
    write_rows(f, "rows", 7, middle);
    choose(f, SLOT("type: float, transform: {quantiles: 2}"), "", 0);
    check_transform(f, "{buckets: [3]}");
    write_rows(f, "rows", 3, two);
    choose(f, SLOT("type: float, transform: {quantiles: 4}"), "", 0);
    check_transform(f, "{buckets: [2]}");
    write_rows(f, "rows", 3, one);
    choose(f, SLOT("type: float"), "", 0);
    check_transform(f, "{buckets: [0]}");
}

static uint32_t n_bounds(const fixture *f)
{
    const tn_tree *slot = tn_tree_get(f->tree, "slots")->first;
    return tn_tree_count(tn_tree_get(tn_tree_get(slot, "transform"), "buckets"));
}

TEST_ON(fixture *f, few_rows_have_few_buckets)
{
    static const struct {
        uint32_t rows, buckets;
    } sizes[] = {{3999, 19}, {3000, 15}, {1200, 6}, {1199, 5}, {100, 5}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char words[80];
        write_rows(f, "rows", sizes[i].rows, NULL);
        choose(f, SLOT("type: float"), "", 0);
        assert_int_equal(n_bounds(f), sizes[i].buckets - 1);
        (void)snprintf(words, sizeof words, "chosen: buckets of 'a' (%u, of so few rows)",
                       sizes[i].buckets);
        check_said(f, words);
    }
    choose(f, SLOT("type: float, transform: quantiles"), "", 0);
    assert_int_equal(n_bounds(f), 4);
    choose(f, SLOT("as: value, transform: {minmax: [0, 1]}"), "", 0);
    assert_int_equal(n_bounds(f), 4);
    choose(f, SLOT("type: float, transform: {quantiles: 20}"), "", 0); /* as the user says */
    assert_int_equal(n_bounds(f), 19);
    check_said(f, "chosen: buckets of 'a'");
}

/* Whatever else stands in a record. */
TEST_ON(fixture *f, other_fields_do_not_hide_the_numbers)
{
    tn_text t = {0};
    for (uint32_t i = 0; i < 4; i++) {
        tn_text_addf(&t, "1 0:7:1 1:0:%u.5 2:3:1\n", i);
    }
    write_file(f, "rows", &t);
    tn_text_done(&t);
    choose(f,
           "{data: {format: libffm, train: '@/rows'}, slots: [{name: a, field: 1, type: float, "
           "transform: {quantiles: 2}}, {name: b, field: 0}, {name: c, field: 2}], train: "
           "{epochs: 1}}",
           "", 0);
    check_transform(f, "{buckets: [2.5]}");
}

TEST_ON(fixture *f, a_column_of_no_numbers_is_a_fault_of_the_data)
{
    static const char *const words[] = {"x", "y"};
    static const char *const nothing[] = {"", ""};
    for (uint32_t i = 0; i < 2; i++) {
        write_rows(f, "rows", 2, i == 0 ? words : nothing);
        assert_int_equal(try_to_choose(f, SLOT("type: float"), "", 0), TN_E_DATA);
        const char *const said[] = {
            "rows:2:3: error: expected a number, found \"x\"\n  0,x\n    ^\n"
            "hint: slot 'a' with 'type: str' takes any text",
            "slot 'a' holds no numbers to make its buckets from\nhint: 'type: str' makes a key of "
            "any text, 'transform: {buckets: [..]}' sets bounds"};
        fail_if(strstr(f->err.text, said[i]) == NULL, "%s", f->err.text);
    }
}

static void write_text(fixture *f, const char *name, const char *text)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_text_adds(&t, text);
    write_file(f, name, &t);
}

TEST_ON(fixture *f, a_look_for_bounds_hides_no_other_fault)
{
    write_text(f, "rows", "label,a\nyes,1\nno,2\n");
    assert_int_equal(try_to_choose(f, SLOT("type: float"), "", 0), TN_E_DATA);
    fail_if(strstr(f->err.text, "rows:2:1: error: expected a label, found \"yes\"") == NULL ||
                strstr(f->err.text, "str") != NULL,
            "%s", f->err.text);
    write_text(f, "rows", "label,a\n"); /* whoever reads them says that there are none */
    choose(f, SLOT("type: float"), "", 0);
    write_text(f, "rows", "label,a\n0,\nyes,1\n");
    assert_int_equal(
        try_to_choose(f,
                      "{data: {format: csv, train: '@/rows', bad_records_max: 1}, slots: [{name: "
                      "a, type: float}], train: {epochs: 1}}",
                      "", 0),
        TN_E_DATA);
    if (strstr(f->err.text, "slot 'a' holds no numbers") == NULL) { /* one bad record may be */
        fail_msg("%s", f->err.text);
    }
}

TEST_ON(fixture *f, rows_without_weight_choose_nothing)
{
    static const char config[] = "{data: {format: csv, train: '@/rows', weight: w}, slots: [{name: "
                                 "a, type: float, transform: {quantiles: 2}}], train: {epochs: 1}}";
    write_text(f, "rows", "label,a,w\n0,9,0\n1,1,1\n0,2,1\n1,9,0\n0,3,1\n1,4,1\n0,9,0\n");
    choose(f, config, "", 0);
    check_transform(f, "{buckets: [3]}");
    write_text(f, "rows", "label,a,w\n0,1,3\n1,2,1\n0,3,1\n1,4,1\n");
    choose(f, config, "", 0);
    check_transform(f, "{buckets: [2]}");
}

TEST_ON(fixture *f, a_number_that_no_input_reads_becomes_a_key)
{
    static const char *const keys_only[] = {"lr", "fm", "ffm", "fwfm"};
    write_rows(f, "rows", 100, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        char config[300];
        (void)snprintf(config, sizeof config,
                       "{data: {format: csv, train: '@/rows'}, slots: [{name: a, as: value, "
                       "transform: log, absent: 3}], model: {type: %s}, train: {epochs: 1}}",
                       keys_only[i]);
        choose(f, config, "", 0);
        const tn_slot_opts *slot = f->run.slots.item;
        assert_int_equal(slot->as, TN_AS_KEY);
        assert_int_equal(slot->type, TN_SIGN_FLOAT);
        assert_null(slot->absent);
        assert_int_equal(tn_tree_count(tn_tree_get(slot->transform, "buckets")), 4);
    }
    choose(f,
           "{data: {format: csv, train: '@/rows'}, slots: [{name: a, as: value}], "
           "model: {type: deepfm}, train: {epochs: 1}}",
           "", 0);
    assert_int_equal(((const tn_slot_opts *)f->run.slots.item)->as, TN_AS_VALUE);
    check_said(f, "chosen for about 100 rows: train.batch=256");
}

TEST_ON(fixture *f, bounds_of_a_checkpoint_outlast_its_data)
{
    static const char past[] = "slots:\n  - {name: b, transform: {buckets: [9]}}\n"
                               "  - {name: a, type: float, transform: {buckets: [-1, 2.5]}}\n";
    write_rows(f, "rows", 100, NULL);
    choose(f, SLOT("type: float"), past, 0);
    check_transform(f, "{buckets: [-1, 2.5]}");
    check_said(f, "");
    choose(f, SLOT("as: value"), past, 0);
    check_transform(f, "{buckets: [-1, 2.5]}");
    choose(f, SLOT("type: float, transform: {buckets: [8]}"), past, 0);
    check_transform(f, "{buckets: [8]}");
    choose(f, SLOT("type: float, transform: {quantiles: 2}"), "slots: [a]", 0);
    check_transform(f, "{buckets: [51]}");
}

/* ---- sizes of x_j ---- */

#define SVM "data: {format: libsvm, train: '@/rows'}, model: {type: fm}"

/* `n` rows of the values x and -x. */
static void write_values(fixture *f, uint32_t n, double x)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(&t, "%u 1:%g 2:%g\n", i % 2, x, -x);
    }
    write_file(f, "rows", &t);
}

/* An option of the merged configuration in flow style; NULL: it is not set there. */
static void check_option(const fixture *f, const char *path, const char *want)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    const tn_tree *own = tn_tree_at(f->tree, path);
    if (own != NULL) {
        tn_tree_print_flow(&t, own);
    }
    assert_true((own == NULL) == (want == NULL));
    assert_string_equal(tn_text_str(&t), want != NULL ? want : "");
}

static void check_sizes(fixture *f, const char *sizes)
{
    choose(f, "{" SVM "}", "", 0);
    check_option(f, "train.value_sizes", sizes);
    check_option(f, "train.sparse", NULL);
}

TEST_ON(fixture *f, values_of_one_size_are_those_of_their_slot)
{
    write_values(f, 1000, 10);
    choose(f, "{" SVM ", train: {epochs: 1, batch: 1}}", "", 0);
    check_option(f, "train.value_sizes", "{_: 8}");
    check_said(f, "chosen for values that are not about 1 (the largest is 10): "
                  "train.value_sizes={_: 8}; rows learn as if values were divided by it");
    write_values(f, 10, 7.2e16); /* an id for a value: what the option takes, and no more */
    check_sizes(f, "{_: 562949953421312}");
    write_values(f, 1000, 0.01);
    check_sizes(f, "{_: 0.0078125}");
}

TEST_ON(fixture *f, keys_of_another_size_than_their_slot_have_their_own)
{
    tn_text t = {0};
    for (uint32_t i = 0; i < 100; i++) { /* one 7 of 6 is too rare to tell a size */
        tn_text_addf(&t, "1 1:1 2:0.9 3:%u 4:0.01 5:%d%s\n", i % 2 != 0 ? 600 : 400, -7,
                     i == 50 ? " 6:1000" : "");
    }
    write_file(f, "rows", &t);
    tn_text_done(&t);
    choose(f, "{" SVM "}", "", 0);
    tn_text have CLEANUP(tn_text_done) = {0};
    tn_tree_print_flow(&have, tn_tree_at(f->tree, "train.value_sizes"));
    const char *text = tn_text_str(&have);
    assert_true(strncmp(text, "{_: {others: 1, ", 16) == 0);
    assert_non_null(strstr(text, "3: 512"));
    assert_non_null(strstr(text, "4: 0.0078125"));
    assert_non_null(strstr(text, "5: 8"));
    assert_null(strstr(text, "1: "));
    assert_null(strstr(text, "6: "));
}

TEST_ON(fixture *f, values_of_about_one_are_learned_as_ever)
{
    tn_text t = {0};
    write_values(f, 1000, 2);
    check_sizes(f, NULL);
    write_values(f, 1000, 0.1);
    check_sizes(f, NULL);
    for (uint32_t i = 0; i < 100; i++) { /* one that is far off says nothing of the others */
        tn_text_addf(&t, "1 1 2 3:%u\n", i == 50 ? 20 : 1);
    }
    write_file(f, "rows", &t);
    tn_text_done(&t);
    check_sizes(f, NULL);
    write_file(f, "rows", &(tn_text){0});
    check_sizes(f, NULL);
}

TEST_ON(fixture *f, rules_and_sizes_that_are_written_stay)
{
    write_values(f, 1000, 10);
    choose(f, "{" SVM ", train: {sparse: {lr: 0.5}}}", "train: {sparse: {lr: 0.7}}", 0);
    check_option(f, "train.sparse", "{lr: 0.5}");
    check_option(f, "train.value_sizes", NULL);
    choose(f, "{" SVM ", train: {value_sizes: {_: 3}}}", "", 0);
    check_option(f, "train.value_sizes", "{_: 3}");
}

TEST_ON(fixture *f, a_run_that_goes_on_keeps_its_sizes)
{
    static const char past[] = "train: {epochs: 2, batch: 8, value_sizes: {_: {others: 2, 7: 64}}}";
    static const char older[] = "train: {epochs: 2, batch: 8, sparse: {type: adagrad, lr: 0.25}}";
    write_values(f, 1000, 10); /* not looked at */
    choose(f, "{" SVM "}", past, 0);
    check_option(f, "train.value_sizes", "{_: {others: 2, 7: 64}}");
    check_said(f, "");
    choose(f, "{data: {format: libsvm, train: '@/none'}, model: {type: fm}}", older, 0);
    check_option(f, "train.sparse", "{type: adagrad, lr: 0.25}");
    check_option(f, "train.value_sizes", NULL);
    write_rows(f, "rows", 10, NULL); /* no x_j: nothing is open */
    choose(f, "{" CSV "}", past, 0);
    check_option(f, "train.value_sizes", NULL);
}

TEST_ON(fixture *f, values_of_a_mean_count_for_their_share)
{
    static const char head[] = "label,a\n";
    tn_text t = {0};
    tn_text_adds(&t, head);
    for (uint32_t i = 0; i < 200; i++) {
        tn_text_addf(&t, "%u,", i % 2);
        for (uint32_t k = 0; k < (i % 4 == 0 ? 2 : 32); k++) {
            tn_text_addf(&t, "%s%u", k > 0 ? "|" : "", (i + k) % 50);
        }
        tn_text_adds(&t, "\n");
    }
    write_file(f, "rows", &t);
    tn_text_done(&t);
#define LISTS(more) "{data: {format: csv, train: '@/rows'}, slots: [{name: a, list: '|'" more
    choose(f, LISTS("}], model: {type: lr}}"), "", 0);
    check_option(f, "train.value_sizes", NULL);
    choose(f, LISTS("}], model: {type: lr}, embedding: {pool: mean}}"), "", 0);
    check_option(f, "train.value_sizes", "{a: 0.0625}"); /* the root of the mean square */
    choose(f, LISTS(", pool: mean}], model: {type: lr}}"), "", 0);
    check_option(f, "train.value_sizes", "{a: 0.0625}");
    choose(f, LISTS(", pool: sqrtn}], model: {type: lr}, embedding: {pool: mean}}"), "", 0);
    check_option(f, "train.value_sizes", NULL);
}

/* ---- rows of length 1 ---- */

#define UNIT_RULE "{type: adagrad, rowwise: true, lr: 0.3, n0: 10, l2: 0.02, grad_scale: sum}"

/* 100 rows of `n` values whose squares sum to `square`; the last `single` rows have one value. */
static void write_lengths(fixture *f, uint32_t n, double square, uint32_t single)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 100; i++) {
        const uint32_t words = i < 100 - single ? n : 1;
        tn_text_addf(&t, "%u", i % 2);
        for (uint32_t k = 0; k < words; k++) { /* squares of 1 : 3 */
            const double part = words == 1 ? 1 : (k % 2 == 0 ? 0.5 : 1.5) / words;
            tn_text_addf(&t, " %u:%.3g", (i + k) % 997, sqrt(square * part));
        }
        tn_text_adds(&t, "\n");
    }
    write_file(f, "rows", &t);
}

static void check_length(fixture *f, const char *model, const char *sizes, const char *sparse)
{
    char config[256];
    (void)snprintf(config, sizeof config,
                   "{data: {format: libsvm, train: '@/rows'}, model: {type: %s}}", model);
    choose(f, config, "", 0);
    check_option(f, "train.value_sizes", sizes);
    check_option(f, "train.sparse", sparse);
}

TEST_ON(fixture *f, rows_of_length_one_have_a_rule_and_no_sizes)
{
    write_lengths(f, 60, 1, 0);
    check_length(f, "lr", NULL, UNIT_RULE);
    check_length(f, "fm", NULL, UNIT_RULE);
    check_length(f, "widedeep", NULL, NULL); /* networks are no better by it */
    write_lengths(f, 600, 1, 10);            /* however small the values are */
    check_length(f, "lr", NULL, UNIT_RULE);
    check_length(f, "widedeep", NULL, NULL);
    choose(f, "{" SVM ", train: {epochs: 1, batch: 1}}", "", 0);
    check_said(f, "chosen for rows whose values have squares that sum to 1: "
                  "train.sparse=" UNIT_RULE);
}

TEST_ON(fixture *f, networks_keep_sizes_of_short_rows_of_length_one)
{
    tn_text t = {0};
    for (uint32_t i = 0; i < 100; i++) { /* thirty frequent words, and a rare one */
        tn_text_addf(&t, "%u %u:0.962", i % 2, 100 + i);
        for (uint32_t k = 1; k <= 30; k++) {
            tn_text_addf(&t, " %u:0.05", k);
        }
        tn_text_adds(&t, "\n");
    }
    write_file(f, "rows", &t);
    tn_text_done(&t);
    check_length(f, "widedeep", "{_: 0.0625}", NULL);
    check_length(f, "lr", NULL, UNIT_RULE);
}

TEST_ON(fixture *f, rows_of_other_lengths_are_learned_as_ever)
{
    write_lengths(f, 60, 1.1, 0);
    check_length(f, "lr", NULL, NULL);
    write_lengths(f, 60, 0.9, 0);
    check_length(f, "lr", NULL, NULL);
    write_lengths(f, 60, 1, 11); /* a single value of 1 is the id of any row */
    check_length(f, "lr", NULL, NULL);
    write_lengths(f, 600, 0.9, 0);
    check_length(f, "lr", "{_: 0.03125}", NULL);
    write_lengths(f, 1, 1, 0);
    check_length(f, "fm", NULL, NULL);
}

TEST_ON(fixture *f, rules_that_are_written_stay_for_rows_of_length_one)
{
    write_lengths(f, 60, 1, 0);
    choose(f, "{" SVM ", train: {sparse: {lr: 0.5}}}", "", 0);
    check_option(f, "train.sparse", "{lr: 0.5}");
    choose(f, "{" SVM "}", "train: {epochs: 2, batch: 8}", 0); /* of a version that chose none */
    check_option(f, "train.sparse", NULL);
}

/* ---- rates of vectors whose pairs add up ---- */

/* 100 rows of `n` values x. */
static void write_bags(fixture *f, uint32_t n, const char *x)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 100; i++) {
        tn_text_addf(&t, "%u", i % 2);
        for (uint32_t k = 0; k < n; k++) {
            tn_text_addf(&t, " %u:%s", (i + k) % 40, x);
        }
        tn_text_adds(&t, "\n");
    }
    write_file(f, "rows", &t);
}

#define DEEP_RULE(lr)                                                                              \
    "{deep: {type: adagrad, rowwise: true, lr: " lr ", n0: 1, l2: 0.05, grad_scale: sum}}"

TEST_ON(fixture *f, vectors_of_many_pairs_learn_slower)
{
    write_bags(f, 30, "1");
    choose(f, "{" SVM "}", "", 0);
    check_option(f, "train.sparse", DEEP_RULE("0.0333"));
    choose(f,
           "{data: {format: libsvm, train: '@/rows', shuffle: 0}, model: {type: deepfm}, "
           "train: {epochs: 1, batch: 1}}",
           "", 0);
    check_option(f, "train.sparse", DEEP_RULE("0.0333"));
    check_said(f, "chosen for pairs of 30 values a row: train.sparse.deep.lr=0.0333");
    write_bags(f, 30, "0.25"); /* whose pairs are as small as those of 7.5 values */
    choose(f, "{" SVM "}", "", 0);
    check_option(f, "train.sparse", NULL);
    write_bags(f, 30, "3000"); /* which learn as if they were about 1 */
    choose(f, "{" SVM "}", "", 0);
    check_option(f, "train.sparse", DEEP_RULE("0.0333"));
    check_option(f, "train.value_sizes", "{_: 4096}");
    write_bags(f, 10, "1");
    choose(f, "{" SVM "}", "", 0);
    check_option(f, "train.sparse", NULL);
}

/* Columns count as they are listed: what is missing changes no rate, and a pipe has it too. */
TEST_ON(fixture *f, empty_columns_are_values_of_a_row)
{
    tn_text t = {0};
    tn_text_adds(&t, "label,a,b,c,d,e,f,g,h,i,j,k,l\n");
    for (uint32_t i = 0; i < 100; i++) {
        tn_text_addf(&t, "%u,%u,,,,,,,,,,,\n", i % 2, i % 7);
    }
    write_file(f, "rows", &t);
    tn_text_done(&t);
    choose(f,
           "{data: {format: csv, train: '@/rows'}, model: {type: fm}, "
           "slots: [a, b, c, d, e, f, g, h, i, j, k, l]}",
           "", 0);
    check_option(f, "train.sparse", DEEP_RULE("0.0833"));
}

TEST_ON(fixture *f, a_graph_learns_as_the_model_that_it_spells)
{
    write_bags(f, 20, "1");
    choose(
        f,
        "{data: {format: libsvm, train: '@/rows'}, model: {type: graph, inputs: {v: {embed: all}}, "
        "layers: [{name: p, fm: v}, {name: z, bias: p}], output: z}}",
        "", 0);
    check_option(f, "train.sparse",
                 "{v: {type: adagrad, rowwise: true, lr: 0.05, n0: 1, l2: 0.05, grad_scale: sum}}");
}

TEST_ON(fixture *f, rates_of_other_models_and_runs_stay)
{
    write_bags(f, 30, "1");
    choose(f, "{data: {format: libsvm, train: '@/rows'}, model: {type: widedeep}}", "", 0);
    check_option(f, "train.sparse", NULL);
    choose(f, "{" SVM ", train: {sparse: {wide: {lr: 0.5}}}}", "", 0);
    check_option(f, "train.sparse", "{wide: {lr: 0.5}}");
    choose(f, "{" SVM "}", "train: {epochs: 2, batch: 8}", 0); /* of a version that chose none */
    check_option(f, "train.sparse", NULL);
    choose(f, "{" SVM "}", "train: {epochs: 2, batch: 8, sparse: {deep: {lr: 0.25}}}", 0);
    check_option(f, "train.sparse", "{deep: {lr: 0.25}}");
}

/* ---- looks into the first pass ---- */

TEST_ON(fixture *f, a_first_pass_that_can_be_stopped_is_looked_into)
{
    write_rows(f, "rows", 20000, NULL);
    choose(f, "{" VALID "}", "", 0); /* 79 steps */
    check_option(f, "eval.at", "[9, 19, 39]");
    choose(f, "{" VALID ", eval: {every: 1epoch, at: ~}}", "", 0); /* as --print-config has it */
    check_option(f, "eval.at", "[9, 19, 39]");
    choose(f, "{" VALID ", eval: {every: 2epoch}}", "", 0);
    check_option(f, "eval.at", NULL);
    choose(f, "{" VALID ", eval: {at: []}}", "", 0);
    check_option(f, "eval.at", "[]");
    choose(f, "{" VALID ", eval: {at: [7]}}", "", 0);
    check_option(f, "eval.at", "[7]");
    choose(f, "{" CSV "}", "", 0); /* nothing ends it */
    check_option(f, "eval.at", NULL);
    choose(f, "{" VALID "}", "train: {epochs: 4, batch: 256}", 0);
    check_option(f, "eval.at", NULL);
    choose(f, "{" VALID "}", "train: {epochs: 4, batch: 256}\neval: {at: [1, 2]}", 0);
    check_option(f, "eval.at", "[1, 2]");
    write_rows(f, "rows", 16000, NULL); /* 63 steps */
    choose(f, "{" VALID "}", "", 0);
    check_option(f, "eval.at", NULL);
}
