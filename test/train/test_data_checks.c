/* test_data_checks.c - files of data.valid that are trained on, and slots that hold the label. */
#include "train/config/data_checks.h"

#include "base/core/text.h"
#include "config/diag.h"
#include "config/tree.h"
#include "support/test.h"
#include "train/config/days.h"
#include "train/config/run_bind.h"

#include <unistd.h>

typedef struct fixture {
    char dir[256];
    tn_arena *arena;
    tn_diag diag;
    tn_run run;
    tn_text which;
} fixture;

SET_UP
{
    static fixture f;
    f = (fixture){.arena = tn_arena_new(1 << 16)};
    tn_tmpdir_make(f.dir);
    assert_int_equal(chdir(f.dir), 0);
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    assert_int_equal(chdir("/"), 0);
    tn_text_done(&f->which);
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
    tn_tmpdir_remove(f->dir);
}

static void put(const char *name, const char *text)
{
    assert_int_equal(tn_file_replace(name, text, strlen(text), NULL), TN_OK);
}

/* False: the configuration has a fault. */
static bool bind(fixture *f, const char *config)
{
    tn_diag_done(&f->diag);
    f->diag = (tn_diag){0};
    const tn_binder b = {.arena = f->arena, .diag = &f->diag};
    tn_run_bind(&b, tn_tree_read_flow(f->arena, config, "test"), &f->run);
    return f->diag.n_errors == 0;
}

static const char *trained(fixture *f, const char *train, const char *path,
                           const tn_learned_days *learned)
{
    char config[500];
    (void)snprintf(config, sizeof config,
                   "{data: {format: csv, %s}, slots: [a], model: {type: lr}}", train);
    fail_if(!bind(f, config), "%s", tn_text_str(&f->diag.text));
    tn_text_clear(&f->which);
    const tn_strs paths = {.n = 1, .item = &path};
    const bool is = tn_data_is_trained(&f->run.data, learned, &paths, &f->which);
    assert_true(is == (f->which.size > 0));
    return tn_text_str(&f->which);
}

TEST_ON(fixture *f, a_file_of_valid_that_is_trained_on_is_found_whatever_its_name)
{
    put("a.csv", "label,a\n1,2\n0,3\n");
    put("b.csv", "label,a\n1,2\n0,4\n"); /* of the same size */
    put("copy.csv", "label,a\n1,2\n0,3\n");
    assert_int_equal(symlink("a.csv", "soft.csv"), 0);
    assert_int_equal(link("a.csv", "hard.csv"), 0);
    const char *train = "train: [b.csv, a.csv]";
    assert_string_equal(trained(f, train, "a.csv", NULL), "'a.csv' is also in data.train");
    assert_string_equal(trained(f, train, "soft.csv", NULL),
                        "'soft.csv' is also in data.train: it is 'a.csv'");
    assert_string_equal(trained(f, train, "hard.csv", NULL),
                        "'hard.csv' is also in data.train: it is 'a.csv'");
    assert_string_equal(trained(f, train, "copy.csv", NULL),
                        "'copy.csv' is also in data.train: it holds the bytes of 'a.csv'");
    assert_string_equal(trained(f, train, "[a]*.csv", NULL), "'a.csv' is also in data.train");
    assert_string_equal(trained(f, "train: b.csv", "a.csv", NULL), "");
    assert_string_equal(trained(f, train, "none.csv", NULL), "");
}

/* Partitions without rows all look the same. */
TEST_ON(fixture *f, a_header_alone_is_no_copy)
{
    put("a.csv", "label,a\n");
    put("b.csv", "label,a\n");
    assert_string_equal(trained(f, "train: a.csv", "b.csv", NULL), "");
    assert_string_equal(trained(f, "train: a.csv", "a.csv", NULL), "'a.csv' is also in data.train");
}

/* Of a large file pieces are compared: also the last byte, and one in the middle of a piece. */
TEST_ON(fixture *f, large_files_differ_by_any_of_their_pieces)
{
    static char text[5000001];
    const size_t size = sizeof text - 1;
    for (size_t i = 0; i < size; i++) {
        text[i] = "012\n120\n201\n"[i % 12];
    }
    text[size] = '\0';
    put("a.csv", text);
    put("b.csv", text);
    assert_string_equal(trained(f, "train: a.csv", "b.csv", NULL),
                        "'b.csv' is also in data.train: it holds the bytes of 'a.csv'");
    text[size - 1] ^= 1;
    put("b.csv", text);
    assert_string_equal(trained(f, "train: a.csv", "b.csv", NULL), "");
    text[size - 1] ^= 1;
    text[0] ^= 1;
    put("b.csv", text);
    assert_string_equal(trained(f, "train: a.csv", "b.csv", NULL), "");
}

TEST_ON(fixture *f, days_that_are_learned_are_trained_on_whatever_this_command_names)
{
    put("20261101.csv", "label,a\n1,2\n0,3\n");
    put("20261102.csv", "label,a\n1,2\n0,5\n");
    put("20261103.csv", "label,a\n1,2\n0,7\n");
    const char *config = "train: '{day:%Y%m%d}.csv', days: 2026-11-02";
    assert_string_equal(trained(f, config, "20261101.csv", NULL), "");
    assert_string_equal(trained(f, config, "20261102.csv", NULL),
                        "'20261102.csv' is also in data.train");
    tn_learned_days learned = {.used = true, .n = 1};
    assert_true(tn_day_read("2026-11-01", &learned.range[0].first));
    learned.range[0].last = learned.range[0].first;
    assert_string_equal(trained(f, config, "20261101.csv", &learned),
                        "'20261101.csv' is also in data.train");
    assert_string_equal(trained(f, config, "20261102.csv", &learned), ""); /* not learned yet */
    assert_string_equal(trained(f, config, "20261103.csv", &learned), "");
}

static void refused(fixture *f, const char *config, const char *words)
{
    fail_if(bind(f, config), "accepted: %s", config);
    fail_if(strstr(tn_text_str(&f->diag.text), words) == NULL, "%s", tn_text_str(&f->diag.text));
}

TEST_ON(fixture *f, a_slot_of_the_label_is_refused)
{
    refused(f, "{data: {format: csv, label: click}, slots: [a, click], model: lr}",
            "slot 'click' reads the column 'click', which is the label");
    refused(f, "{data: {format: tsv, header: true}, slots: [{name: b, column: label}], model: lr}",
            "slot 'b' reads the column 'label', which is the label");
    refused(f, "{data: {format: csv, label: {column: y, threshold: 3}}, slots: [y], model: lr}",
            "slot 'y' reads the column 'y', which is the label");
    refused(f,
            "{data: {format: csv, weight: w}, slots: [a, {name: b, list: '|', values: w}], model: "
            "lr}",
            "slot 'b' reads the column 'w', which is the weight");
    assert_true(bind(f, "{data: {format: csv, label: click, label_slots: allow}, slots: [a, "
                        "click], model: lr}"));
    assert_true(bind(f, "{data: {format: csv, label: none}, slots: [a, label, none], model: lr}"));
    if (!bind(f, "{data: {format: libsvm}, slots: [{name: label, range: [0, 9]}], model: lr}")) {
        fail_msg("%s", tn_text_str(&f->diag.text)); /* no columns there */
    }
}
