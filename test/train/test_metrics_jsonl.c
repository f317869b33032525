/* test_metrics_jsonl.c - records of metrics.jsonl: their members, what happens at crashes and
 * resumes. */
#include "train/report/metrics_jsonl.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/file/file.h"
#include "metrics/slices.h"
#include "metrics/v21.h"
#include "support/test.h"
#include "support/tmpdir.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 16 };

typedef struct logged {
    char dir[256];
    char path[300];
    tn_journal *j;
    tn_text text;
    tn_arena *arena;
    const tn_json *line[LINES_MAX];
    uint32_t n;
} logged;

static const tn_journal_at at = {.step = 7, .samples = 7168, .epoch = 1};

static int make_log(void **state)
{
    logged *l = tn_alloc(1, sizeof *l, "a test");
    tn_tmpdir_make(l->dir);
    (void)snprintf(l->path, sizeof l->path, "%s/metrics.jsonl", l->dir);
    assert_int_equal(tn_journal_open(&l->j, l->path, true, NULL), TN_OK);
    l->arena = tn_arena_new(1 << 16);
    *state = l;
    return 0;
}

static int remove_log(void **state)
{
    logged *l = *state;
    tn_journal_close(l->j);
    tn_arena_free(l->arena);
    tn_text_done(&l->text);
    tn_tmpdir_remove(l->dir);
    tn_free(l);
    return 0;
}

/* Parses every line of the file; each must be one object that carries the common members. */
static void read_log(logged *l)
{
    tn_text_clear(&l->text);
    assert_int_equal(tn_file_read_all(l->path, 1 << 20, &l->text, NULL), TN_OK);
    assert_int_equal(l->text.data[l->text.size - 1], '\n');
    l->n = 0;
    const char *text = l->text.data;
    while (*text != 0) {
        size_t size = strcspn(text, "\n");
        tn_error err = {0};
        assert_in_range(l->n, 0, LINES_MAX - 1);
        if (tn_json_parse(&l->line[l->n], text, size, l->arena, "line", &err) != TN_OK) {
            fail_msg("%s: %.*s", err.text, (int)size, text);
        }
        l->n++;
        text += size + 1;
    }
}

static double number(const tn_json *line, const char *key)
{
    double value = 0;
    assert_true(tn_json_as_f64(tn_json_get(line, key), &value));
    return value;
}

static void assert_text(const tn_json *line, const char *key, const char *want)
{
    const char *got = tn_json_as_str(tn_json_get(line, key));
    assert_non_null(got);
    assert_string_equal(got, want);
}

static void assert_no_value(const tn_json *line, const char *key)
{
    const tn_json *value = tn_json_get(line, key);
    assert_non_null(value);
    assert_int_equal(value->kind, TN_JSON_NULL);
}

/* The names of a record's members, in order. */
static void assert_members(const tn_json *line, const char *names)
{
    tn_text got = {0};
    for (const tn_json *member = line->first; member != NULL; member = member->next) {
        tn_text_addf(&got, got.size > 0 ? " %s" : "%s", member->key);
    }
    assert_string_equal(tn_text_str(&got), names);
    tn_text_done(&got);
}

static void a_start_says_what_runs(void **state)
{
    logged *l = *state;
    tn_journal_start_record start = {.version = "0.1.0",
                                     .config_hash = "ab12",
                                     .cpu = "A \"fast\" CPU",
                                     .run_id = 0xabc,
                                     .seed = UINT64_MAX,
                                     .peers = 1,
                                     .threads = 4};
    assert_int_equal(tn_journal_start(l->j, &at, &start, NULL), TN_OK);
    read_log(l);
    assert_int_equal(l->n, 1);
    assert_members(l->line[0], "t kind step epoch samples version run_id config_hash resumed_from "
                               "peers threads cpu seed");
    assert_text(l->line[0], "kind", "start");
    assert_text(l->line[0], "run_id", "0000000000000abc");
    assert_text(l->line[0], "cpu", "A \"fast\" CPU");
    assert_no_value(l->line[0], "resumed_from");
    uint64_t seed = 0;
    assert_true(tn_json_as_u64(tn_json_get(l->line[0], "seed"), &seed));
    assert_true(seed == UINT64_MAX);
    assert_true(number(l->line[0], "t") > 1.7e9);
    assert_true(number(l->line[0], "step") == 7);
}

static void a_window_has_all_members_and_the_bits_of_its_loss(void **state)
{
    logged *l = *state;
    v21 v;
    v21_init(&v);
    tn_metrics *m = metrics_of(&(tn_metrics_opts){0}, &v.rows);
    tn_journal_train_record train = {.window = m,
                                     .loss = 1.0 / 3,
                                     .lr = 1e-3,
                                     .rows_per_s = 60500,
                                     .grad_norm = (double)INFINITY,
                                     .wait_pull_ms = 2.5,
                                     .keys = 12,
                                     .rss_bytes = UINT64_C(1) << 40};
    assert_int_equal(tn_journal_train(l->j, &at, &train, NULL), TN_OK);
    read_log(l);
    const tn_json *line = l->line[0];
    assert_members(line, "t kind step epoch samples loss loss_hex auc copc ctr pctr lr rows_per_s "
                         "grad_norm keys rss_bytes wait_ms compute_ms pulled_bytes pushed_bytes "
                         "staleness_max bad_records");
    assert_close(number(line, "auc"), .78125);
    assert_close(number(line, "copc"), .975609756);
    assert_no_value(line, "grad_norm");
    assert_true(number(tn_json_get(line, "wait_ms"), "pull") == 2.5);
    assert_true(strtod(tn_json_as_str(tn_json_get(line, "loss_hex")), NULL) == 1.0 / 3);
    assert_true(number(line, "loss") == 1.0 / 3);
    assert_true(number(line, "rss_bytes") == 0x1p40);
    tn_metrics_free(m);
}

static void without_determinism_there_is_no_twin(void **state)
{
    logged *l = *state;
    tn_journal_close(l->j);
    assert_int_equal(tn_journal_open(&l->j, l->path, false, NULL), TN_OK);
    assert_int_equal(
        tn_journal_train(l->j, &at, &(tn_journal_train_record){.loss = (double)NAN}, NULL), TN_OK);
    read_log(l);
    assert_no_value(l->line[0], "loss");
    assert_no_value(l->line[0], "auc");
    assert_true(tn_json_get(l->line[0], "loss_hex") == NULL);
}

static void an_evaluation_lists_metrics_and_slices(void **state)
{
    logged *l = *state;
    v21 v;
    v21_init(&v);
    tn_metrics *m = metrics_of(&(tn_metrics_opts){0}, &v.rows);
    tn_slices *s = NULL;
    tn_slices_opts opts = {.slices_max = 4, .rows_min = 3};
    assert_int_equal(tn_slices_new(&s, &opts, NULL), TN_OK);
    assert_int_equal(tn_slices_add(s, &v.rows, &(tn_slice_keys){.sign = v.group}, NULL), TN_OK);
    static const char *const more[] = {"auc", "ks", "rmse"};
    tn_journal_eval_record eval = {.data = "valid",
                                   .metrics = m,
                                   .loss = .5,
                                   .best = true,
                                   .more = more,
                                   .n_more = 3,
                                   .slices = &(tn_journal_slices){.slot = "country", .slices = s},
                                   .n_slices = 1};
    assert_int_equal(tn_journal_eval(l->j, &at, &eval, NULL), TN_OK);
    read_log(l);
    const tn_json *line = l->line[0];
    assert_members(line, "t kind step epoch samples data rows loss loss_hex auc logloss copc ctr "
                         "pctr ne brier ece pr_auc gauc ks rmse slices best");
    assert_true(number(line, "rows") == 8);
    assert_no_value(line, "gauc");
    assert_close(number(line, "ks"), .5);
    const tn_json *list = tn_json_get(tn_json_get(line, "slices"), "country");
    assert_non_null(list);
    assert_int_equal(list->n, 3);
    assert_text(list->first, "sign", "0000000000000001");
    assert_close(number(list->first, "auc"), .75);
    assert_no_value(list->first->next->next, "sign");
    assert_true(number(list->first->next->next, "rows") == 2);
    tn_slices_free(s);
    tn_metrics_free(m);
}

static void the_other_kinds_have_their_members(void **state)
{
    logged *l = *state;
    tn_journal_ckpt_record ckpt = {.name = "ckpt-3", .bytes = 5, .rows = 6, .seconds = .5};
    tn_journal_table_record table = {1, 2, 3, 4, 5};
    tn_journal_end_record end = {.status = "stopped", .exit_code = 75, .seconds = 2};
    assert_int_equal(tn_journal_ckpt(l->j, &at, &ckpt, NULL), TN_OK);
    assert_int_equal(tn_journal_table(l->j, &at, &table, NULL), TN_OK);
    assert_int_equal(tn_journal_event(l->j, &at, "warn", "two\nlines", NULL), TN_OK);
    assert_int_equal(tn_journal_end(l->j, &at, &end, NULL), TN_OK);
    read_log(l);
    assert_int_equal(l->n, 4);
    assert_members(l->line[0], "t kind step epoch samples name delta bytes rows seconds stall_ms");
    assert_members(l->line[1], "t kind step epoch samples created admitted expired rows bytes");
    assert_true(number(l->line[1], "expired") == 3);
    assert_members(l->line[2], "t kind step epoch samples level text");
    assert_text(l->line[2], "text", "two\nlines");
    assert_members(l->line[3], "t kind step epoch samples status exit_code seconds");
    assert_true(number(l->line[3], "exit_code") == 75);
}

static void a_line_cut_by_a_crash_is_ended_before_the_next(void **state)
{
    logged *l = *state;
    assert_int_equal(tn_journal_event(l->j, &at, "info", "first", NULL), TN_OK);
    tn_journal_close(l->j);
    l->j = NULL;
    FILE *f = fopen(l->path, "a");
    assert_non_null(f);
    (void)fputs("{\"t\":17", f);
    (void)fclose(f);
    assert_int_equal(tn_journal_open(&l->j, l->path, true, NULL), TN_OK);
    tn_journal_start_record start = {.resumed_from = "ckpt-2"};
    assert_int_equal(tn_journal_start(l->j, &at, &start, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(l->path, 1 << 20, &l->text, NULL), TN_OK);
    const char *torn = strstr(l->text.data, "{\"t\":17\n{");
    assert_non_null(torn);
    assert_non_null(strstr(torn, "\"resumed_from\":\"ckpt-2\""));
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    tn_journal *j = NULL;
    tn_error err = {0};
    assert_int_equal(tn_journal_open(&j, "/nonexistent/metrics.jsonl", true, &err), TN_E_IO);
    assert_true(j == NULL);
    assert_non_null(strstr(err.text, "'/nonexistent/metrics.jsonl'"));
    tn_journal_close(NULL);
}

#define WITH_LOG(test) cmocka_unit_test_setup_teardown(test, make_log, remove_log)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOG(a_start_says_what_runs),
        WITH_LOG(a_window_has_all_members_and_the_bits_of_its_loss),
        WITH_LOG(without_determinism_there_is_no_twin),
        WITH_LOG(an_evaluation_lists_metrics_and_slices),
        WITH_LOG(the_other_kinds_have_their_members),
        WITH_LOG(a_line_cut_by_a_crash_is_ended_before_the_next),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
