/* test_task_labels.c - labels and factors of several tasks, from records of each format that names
 * its columns to batches. */
#include "config/tree.h"
#include "io/format/format.h"
#include "io/read/schema_inference.h"
#include "io/rows/batch.h"
#include "setup.h"
#include "support/test.h"

/* click; buy of click; watch where click, text labels and factors. */
static const tn_tasks tasks = {
    .n = 3,
    .task =
        {{.name = "click",
          .of = TN_NO_TASK,
          .where = TN_NO_TASK,
          .label = TN_NO_ASIDE,
          .weight_column = TN_NO_ASIDE},
         {.name = "buy", .of = 0, .where = TN_NO_TASK, .label = 0, .weight_column = TN_NO_ASIDE},
         {.name = "grade", .of = TN_NO_TASK, .where = 0, .label = 1, .weight_column = 2}},
    .n_aside = 3};

static void open_setup(setup *s, const char *text)
{
    static tn_aside aside[3];
    setup_open(s, text);
    aside[0] = (tn_aside){"buy", tn_tree_read_flow(s->arena, "{column: buy, threshold: 0.5}", "t"),
                          TN_TARGET_CLICK};
    aside[1] = (tn_aside){
        "grade", tn_tree_read_flow(s->arena, "{column: grade, values: {good: 1, bad: 0}}", "t"),
        TN_TARGET_CLICK};
    aside[2] = (tn_aside){"w", NULL, TN_TARGET_NUMBER};
    s->data.tasks = &tasks;
    s->data.aside = aside;
    const tn_binder b = {.arena = s->arena, .diag = &s->diag};
    assert_ok(tn_schema_new(&s->schema, &s->data, &s->slots, &b, &s->err), s->err.text);
}

/* Reads the rows of one file, which are those below in any format. */
static void check_batch(const setup *s, const char *path)
{
    static const float want[3][3][4] = {
        /* label, factor, weight of each row; the rows weigh 1 */
        {{0, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
        {{1, 1, 0, 0}, {1, 1, 0, 1}, {1, 1, 0, 1}},
        {{0, 0, 1, 0}, {0, 2, 0.5F, 0}, {0, 2, 0.5F, 0}},
    };
    const tn_strs paths = {.n = 1, .item = &path};
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_error err;
    assert_ok(tn_reader_open(&reader, s->schema,
                             &(tn_reader_opts){.paths = paths, .batch_rows = 16}, &err),
              err.text);
    assert_ok(tn_reader_next(reader, &batch, &err), err.text);
    assert_int_equal(batch->rows, 4);
    assert_int_equal(batch->n_numeric, s->schema->n_numeric);
    assert_int_equal(batch->contradictions, 1);
    for (uint32_t k = 0; k < 3; k++) {
        const float *const got[3] = {batch->task[k].label, batch->task[k].factor,
                                     batch->task[k].weight};
        for (uint32_t i = 0; i < 12; i++) {
            fail_if(got[i / 4][i % 4] != want[k][i / 4][i % 4], "task %u, row %u: %g, not %g", k,
                    i % 4, (double)got[i / 4][i % 4], (double)want[k][i / 4][i % 4]);
        }
    }
    assert_int_equal(batch->task[1].counted, 3);
    assert_int_equal(batch->task[1].clicks, 2);
    assert_int_equal(batch->task[2].counted, 2);
    tn_reader_recycle(reader, batch);
    tn_reader_close(reader);
}

static const char csv[] = "click,u,buy,grade,w,price\n"
                          "0,a,0.7,good,1,3\n" /* a purchase without click */
                          "1,b,1,bad,2,\n"
                          "1,c,,good,0.5,4\n" /* nothing is known of buy */
                          "1,d,0.5,,3,5\n";

/* A slot of words has a grid of keys; one that is a number has a column of its own. */
TEST(rows_of_csv_have_labels_and_factors_of_each_task)
{
    static const char *const slots[] = {
        "[{name: u, type: str}]",
        "[{name: u, type: str}, {name: price, type: float, as: value}]",
        "[{name: u, type: str, list: \"|\"}]",
    };
    for (uint32_t i = 0; i < 3; i++) {
        char text[200];
        setup s;
        (void)snprintf(text, sizeof text, "{data: {format: csv, label: click}, slots: %s}",
                       slots[i]);
        open_setup(&s, text);
        assert_int_equal(s.schema->n_numeric, i == 1);
        assert_int_equal(s.schema->n_aside, 3);
        check_batch(&s, setup_file(&s, "a.csv", csv, strlen(csv)));
        setup_close(&s);
    }
}

TEST(rows_of_json_have_labels_and_factors_of_each_task)
{
    if (tn_format_find("jsonl") == NULL) {
        skip(); /* src/extra/jsonl is not built */
    }
    static const char lines[] =
        "{\"click\":0,\"u\":\"a\",\"buy\":0.7,\"grade\":\"good\",\"w\":1}\n"
        "{\"w\":2,\"click\":1,\"u\":\"b\",\"grade\":\"bad\",\"buy\":1}\n"
        "{\"click\":1,\"u\":\"c\",\"buy\":null,\"grade\":\"good\",\"w\":0.5}\n"
        "{\"click\":1,\"u\":\"d\",\"buy\":0.5,\"w\":3}\n";
    setup s;
    open_setup(&s, "{data: {format: jsonl, label: click}, slots: [{name: u, type: str}]}");
    check_batch(&s, setup_file(&s, "a.jsonl", lines, strlen(lines)));
    setup_close(&s);
}

TEST(a_label_or_a_factor_that_is_none_is_a_bad_record)
{
    setup s;
    open_setup(&s, "{data: {format: csv, label: click}, slots: [{name: u, type: str}]}");
    const char *head = "click,u,buy,grade,w\n";
    static const char *const cases[][2] = {
        {"1,a,x,good,1\n", "expected a number, found \"x\""},
        {"1,a,1,fine,1\n", "expected a label, found \"fine\""},
        {"1,a,1,good,-1\n", "expected a weight from 0 to 1048576"},
    };
    for (uint32_t i = 0; i < 3; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "%s%s", head, cases[i][0]);
        const char *fault = setup_fault(&s, text);
        fail_if(strstr(fault, cases[i][1]) == NULL, "\"%s\" is not \"%s\"", fault, cases[i][1]);
    }
    setup_close(&s);
}
