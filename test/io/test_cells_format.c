/* test_cells_format.c - rows of cells mean what the same rows in a CSV file mean. */
#include "io/setup.h"
#include "support/test.h"

#include "base/core/embedder.h"
#include "config/tree.h"
#include "io/arrow/cells.h"
#include "io/read/row_scan.h"
#include "io/read/schema_inference.h"
#include "io/source/producer.h"

#include <math.h>

/* ---- a source of cells ---- */

typedef struct bytes {
    tn_text text;
    uint32_t rows;
    size_t row_at; /* of the open row */
    uint32_t n_columns;
} bytes;

static void put(bytes *b, const void *data, size_t size)
{
    tn_text_add(&b->text, data, size);
}

static void put_u8(bytes *b, uint8_t v)
{
    put(b, &v, sizeof v);
}

static void put_u32(bytes *b, uint32_t v)
{
    put(b, &v, sizeof v);
}

static void head(bytes *b, uint32_t n, const char *const *names)
{
    put(b, TN_CELLS_MAGIC, TN_CELLS_MAGIC_BYTES);
    put_u32(b, n);
    for (uint32_t i = 0; i < n; i++) {
        put_u32(b, (uint32_t)strlen(names[i]));
        put(b, names[i], strlen(names[i]));
        put_u32(b, 0);
    }
}

static void begin(bytes *b)
{
    b->row_at = b->text.size;
    put_u32(b, 0);
    const uint64_t number = b->rows++;
    put(b, &number, sizeof number);
}

static void end(bytes *b)
{
    const uint32_t size = (uint32_t)(b->text.size - b->row_at - sizeof size);
    memcpy(b->text.data + b->row_at, &size, sizeof size);
}

static void none(bytes *b)
{
    put_u8(b, TN_CELL_NONE);
}

static void text(bytes *b, const char *v)
{
    put_u8(b, TN_CELL_TEXT);
    put_u32(b, (uint32_t)strlen(v));
    put(b, v, strlen(v));
}

static void whole(bytes *b, int64_t v)
{
    put_u8(b, TN_CELL_INT);
    put(b, &v, sizeof v);
}

static void real(bytes *b, double v)
{
    put_u8(b, TN_CELL_REAL);
    put(b, &v, sizeof v);
}

static void single(bytes *b, float v)
{
    put_u8(b, TN_CELL_SINGLE);
    put(b, &v, sizeof v);
}

static size_t begin_list(bytes *b, uint32_t n)
{
    put_u8(b, TN_CELL_LIST);
    put_u32(b, n);
    put_u32(b, 0);
    return b->text.size;
}

static void end_list(bytes *b, size_t at)
{
    const uint32_t size = (uint32_t)(b->text.size - at);
    memcpy(b->text.data + at - sizeof size, &size, sizeof size);
}

typedef struct pass {
    bytes *of;
    size_t at;
} pass;

static int n_open;

static tn_status open_pass(void *arg, void **out, tn_error *err)
{
    (void)err;
    pass *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->of = arg;
    *out = p;
    n_open++;
    return TN_OK;
}

/* A few bytes at a time. */
static tn_status read_pass(void *arg, void *data, size_t size, size_t *n, tn_error *err)
{
    (void)err;
    pass *p = arg;
    const size_t left = p->of->text.size - p->at;
    *n = left < size ? left : size;
    *n = *n < 13 ? *n : 13;
    memcpy(data, p->of->text.data + p->at, *n);
    p->at += *n;
    return TN_OK;
}

static void close_pass(void *arg)
{
    n_open--;
    free(arg);
}

/* What a reader makes of the rows of `b`, or of the files at `path`. */
static void dump(const char *config, bytes *b, const char *path, tn_text *out)
{
    setup s;
    setup_open(&s, config);
    tn_producers producers = {.n = b != NULL};
    producers.producer[0] = (tn_producer){
        .name = "t", .arg = b, .open = open_pass, .read = read_pass, .close = close_pass};
    const tn_embedder mine = {.producers = &producers};
    (void)tn_embedder_enter(&mine);
    const tn_reader_opts opts = {
        .paths = {1, (const char *const[]){path}}, .batch_rows = 64, .want_ids = true};
    tn_error err = {0};
    if (setup_drain(&s, &opts, &err) != TN_END) {
        fail_msg("%s", err.text);
    }
    setup_dump(&s, &opts, out);
    (void)tn_embedder_enter(NULL);
    setup_close(&s);
    assert_int_equal(n_open, 0);
}

/* Fails unless the cells read as the CSV does. */
static void assert_same(const char *slots, bytes *b, const char *csv)
{
    setup s;
    char config[600];
    tn_text wanted = {0};
    tn_text found = {0};
    (void)snprintf(config, sizeof config, "{data: {format: csv, %s", slots);
    setup_open(&s, config);
    dump(config, NULL, setup_file(&s, "t.csv", csv, strlen(csv)), &wanted);
    (void)snprintf(config, sizeof config, "{data: {format: csv, %s", slots);
    dump(config, b, "memory:t", &found);
    assert_true(wanted.size > 0);
    assert_string_equal(tn_text_str(&found), tn_text_str(&wanted));
    tn_text_done(&wanted);
    tn_text_done(&found);
    setup_close(&s);
}

TEST(cells_of_each_kind_read_as_their_csv_does)
{
    static const char *const names[] = {"label", "id", "s", "x", "h"};
    bytes b = {.rows = 0};
    head(&b, 5, names);
    begin(&b);
    whole(&b, 1);
    whole(&b, 7);
    text(&b, "red");
    real(&b, .1);
    text(&b, "ff");
    end(&b);
    begin(&b);
    real(&b, 0);
    text(&b, "18446744073709551615");
    whole(&b, -12);
    single(&b, .1F);
    whole(&b, 10);
    end(&b);
    begin(&b);
    text(&b, "True");
    real(&b, 9);
    real(&b, 2.5);
    whole(&b, 16777217);
    none(&b);
    end(&b);
    begin(&b);
    whole(&b, 0);
    none(&b);
    real(&b, 3);
    real(&b, (double)NAN);
    text(&b, "");
    end(&b);
    begin(&b);
    whole(&b, 1);
    text(&b, "");
    single(&b, .7F);
    text(&b, "1e-3");
    text(&b, "0");
    end(&b);
    assert_same("record_id: s}, slots: [{name: id, type: id}, {name: s, type: str}, {name: n, "
                "column: x, type: float, "
                "as: value}, {name: b, column: x, type: float, transform: {buckets: [.1, .7]}}, "
                "{name: h, type: hex}]}",
                &b,
                "label,id,s,x,h\n1,7,red,0.1,ff\n0.0,18446744073709551615,-12,0.1,10\n"
                "True,9.0,2.5,16777217,\n0,,3.0,,\n1,,0.7,1e-3,0\n");
    tn_text_done(&b.text);
}

TEST(a_double_that_is_near_a_float_is_not_taken_for_one)
{
    static const char *const names[] = {"label", "x"};
    bytes b = {.rows = 0};
    head(&b, 2, names);
    begin(&b);
    whole(&b, 1);
    real(&b, (double).7F); /* 0.699999988079071: below the bound */
    end(&b);
    begin(&b);
    whole(&b, 1);
    single(&b, .7F); /* 0.7 */
    end(&b);
    assert_same("label: label}, slots: [{name: x, type: float, transform: {buckets: [.7]}}]}", &b,
                "label,x\n1,0.699999988079071\n1,0.7\n");
    tn_text_done(&b.text);
}

TEST(lists_of_cells_and_texts_with_separators_are_several_values)
{
    static const char *const names[] = {"label", "tags", "w", "unused"};
    bytes b = {.rows = 0};
    head(&b, 4, names);
    begin(&b);
    whole(&b, 1);
    size_t at = begin_list(&b, 3);
    text(&b, "a");
    text(&b, "b");
    text(&b, "");
    end_list(&b, at);
    at = begin_list(&b, 3);
    real(&b, .5);
    whole(&b, 2);
    single(&b, 1);
    end_list(&b, at);
    whole(&b, 5);
    end(&b);
    begin(&b);
    whole(&b, 0);
    text(&b, "c|a");
    text(&b, "1|0.25");
    none(&b);
    end(&b);
    begin(&b);
    whole(&b, 0);
    none(&b);
    none(&b);
    none(&b);
    end(&b);
    assert_same("list: '|'}, slots: [{name: tags, type: str, list: '|', values: w}]}", &b,
                "label,tags,w\n1,a|b|,0.5|2|1\n0,c|a,1|0.25\n0,,\n");
    tn_text_done(&b.text);
}

TEST(lists_of_cells_make_a_sequence)
{
    static const char *const names[] = {"label", "a", "b"};
    bytes b = {.rows = 0};
    head(&b, 3, names);
    begin(&b);
    whole(&b, 1);
    size_t at = begin_list(&b, 3);
    whole(&b, 4);
    none(&b);
    whole(&b, 6);
    end_list(&b, at);
    at = begin_list(&b, 3);
    whole(&b, 7);
    whole(&b, 8);
    none(&b);
    end_list(&b, at);
    end(&b);
    begin(&b);
    whole(&b, 0);
    none(&b);
    none(&b);
    end(&b);
    assert_same("label: label}, slots: [{name: a, list: '|', sequence: c, max_len: 2}, {name: b, "
                "list: '|', sequence: c, max_len: 2}]}",
                &b, "label,a,b\n1,4||6,7|8|\n0,,\n");
    tn_text_done(&b.text);
}

/* What a reader says of rows at fault. */
static void assert_refused(const char *config, bytes *b, const char *sentence)
{
    setup s;
    tn_error err = {0};
    setup_open(&s, config);
    tn_producers producers = {.n = 1};
    producers.producer[0] = (tn_producer){
        .name = "t", .arg = b, .open = open_pass, .read = read_pass, .close = close_pass};
    const tn_embedder mine = {.producers = &producers};
    (void)tn_embedder_enter(&mine);
    const tn_reader_opts opts = {.paths = {1, (const char *const[]){"memory:t"}}, .batch_rows = 64};
    assert_int_equal(setup_drain(&s, &opts, &err), TN_E_DATA);
    (void)tn_embedder_enter(NULL);
    if (strstr(err.text, sentence) == NULL) {
        fail_msg("'%s' is not in '%s'", sentence, err.text);
    }
    setup_close(&s);
}

TEST(lists_of_cells_make_a_vector)
{
    static const char *const names[] = {"label", "v"};
    static const char slots[] =
        "label: label}, slots: [{name: label, as: value, type: float, transform: identity}, "
        "{name: v, type: vector, dim: 3, list: '|'}]}";
    bytes b = {.rows = 0};
    head(&b, 2, names);
    begin(&b);
    whole(&b, 1);
    size_t at = begin_list(&b, 3);
    real(&b, .5);
    single(&b, -2.25F);
    whole(&b, 7);
    end_list(&b, at);
    end(&b);
    begin(&b);
    whole(&b, 0);
    none(&b);
    end(&b);
    begin(&b);
    whole(&b, 0);
    text(&b, "1|2|3");
    end(&b);
    assert_same(slots, &b, "label,v\n1,0.5|-2.25|7\n0,\n0,1|2|3\n");
    tn_text dumped = {0};
    char config[400];
    (void)snprintf(config, sizeof config, "{data: {format: csv, %s", slots);
    dump(config, &b, "memory:t", &dumped);
    assert_non_null(strstr(tn_text_str(&dumped), " 1 0.5 -2.25 7"));
    assert_non_null(strstr(tn_text_str(&dumped), " 0 0 0 0"));
    tn_text_done(&dumped);
    begin(&b);
    whole(&b, 0);
    at = begin_list(&b, 2);
    real(&b, 1);
    real(&b, 2);
    end_list(&b, at);
    end(&b);
    assert_refused(config, &b, "row 3: error: 2 numbers in slot 'v', which is a vector of 3");
    tn_text_done(&b.text);
}

TEST(a_fault_names_the_row_and_the_column)
{
    static const char *const names[] = {"label", "x"};
    bytes b = {.rows = 0};
    head(&b, 2, names);
    begin(&b);
    whole(&b, 1);
    real(&b, 1);
    end(&b);
    begin(&b);
    whole(&b, 1);
    text(&b, "cheap");
    end(&b);
    assert_refused("{data: {format: csv}, slots: [{name: x, type: float}]}", &b,
                   "memory:t: row 1: error: column 'x': expected a number, found \"cheap\"");
    assert_refused("{data: {format: csv}, slots: [{name: y, type: float}]}", &b,
                   "memory:t: error: there is no column 'y', which 'slots' names\n"
                   "hint: the columns are label, x");
    assert_refused("{data: {format: csv, label: x}, slots: [label]}", &b,
                   "row 1: error: column 'x': expected a label, found \"cheap\"");
    tn_text_done(&b.text);
}

TEST(a_column_whose_type_is_not_read_is_a_fault_where_something_reads_it)
{
    static const char reason[] = "holds structs, which are not read";
    bytes b = {.rows = 0};
    put(&b, TN_CELLS_MAGIC, TN_CELLS_MAGIC_BYTES);
    put_u32(&b, 2);
    put_u32(&b, 5);
    put(&b, "label", 5);
    put_u32(&b, 0);
    put_u32(&b, 1);
    put(&b, "x", 1);
    put_u32(&b, sizeof reason - 1);
    put(&b, reason, sizeof reason - 1);
    begin(&b);
    whole(&b, 1);
    none(&b);
    end(&b);
    assert_refused("{data: {format: csv}, slots: [x]}", &b,
                   "memory:t: error: column 'x' holds structs, which are not read");
    tn_text found CLEANUP(tn_text_done) = {0};
    dump("{data: {format: csv, label_slots: allow}, slots: [label]}", &b, "memory:t", &found);
    assert_true(found.size > 0);
    tn_text_done(&b.text);
}

TEST(a_list_where_one_value_is_wanted_is_refused)
{
    static const char *const names[] = {"label", "x"};
    bytes b = {.rows = 0};
    head(&b, 2, names);
    begin(&b);
    const size_t at = begin_list(&b, 1);
    whole(&b, 1);
    end_list(&b, at);
    whole(&b, 1);
    end(&b);
    assert_refused("{data: {format: csv}, slots: [x]}", &b,
                   "row 0: error: column 'label' holds a list, expected one value");
    tn_text_done(&b.text);
}

TEST(rows_in_memory_are_counted_and_not_estimated)
{
    enum { ROWS = 30000 }; /* more than the one block that may be looked at of a file */
    static const char *const names[] = {"label", "x"};
    bytes b = {.rows = 0};
    setup s;
    double rows = 0;
    tn_error err = {0};
    head(&b, 2, names);
    for (uint32_t i = 0; i < ROWS; i++) {
        begin(&b);
        whole(&b, i % 2);
        whole(&b, i);
        end(&b);
    }
    setup_open(&s, "{data: {format: csv}, slots: [x]}");
    tn_producers producers = {.n = 1};
    producers.producer[0] = (tn_producer){
        .name = "t", .arg = &b, .open = open_pass, .read = read_pass, .close = close_pass};
    const tn_embedder mine = {.producers = &producers};
    const tn_strs paths = {1, (const char *const[]){"memory:t"}};
    (void)tn_embedder_enter(&mine);
    assert_int_equal(tn_row_scan_estimate(&paths, s.schema, 1, &rows, &err), TN_OK);
    (void)tn_embedder_enter(NULL);
    assert_int_equal((int)rows, ROWS);
    tn_text_done(&b.text);
    setup_close(&s);
}

/* The label of a second task, which a row may miss, beside the row: as in a CSV. */
TEST(the_label_of_a_further_task_is_read_from_cells)
{
    static const tn_tasks tasks = {.n = 2,
                                   .task = {{.name = "click",
                                             .of = TN_NO_TASK,
                                             .where = TN_NO_TASK,
                                             .label = TN_NO_ASIDE,
                                             .weight_column = TN_NO_ASIDE},
                                            {.name = "buy",
                                             .of = 0,
                                             .where = TN_NO_TASK,
                                             .label = 0,
                                             .weight_column = TN_NO_ASIDE}},
                                   .n_aside = 1};
    static const char *const names[] = {"label", "id", "buy"};
    bytes b = {.rows = 0};
    head(&b, 3, names);
    for (uint32_t i = 0; i < 4; i++) {
        begin(&b);
        whole(&b, i > 0);
        whole(&b, 7 + i);
        if (i == 1) {
            real(&b, 1);
        } else if (i == 2) {
            none(&b);
        } else {
            text(&b, i == 3 ? "0" : "");
        }
        end(&b);
    }
    setup s;
    setup_open(&s, "{data: {format: csv}, slots: [id]}");
    const tn_tree *label = tn_tree_read_flow(s.arena, "buy", "test");
    const tn_aside aside[1] = {{"buy", label, TN_TARGET_CLICK}};
    const tn_binder binder = {.arena = s.arena, .diag = &s.diag};
    s.data.tasks = &tasks;
    s.data.aside = aside;
    assert_int_equal(tn_schema_new(&s.schema, &s.data, &s.slots, &binder, &s.err), TN_OK);
    tn_producers producers = {.n = 1};
    producers.producer[0] = (tn_producer){
        .name = "t", .arg = &b, .open = open_pass, .read = read_pass, .close = close_pass};
    const tn_embedder mine = {.producers = &producers};
    (void)tn_embedder_enter(&mine);
    const tn_reader_opts opts = {.paths = {1, (const char *const[]){"memory:t"}}, .batch_rows = 64};
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, &s.err), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, &s.err), TN_OK);
    assert_memory_equal(batch->task[1].label, ((const float[]){0, 1, 0, 0}), 4 * sizeof(float));
    assert_memory_equal(batch->task[1].factor, ((const float[]){0, 1, 0, 1}), 4 * sizeof(float));
    tn_reader_recycle(reader, batch);
    tn_reader_close(reader);
    (void)tn_embedder_enter(NULL);
    setup_close(&s);
    tn_text_done(&b.text);
}
