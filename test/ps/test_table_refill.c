/* test_table_refill.c - rows put back and taken out, beside a list that knows what should be there.
 */
#include "base/math/key.h"
#include "onetable.h"
#include "support/test.h"

enum { KEYS = 30000, ROUNDS = 120000, FLOATS = 2 * DIM };

/* Key i is in partition 5 or 6, so that these hold many. */
static uint64_t key_of(uint32_t i)
{
    return (uint64_t)(5 + i % 2) << 54 | tn_mix(i) >> 10;
}

static void put(tn_table *t, uint32_t i, float value)
{
    float data[FLOATS];
    for (uint32_t k = 0; k < FLOATS; k++) {
        data[k] = value + (float)k;
    }
    tn_row_view view = {.key = key_of(i),
                        .present = 1,
                        .last_seen = i,
                        .show = i,
                        .data = data,
                        .n_floats = FLOATS};
    assert_int_equal(tn_table_restore(t, &view, NULL), TN_OK);
}

static void take_out(tn_table *t, uint32_t i)
{
    tn_refill r;
    tn_refill_begin(&r, t, tn_partition_of(key_of(i), TN_PARTITIONS));
    assert_int_equal(tn_refill_remove(&r, key_of(i), 0, NULL), TN_OK);
    tn_refill_end(&r);
}

typedef struct expected {
    const float *value; /* per key; 0: none */
    uint64_t seen;
    uint64_t last_key;
} expected;

static tn_status check_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    expected *e = arg;
    uint32_t i = row->last_seen;
    assert_true(row->key > e->last_key);
    e->last_key = row->key;
    e->seen++;
    assert_true(row->key == key_of(i) && row->show == i);
    assert_true(e->value[i] != 0 && row->data[0] == e->value[i]);
    assert_true(row->data[FLOATS - 1] == e->value[i] + FLOATS - 1);
    return TN_OK;
}

TEST(rows_come_and_go_and_the_others_stay)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "", 1);
    float *value = TN_NEW_ARRAY(f.arena, float, KEYS);
    uint64_t stream = tn_stream2(11, TN_RNG_ROW, 0);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t k = (uint32_t)tn_below(tn_draw(stream, 2UL * i), KEYS);
        bool out = tn_below(tn_draw(stream, 2UL * i + 1), 100) < (i < ROUNDS / 2 ? 30 : 70);
        rows += value[k] == 0 && !out;
        rows -= value[k] != 0 && out;
        value[k] = out ? 0 : (float)(i + 1);
        if (out) {
            take_out(f.t, k);
        } else {
            put(f.t, k, value[k]);
        }
    }
    assert_int_equal(tn_table_rows(f.t), rows);
    expected e = {.value = value};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(f.t, p, check_row, &e, NULL), TN_OK);
    }
    assert_int_equal(e.seen, rows);
    for (uint32_t k = 0; k < KEYS; k++) { /* the index says the same */
        float row[DIM] = {-1};
        kit_peek(f.t, &f.m->layout, key_of(k), row);
        assert_true(row[0] == value[k]);
        take_out(f.t, k);
    }
    assert_int_equal(tn_table_rows(f.t), 0);
}

TEST(many_rows_at_once_are_the_rows_one_by_one)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "", 1);
    float data[FLOATS] = {1};
    const uint64_t key[] = {3, 9, 27, 9, 2, 27}; /* no longer ascending: looked for */
    tn_refill r;
    tn_refill_begin(&r, f.t, 0);
    for (uint32_t i = 0; i < 6; i++) {
        data[0] = (float)i;
        tn_row_view view = {.key = key[i], .present = 1, .data = data, .n_floats = FLOATS};
        assert_int_equal(tn_refill_add(&r, &view, NULL), TN_OK);
    }
    tn_refill_end(&r);
    assert_int_equal(tn_table_rows(f.t), 4);
    kit_row row;
    assert_true(kit_row_of(f.t, 9, &row) && row.data[0] == 3);
    assert_true(kit_row_of(f.t, 27, &row) && row.data[0] == 5);
}

TEST(rows_that_cannot_be_are_refused)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "", 1);
    float data[FLOATS] = {0};
    tn_error err = {0};
    const tn_row_view good = {.key = 7, .present = 1, .data = data, .n_floats = FLOATS};
    tn_row_view view = good;
    view.last_seen = 1 << 22;
    assert_int_equal(tn_table_restore(f.t, &view, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "last seen on day 4194304"));
    view = good;
    view.group = 1;
    assert_int_equal(tn_table_restore(f.t, &view, &err), TN_E_CKPT);
    view = good;
    view.n_floats = 1;
    assert_int_equal(tn_table_restore(f.t, &view, &err), TN_E_CKPT);
    tn_refill r;
    tn_refill_begin(&r, f.t, 0);
    assert_int_equal(tn_refill_remove(&r, 7, 1, &err), TN_E_CKPT);
    tn_refill_end(&r);
    assert_int_equal(tn_table_rows(f.t), 0);
    assert_int_equal(tn_table_restore(f.t, &good, &err), TN_OK);
}
