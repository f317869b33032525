/* test_tnet_arrow.c - rows of Arrow's batches score as the same rows of a CSV file do. */
#include "serve/tnet.h"

#include "support/test.h"

#include "exportkit.h"
#include "support/arrow_kit.h"

typedef struct fixture {
    exportkit kit;
    tnet_model *model;
    tnet_scorer *scorer;
    float *logit; /* of edge.csv, by the export */
    uint32_t n;   /* lines of the kit */
} fixture;

static fixture f;

static void good(int code, const tnet_error *err)
{
    fail_if(code != TNET_OK, "%d: %s", code, err->text);
}

GROUP_SET_UP
{
    tnet_error err;
    exportkit_open(&f.kit, "{type: widedeep, hidden: [16, 8]}", NULL);
    exportkit_train(&f.kit);
    const tn_exported out = exportkit_export(&f.kit);
    f.logit = exportkit_scorer_logits(&f.kit, out.path, &f.n);
    for (f.n = 0; exportkit_edge_lines[f.n] != NULL; f.n++) { /* edge.csv begins with these */
    }
    good(tnet_open(out.path, TNET_VERIFY_FULL, &f.model, &err), &err);
    good(tnet_scorer_new(f.model, &f.scorer, &err), &err);
}

GROUP_TEAR_DOWN
{
    tnet_scorer_free(f.scorer);
    tnet_close(f.model);
    tn_free(f.logit);
    exportkit_close(&f.kit);
    assert_int_equal(kit_live, 0);
}

/* ---- edge.csv as a batch ---- */

enum { COLUMNS = 17, CELL_BYTES = 64, ROWS_MAX = 600 };

static const char *const names[COLUMNS] = {"label",  "user",  "item",   "hist",  "tags", "weights",
                                           "seq",    "top",   "topx",   "gone",  "age",  "count",
                                           "amount", "price", "height", "speed", "drift"};

/* Finds a cell of edge.csv, whose rows come again and again. */
static void find_cell(uint32_t row, uint32_t column, char out[CELL_BYTES])
{
    const char *at = exportkit_edge_lines[row % f.n];
    for (uint32_t c = 0; c < column; c++) {
        at += strcspn(at, ",") + 1;
    }
    const size_t size = strcspn(at, ",\n");
    assert_true(size < CELL_BYTES);
    memcpy(out, at, size);
    out[size] = '\0';
}

/* Texts under way. */
typedef struct texts {
    int32_t offset[ROWS_MAX * 8];
    char valid[ROWS_MAX * 8];
    char bytes[ROWS_MAX * CELL_BYTES];
    uint32_t n;
} texts;

static void add_text(texts *t, const char *text, size_t size)
{
    assert_true(t->n + 1 < sizeof t->offset / sizeof *t->offset);
    memcpy(t->bytes + t->offset[t->n], text, size);
    t->valid[t->n] = size > 0 ? '1' : '0';
    t->offset[t->n + 1] = t->offset[t->n] + (int32_t)size;
    t->n++;
}

/* Empty ones are null. */
static void finish_texts(const texts *t, struct ArrowArray *array)
{
    kit_buffer(array, t->offset, (t->n + 1) * sizeof *t->offset);
    kit_buffer(array, t->bytes, (size_t)t->offset[t->n]);
    array->null_count = 0; /* empty texts are as good as nulls */
}

static texts made;

static void add_text_column(struct ArrowSchema *schema, struct ArrowArray *batch, uint32_t column)
{
    char cell[CELL_BYTES];
    made.n = 0;
    for (uint32_t row = 0; row < batch->length; row++) {
        find_cell(row, column, cell);
        add_text(&made, cell, strlen(cell));
    }
    (void)kit_schema_child(schema, "u", names[column]);
    finish_texts(&made, kit_child(batch, batch->length, NULL));
}

/* A list of texts for each row. */
static void add_list_column(struct ArrowSchema *schema, struct ArrowArray *batch, uint32_t column)
{
    static int32_t offset[ROWS_MAX + 1];
    char cell[CELL_BYTES];
    made.n = 0;
    for (uint32_t row = 0; row < batch->length; row++) {
        find_cell(row, column, cell);
        for (const char *at = cell; *at != '\0'; at += *at == '|') {
            const size_t size = strcspn(at, "|");
            add_text(&made, at, size);
            at += size;
        }
        offset[row + 1] = (int32_t)made.n;
    }
    (void)kit_schema_child(kit_schema_child(schema, "+l", names[column]), "u", "item");
    struct ArrowArray *list = kit_child(batch, batch->length, NULL);
    kit_buffer(list, offset, (size_t)(batch->length + 1) * sizeof *offset);
    finish_texts(&made, kit_child(list, made.n, NULL));
}

/* Numbers, with nulls for what is empty: doubles, or unsigned integers of 64 bits. */
static void add_number_column(struct ArrowSchema *schema, struct ArrowArray *batch, uint32_t column,
                              const char *format)
{
    static uint64_t value[ROWS_MAX];
    static char valid[ROWS_MAX + 1];
    char cell[CELL_BYTES];
    valid[batch->length] = '\0';
    for (uint32_t row = 0; row < batch->length; row++) {
        find_cell(row, column, cell);
        const double real = strtod(cell, NULL);
        value[row] = strtoull(cell, NULL, 10); /* of a negative one its bits */
        if (format[0] == 'g') {
            memcpy(&value[row], &real, sizeof real);
        }
        valid[row] = cell[0] != '\0' ? '1' : '0';
    }
    (void)kit_schema_child(schema, format, names[column]);
    kit_buffer(kit_child(batch, batch->length, valid), value, (size_t)batch->length * 8);
}

static void open_batch(struct ArrowSchema *schema, struct ArrowArray *batch, uint32_t rows)
{
    kit_schema(schema, "+s", "");
    kit_array(batch, rows, NULL);
}

static void close_batch(struct ArrowSchema *schema, struct ArrowArray *batch)
{
    schema->release(schema);
    batch->release(batch);
}

/* Every column as text. */
static void open_texts(struct ArrowSchema *schema, struct ArrowArray *batch, uint32_t rows)
{
    open_batch(schema, batch, rows);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        add_text_column(schema, batch, c);
    }
}

/* Every column of its own type, in another order, without a label, beside one that nobody reads. */
static void open_typed(struct ArrowSchema *schema, struct ArrowArray *batch, uint32_t rows)
{
    open_batch(schema, batch, rows);
    for (uint32_t c = 16; c >= 12; c--) {
        add_number_column(schema, batch, c, "g");
    }
    add_number_column(schema, batch, 11, "l");
    add_number_column(schema, batch, 10, "l");
    (void)kit_schema_child(schema, "+s", "unread");
    (void)kit_child(batch, rows, NULL);
    for (uint32_t c = 9; c >= 2; c--) {
        (c == 9 || c == 2 ? add_text_column : add_list_column)(schema, batch, c);
    }
    add_number_column(schema, batch, 1, "L");
}

static void assert_scores(const struct ArrowSchema *schema, const struct ArrowArray *batch)
{
    static float logit[ROWS_MAX];
    static float click[ROWS_MAX];
    tnet_error err;
    good(tnet_score_arrow(f.scorer, schema, batch, logit, click, &err), &err);
    for (uint32_t i = 0; i < batch->length; i++) {
        assert_memory_equal(&logit[i], &f.logit[i % f.n], sizeof *logit);
        assert_float_equal(click[i], 1 / (1 + expf(-logit[i])), 1e-6F);
    }
}

TEST(a_batch_scores_as_its_csv_file_to_the_last_bit)
{
    static void (*const open[])(struct ArrowSchema *, struct ArrowArray *, uint32_t) = {open_texts,
                                                                                        open_typed};
    assert_true(f.n > 5);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        for (uint32_t rows = 0; rows <= ROWS_MAX; rows = rows * 3 + f.n) {
            struct ArrowSchema schema;
            struct ArrowArray batch;
            open[i](&schema, &batch, rows);
            assert_scores(&schema, &batch);
            close_batch(&schema, &batch);
            assert_int_equal(kit_live, 0);
        }
    }
}

TEST(rows_that_are_put_together_stay)
{
    struct ArrowSchema schema;
    struct ArrowArray batch;
    tnet_error err;
    float before = 0;
    float after = 0;
    open_texts(&schema, &batch, f.n);
    good(tnet_begin_row(f.scorer, &err), &err);
    good(tnet_add_id(f.scorer, tnet_field(f.model, "user"), 1, 1, &err), &err);
    good(tnet_end_row(f.scorer, &err), &err);
    good(tnet_score(f.scorer, &before, NULL, &err), &err);
    assert_scores(&schema, &batch);
    good(tnet_score(f.scorer, &after, NULL, &err), &err);
    assert_memory_equal(&before, &after, sizeof before);
    tnet_clear(f.scorer);
    close_batch(&schema, &batch);
}

/* ---- faults ---- */

static void assert_refused(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                           int code, const char *sentence)
{
    float logit[ROWS_MAX];
    tnet_error err = {0};
    assert_int_equal(tnet_score_arrow(f.scorer, schema, batch, logit, NULL, &err), code);
    assert_int_equal(err.code, code);
    assert_says(err.text, sentence);
    assert_int_equal(tnet_score_arrow(f.scorer, schema, batch, logit, NULL, NULL), code);
}

TEST(a_fault_names_the_column_and_the_row)
{
    struct ArrowSchema schema;
    struct ArrowArray batch;
    open_texts(&schema, &batch, 3);
    schema.children[13]->name = "cost";
    assert_refused(&schema, &batch, TNET_E_DATA,
                   "the batch has no column 'price', which the model reads");
    schema.children[13]->name = "item";
    assert_refused(&schema, &batch, TNET_E_DATA, "the batch has no column 'price'");
    schema.children[13]->name = "price";
    schema.children[0]->name = "user";
    assert_refused(&schema, &batch, TNET_E_DATA, "two columns are called 'user'");
    schema.children[0]->name = "label";
    schema.children[13]->format = "+m";
    assert_refused(&schema, &batch, TNET_E_DATA, "column 'price' holds maps");
    schema.children[13]->format = "u";
    batch.children[13]->buffers[2] = "cheap and more";
    batch.children[13]->buffers[1] = (const int32_t[]){0, 0, 5, 5};
    assert_refused(&schema, &batch, TNET_E_DATA,
                   "the batch: row 1: error: column 'price': expected a number, found \"cheap\"");
    batch.children[13]->length = 2;
    assert_refused(&schema, &batch, TNET_E_DATA, "column 'price' has an array of 2 values");
    batch.length = -1;
    assert_refused(&schema, &batch, TNET_E_DATA, "a batch of 17 columns and -1 rows");
    close_batch(&schema, &batch);
}

TEST(wrong_calls_are_refused)
{
    struct ArrowSchema schema;
    struct ArrowArray batch;
    tnet_error err = {0};
    open_texts(&schema, &batch, 3);
    assert_refused(NULL, &batch, TNET_E_USAGE, "'schema' is NULL");
    assert_refused(&schema, NULL, TNET_E_USAGE, "'batch' is NULL");
    assert_int_equal(tnet_score_arrow(NULL, &schema, &batch, NULL, NULL, &err), TNET_E_USAGE);
    good(tnet_score_arrow(f.scorer, &schema, &batch, NULL, NULL, &err), &err);
    close_batch(&schema, &batch);
}

TEST(memory_that_runs_out_is_reported_and_the_call_may_be_repeated)
{
    struct ArrowSchema schema;
    struct ArrowArray batch;
    tnet_error err = {0};
    tnet_scorer *s = NULL;
    uint64_t nth = 1;
    open_typed(&schema, &batch, f.n);
    good(tnet_scorer_new(f.model, &s, &err), &err);
    for (int code = TNET_E_MEMORY; code != TNET_OK; nth++) {
        tn_alloc_fail_at(nth);
        code = tnet_score_arrow(s, &schema, &batch, NULL, NULL, &err);
        assert_true(code == TNET_OK || code == TNET_E_MEMORY);
    }
    assert_true(nth > 10);
    tn_alloc_fail_at(0);
    good(tnet_score_arrow(s, &schema, &batch, NULL, NULL, &err), &err);
    tnet_scorer_free(s);
    close_batch(&schema, &batch);
}
