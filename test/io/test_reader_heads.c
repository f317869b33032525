/* test_reader_heads.c - a file with a header, cut into many parts, that several threads parse in
 * any order. */
#include "io/setup.h"
#include "support/test.h"

#include <string.h>

enum { ROWS = 20000, ROUNDS = 12 };

static void make_csv(tn_text *out)
{
    tn_text_adds(out, "label,a,b,c\n");
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_text_addf(out, "%u,%u,%u,%u\n", i & 1U, i, i + 1, i + 2);
    }
}

/* Rows of an epoch, and the sum of what they hold, which no order changes. */
static uint64_t checksum(setup *s, const char *path, uint32_t epoch)
{
    tn_reader_opts opts = {.paths = {1, &path},
                           .batch_rows = 512,
                           .training = true,
                           .seed = 1,
                           .from = {.epoch = epoch},
                           .prefetch = 2};
    tn_reader *reader = NULL;
    if (tn_reader_open(&reader, s->schema, &opts, &s->err) != TN_OK) {
        fail_msg("%s", s->err.text);
    }
    assert_true(tn_reader_n_parts(reader) > 20);
    tn_batch *batch = NULL;
    tn_status status;
    uint64_t sum = 0;
    while ((status = tn_reader_next(reader, &batch, &s->err)) == TN_OK) {
        for (uint32_t k = 0; k < batch->n_slots; k++) {
            assert_int_equal(batch->slot[k].offset[batch->rows], batch->rows);
            for (uint32_t i = 0; i < batch->rows; i++) {
                sum += batch->slot[k].key[i];
            }
        }
        tn_reader_recycle(reader, batch);
    }
    if (status != TN_END) {
        fail_msg("%s", s->err.text);
    }
    tn_reader_close(reader);
    return sum;
}

static void a_head_is_read_once_however_parts_are_visited(void **state)
{
    (void)state;
    setup s;
    setup_open(&s, "{data: {format: csv, shuffle: 512, readers: 4, part_bytes: 16kB}, "
                   "slots: [{name: a}, {name: b}, {name: c}]}");
    tn_text csv = {0};
    make_csv(&csv);
    const char *path = setup_file(&s, "rows.csv", csv.data, csv.size);
    uint64_t first = checksum(&s, path, 0);
    for (uint32_t epoch = 1; epoch < ROUNDS; epoch++) {
        assert_true(checksum(&s, path, epoch) == first);
    }
    tn_text_done(&csv);
    setup_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_once_however_parts_are_visited),
    };
    return cmocka_run_group_tests_name("io/reader_heads", tests, NULL, NULL);
}
