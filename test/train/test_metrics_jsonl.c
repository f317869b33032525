/* test_metrics_jsonl.c - how records of metrics.jsonl are written, and what a crash leaves. */
#include "train/report/metrics_jsonl.h"

#include "base/codec/json.h"
#include "metrics/v21.h"
#include "support/test.h"

enum { LINES_MAX = 16 };

typedef struct logged {
    char dir[256];
    char path[300];
    tn_journal j;
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
    assert_int_equal(tn_journal_open(&l->j, l->path, NULL), TN_OK);
    l->arena = tn_arena_new(1 << 16);
    *state = l;
    return 0;
}

static int remove_log(void **state)
{
    logged *l FREED(tn_free) = *state;
    tn_journal_close(&l->j);
    tn_arena_free(l->arena);
    tn_text_done(&l->text);
    tn_tmpdir_remove(l->dir);
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
        fail_if(tn_json_parse(&l->line[l->n], text, size, l->arena, "line", &err) != TN_OK,
                "%s: %.*s", err.text, (int)size, text);
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
    tn_text got CLEANUP(tn_text_done) = {0};
    for (const tn_json *member = line->first; member != NULL; member = member->next) {
        tn_text_addf(&got, got.size > 0 ? " %s" : "%s", member->key);
    }
    assert_string_equal(tn_text_str(&got), names);
}

TEST_WITH(make_log, remove_log, a_loss_keeps_its_bits_beside_its_decimals)
{
    logged *l = *state;
    tn_journal_loss(tn_journal_begin(&l->j, "train", &at), 1.0 / 3, true);
    assert_int_equal(tn_journal_end(&l->j, NULL), TN_OK);
    tn_journal_loss(tn_journal_begin(&l->j, "train", &at), (double)NAN, true);
    assert_int_equal(tn_journal_end(&l->j, NULL), TN_OK);
    tn_journal_loss(tn_journal_begin(&l->j, "train", &at), 2, false);
    assert_int_equal(tn_journal_end(&l->j, NULL), TN_OK);
    read_log(l);
    assert_int_equal(l->n, 3);
    assert_text(l->line[0], "kind", "train");
    assert_true(number(l->line[0], "t") > 1.7e9);
    assert_true(number(l->line[0], "step") == 7 && number(l->line[0], "epoch") == 1);
    assert_true(number(l->line[0], "samples") == 7168);
    assert_true(strtod(tn_json_as_str(tn_json_get(l->line[0], "loss_hex")), NULL) == 1.0 / 3);
    assert_true(number(l->line[0], "loss") == 1.0 / 3);
    assert_no_value(l->line[1], "loss");
    assert_no_value(l->line[1], "loss_hex");
    assert_true(tn_json_get(l->line[2], "loss_hex") == NULL);
}

TEST_WITH(make_log, remove_log, metrics_are_the_usual_ones_and_those_that_are_asked_for)
{
    logged *l = *state;
    v21 v;
    v21_init(&v);
    tn_metrics *m = metrics_of(&(tn_metrics_opts){0}, &v.rows);
    const tn_strs usual = {2, (const char *const[]){"auc", "gauc"}};
    const tn_strs more = {3, (const char *const[]){"auc", "ks", "rmse"}};
    tn_journal_metrics(tn_journal_begin(&l->j, "eval", &at), m, &usual, &more);
    assert_int_equal(tn_journal_end(&l->j, NULL), TN_OK);
    read_log(l);
    assert_members(l->line[0], "t kind step epoch samples auc gauc ks rmse");
    assert_no_value(l->line[0], "gauc");
    assert_close(number(l->line[0], "ks"), .5);
    tn_metrics_free(m);
}

/* Tells as a run does. */
static void tell(logged *l, const char *text)
{
    tn_json_str(tn_journal_begin(&l->j, "event", &at), "text", text);
    assert_int_equal(tn_journal_end(&l->j, NULL), TN_OK);
}

TEST_WITH(make_log, remove_log, a_line_cut_by_a_crash_is_ended_before_the_next)
{
    logged *l = *state;
    tell(l, "first");
    tn_journal_close(&l->j);
    FILE *f = fopen(l->path, "a");
    assert_non_null(f);
    (void)fputs("{\"t\":17", f);
    (void)fclose(f);
    assert_int_equal(tn_journal_open(&l->j, l->path, NULL), TN_OK);
    tell(l, "two\nlines");
    assert_int_equal(tn_file_read_all(l->path, 1 << 20, &l->text, NULL), TN_OK);
    const char *torn = strstr(l->text.data, "{\"t\":17\n{");
    assert_non_null(torn);
    assert_non_null(strstr(torn, "\"text\":\"two\\nlines\"}\n"));
}

TEST(a_folder_that_is_not_there_is_an_error)
{
    tn_journal j = {0};
    tn_error err = {0};
    assert_int_equal(tn_journal_open(&j, "/nonexistent/metrics.jsonl", &err), TN_E_IO);
    assert_non_null(strstr(err.text, "there is no folder '/nonexistent' to write into"));
    tn_journal_close(&j);
}
