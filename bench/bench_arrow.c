/* bench_arrow.c - rows of Arrow's arrays on one core: columns to cells, cells to parsed rows.
 *
 *     bench_arrow [--json] [rows [repeats]]
 *
 * A Criteo log as a program holds it: label and 13 columns of int64, a fifth of which is null, and
 * 26 of texts of 8 bytes, in batches of 65,536 rows. `cells` makes the cells, `parsing` what a
 * block of rows holds of them. The limit is what memory allows: a copy of the cells, the best of
 * the repeats. Processor time of the thread.
 */
#include "figure.h"
#include "io/arrow/arrow_abi.h"
#include "io/arrow/arrow_cells.h"
#include "io/arrow/cells_format.h"
#include "io/rows/rows.h"
#include "logs.h"
#include "machine.h"

#include "base/core/alloc.h"
#include "base/math/key.h"
#include "base/thread/threads.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 65536,
    PIECE = 256,
    WHOLE = 14, /* with the label */
    TEXTS = 26,
    COLUMNS = WHOLE + TEXTS,
    TEXT_BYTES = 8
};

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_arrow: %s\n", err->text);
        _Exit(1);
    }
}

/* ---- a batch ---- */

typedef struct column {
    char name[8];
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffer[3];
    uint8_t valid[BATCH / 8];
    int64_t whole[BATCH];
    int32_t offset[BATCH + 1];
    char text[BATCH * TEXT_BYTES + 1];
} column;

typedef struct table {
    struct ArrowSchema schema, *field[COLUMNS];
    struct ArrowArray batch, *array[COLUMNS];
    const void *none;
    column *column; /* COLUMNS */
} table;

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static void fill_column(column *c, uint32_t number)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        const uint64_t x = tn_mix((uint64_t)i * COLUMNS + number);
        const bool there = number == 0 || x % 5 != 0;
        c->valid[i / 8] |= (uint8_t)(there << i % 8);
        c->whole[i] = (int64_t)(number == 0 ? x % 2 : x >> (54 + x % 8));
        c->offset[i + 1] = c->offset[i] + TEXT_BYTES;
        (void)snprintf(c->text + (size_t)i * TEXT_BYTES, TEXT_BYTES + 1, "%08" PRIx64, x >> 44);
    }
    c->buffer[0] = c->valid;
    c->buffer[1] = number < WHOLE ? (const void *)c->whole : c->offset;
    c->buffer[2] = c->text;
    c->schema = (struct ArrowSchema){
        .format = number < WHOLE ? "l" : "u", .name = c->name, .release = release_schema};
    c->array = (struct ArrowArray){.length = BATCH,
                                   .null_count = number < WHOLE ? -1 : 0,
                                   .n_buffers = number < WHOLE ? 2 : 3,
                                   .buffers = c->buffer,
                                   .release = release_array};
}

static void open_table(table *t, const char *label)
{
    tn_error err = {0};
    must(TN_ALLOC(t->column, COLUMNS, "columns", &err), &err);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        column *c = &t->column[i];
        const bool whole = i < WHOLE;
        (void)snprintf(c->name, sizeof c->name, "%c%u", whole ? 'I' : 'C',
                       whole ? i : i - WHOLE + 1);
        fill_column(c, i);
        t->field[i] = &c->schema;
        t->array[i] = &c->array;
    }
    t->column[0].schema.name = label;
    t->schema = (struct ArrowSchema){
        .format = "+s", .n_children = COLUMNS, .children = t->field, .release = release_schema};
    t->batch = (struct ArrowArray){.length = BATCH,
                                   .n_buffers = 1,
                                   .n_children = COLUMNS,
                                   .buffers = &t->none,
                                   .children = t->array,
                                   .release = release_array};
}

/* ---- the measurement ---- */

typedef struct bench {
    table t;
    tn_log_file log; /* for its schema */
    tn_arrow_cells *cells;
    tn_head head;
    tn_rows *rows;
    tn_text text;
    char *copy;
    size_t copy_max;
    double cells_s, parse_s, copy_s;
    uint64_t bytes;
} bench;

static void open_bench(bench *b)
{
    tn_error err = {0};
    must(tn_log_file_write(&b->log, &tn_logs[0], 1, &err), &err);
    const tn_schema *schema = b->log.schema;
    const tn_columns *columns = schema->columns;
    open_table(&b->t, columns->name[columns->label]);
    must(tn_arrow_cells_new(&b->cells, &b->t.schema, "bench", &err), &err);
    must(tn_arrow_cells_head(b->cells, &b->text, &err), &err);
    must(tn_rows_new(&b->rows, schema, 0, &err), &err);
    must(TN_ALLOC(b->head.column, columns->n, "a head", &err), &err);
    tn_bytes window = {b->text.data, b->text.size, false};
    const tn_record_location place = {.source = "bench"};
    must(tn_cells_format.head(&window, true, schema, &place, &b->head, &err), &err);
}

static void close_bench(bench *b)
{
    tn_free(b->copy);
    tn_free(b->head.column);
    tn_rows_free(b->rows);
    tn_text_done(&b->text);
    tn_arrow_cells_free(b->cells);
    tn_free(b->t.column);
    tn_log_file_done(&b->log);
}

static void parse(bench *b)
{
    tn_error err = {0};
    const tn_record_location place = {.source = "bench", .head = &b->head};
    const tn_schema *schema = b->log.schema;
    tn_bytes window = {b->text.data, b->text.size, false};
    tn_bytes record;
    tn_rows_clear(b->rows);
    while (window.size > 0) {
        must(tn_cells_format.cut(&window, true, schema, &record, &err), &err);
        must(tn_cells_format.parse(record, schema, &place, b->rows, &err), &err);
    }
}

static void go(bench *b, uint64_t rows)
{
    tn_error err = {0};
    b->cells_s = b->parse_s = b->copy_s = 0;
    b->bytes = 0;
    for (uint64_t at = 0; at < rows; at += PIECE) {
        const tn_arrow_rows piece = {at % BATCH, at % BATCH + PIECE, at};
        tn_text_clear(&b->text);
        const double start = tn_machine_thread_s();
        must(tn_arrow_cells_rows(b->cells, &b->t.batch, piece, &b->text, &err), &err);
        const double made = tn_machine_thread_s();
        parse(b);
        const double parsed = tn_machine_thread_s();
        must(TN_RESERVE(b->copy, b->copy_max, b->text.size, "a copy", &err), &err);
        const double begun = tn_machine_thread_s();
        memcpy(b->copy, b->text.data, b->text.size);
        b->copy_s += tn_machine_thread_s() - begun;
        b->cells_s += made - start;
        b->parse_s += parsed - made;
        b->bytes += b->text.size;
    }
}

static void print(const char *what, const tn_samples *seconds, uint64_t rows, double limit,
                  double target, bool json)
{
    const tn_figure figure = {.row = "P10",
                              .what = what,
                              .unit = "ns per row",
                              .is = tn_spread_scaled(tn_spread_of(seconds), 1e9 / (double)rows),
                              .limit = limit * 1e9 / (double)rows,
                              .limit_is = "a copy of the cells",
                              .target = target,
                              .at_most = true};
    tn_figure_print(&figure, json);
}

int main(int argc, char **argv)
{
    static tn_samples cells;
    static tn_samples parsing;
    static bench b;
    double limit = (double)INFINITY;
    tn_flush_denormals();
    const bool json = tn_json_wanted(&argc, argv);
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    const uint64_t repeats = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    rows = (rows / PIECE + 1) * PIECE;
    open_bench(&b);
    go(&b, BATCH); /* memory grows once */
    for (uint64_t i = 0; i < repeats; i++) {
        go(&b, rows);
        tn_sample(&cells, b.cells_s);
        tn_sample(&parsing, b.parse_s);
        limit = fmin(limit, b.copy_s);
    }
    tn_machine_print(json);
    print("arrays of 14 int64 and 26 utf8 columns to cells", &cells, rows, limit, 500, json);
    print("those cells to parsed rows", &parsing, rows, limit, (double)NAN, json);
    close_bench(&b);
    return 0;
}
