/* test_batch_builder.c - a batch is the same, however the keys of its rows lie. */
#include "io/format/format.h"
#include "io/rows/batch_builder.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

#include <inttypes.h>

enum { ROWS = 400, WAYS = 2 };

/* Rows of one text as entries, and as a grid. */
typedef struct subject {
    setup s;
    tn_rows *rows[WAYS];
    tn_head head;
    uint32_t column[8];
} subject;

static void parse(subject *t, const char *line)
{
    const tn_format *format = tn_format_find("tsv");
    const tn_record_location place = {.source = "test", .line = 1, .head = &t->head};
    for (uint32_t way = 0; way < WAYS; way++) {
        assert_ok(format->parse((tn_bytes){line, strlen(line), false}, t->s.schema, &place,
                                t->rows[way], &t->s.err),
                  t->s.err.text);
    }
}

/* Fields that are missing, at random; numbers of more than 33 bits from row `large` on; a row that
 * pads is the slow path's. */
static void open_subject(subject *t, const char *slots, bool pads, uint64_t large)
{
    char config[400];
    char line[200];
    *t = (subject){.head = {.column = t->column}};
    (void)snprintf(config, sizeof config,
                   "{data: {format: tsv, columns: [label, a, b, c], short_rows: pad}, slots: [%s]}",
                   slots);
    setup_open(&t->s, config);
    const tn_record_location place = {.source = "test", .line = 1};
    tn_bytes window = {"", 0, false};
    assert_int_equal(
        tn_format_find("tsv")->head(&window, true, t->s.schema, &place, &t->head, &t->s.err),
        TN_OK);
    for (uint32_t way = 0; way < WAYS; way++) {
        assert_ok(tn_rows_new(&t->rows[way], t->s.schema, way == 1 ? TN_ROWS_BARE : 0, &t->s.err),
                  t->s.err.text);
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        char text[3][24] = {"", "", ""};
        for (uint64_t k = 0; k < 3; k++) {
            uint64_t x = tn_draw(i, k);
            if (x % 3 != 0) {
                (void)snprintf(text[k], sizeof text[k], "%" PRIu64,
                               x >> (i < large ? 31 + x % 30 : 20 + x % 20));
            }
        }
        (void)snprintf(line, sizeof line, "1\t%s\t%s\t%s", text[0], text[1], text[2]);
        parse(t, pads && i == ROWS / 2 ? "0\t7" : line);
    }
}

static void close_subject(subject *t)
{
    for (uint32_t way = 0; way < WAYS; way++) {
        tn_rows_free(t->rows[way]);
    }
    setup_close(&t->s);
}

/* All rows in an order of their own; `mixed`: every third comes from the other block. */
static void fill(subject *t, uint32_t way, bool mixed, tn_text *out)
{
    tn_batch_builder *f = NULL;
    assert_int_equal(tn_batch_builder_new(&f, t->s.schema, ROWS, false, &t->s.err), TN_OK);
    for (uint32_t again = 0; again < 2; again++) { /* columns keep their room */
        tn_text_clear(out);
        tn_batch_builder_clear(f);
        for (uint32_t i = 0; i < ROWS; i++) {
            const tn_rows *rows = t->rows[mixed && i % 3 == 0 ? 1 - way : way];
            assert_int_equal(tn_batch_builder_add(f, rows, i * 7 % ROWS, 0, &t->s.err), TN_OK);
        }
        assert_int_equal(tn_batch_builder_settle(f, &t->s.err), TN_OK);
        setup_dump_batch(tn_batch_builder_end(f), out);
    }
    tn_batch_builder_free(f);
}

static void compare(const char *slots, bool pads, uint64_t large)
{
    subject t;
    tn_text want CLEANUP(tn_text_done) = {0};
    tn_text got CLEANUP(tn_text_done) = {0};
    open_subject(&t, slots, pads, large);
    const tn_bare *bare = tn_rows_bare(t.rows[1]);
    assert_int_equal(bare != NULL, !pads);
    assert_true(pads ||
                (bare != NULL && bare->signs == (large >= ROWS))); /* as small as it can be */
    fill(&t, 0, false, &want);
    fill(&t, 1, false, &got);
    assert_string_equal(tn_text_str(&got), tn_text_str(&want));
    fill(&t, 0, true, &got);
    assert_string_equal(tn_text_str(&got), tn_text_str(&want));
    close_subject(&t);
}

TEST(a_grid_gives_the_batch_that_entries_give)
{
    compare("{name: a}, {name: b}, {name: c}", false, ROWS);
    compare("{name: a, type: int, as: value}, {name: b}, {name: c, type: int}", false, ROWS);
    compare("{name: c}", false, ROWS);
}

TEST(signs_that_are_too_large_end_a_grid_of_signs)
{
    compare("{name: a}, {name: b}, {name: c}", false, 0);
    compare("{name: a}, {name: b}, {name: c}", false, ROWS / 3);
    compare("{name: a, as: value, type: int}, {name: b}, {name: c}", false, ROWS - 9);
}

TEST(a_grid_that_an_unusual_row_ended_gives_it_too)
{
    compare("{name: a}, {name: b}, {name: c}", true, ROWS);
    compare("{name: a}, {name: b}, {name: c}", true, ROWS / 3);
}
