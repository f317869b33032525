/* test_row_positions.c - rows remembered from pull to push: never wrong, whatever happens in
 * between. */
#include "ps/table/tabledef.h"

#include "onetable.h"
#include "support/test.h"

enum { KEYS = 500 };

static float weight(onetable *f, uint64_t key)
{
    float w[DIM];
    kit_peek(f->t, &f->m->layout, key, w);
    return w[0];
}

static void pull(onetable *f, const kit_keys *k)
{
    float *rows = floats(f, k);
    assert_int_equal(tn_table_pull(f->t, NULL, &k->set, rows, NULL), TN_OK);
}

/* Adds -1 to every weight of the keys. */
static void push(onetable *f, const kit_keys *k)
{
    float *grads = floats(f, k);
    for (uint32_t i = 0; i < k->n_floats; i++) {
        grads[i] = 1;
    }
    tn_push p = kit_push(0);
    tn_table_push(f->t, NULL, &k->set, grads, &p, 1);
}

static onetable begin(void)
{
    onetable f = onetable_begin("sgd", "lr=1", 1);
    f.m->rule[0].init = (tn_init){.kind = TN_INIT_CONSTANT};
    return f;
}

TEST(a_keyset_that_changed_after_its_pull_still_reaches_its_own_rows)
{
    onetable f CLEANUP(onetable_end) = begin();
    uint64_t *key = many_keys(&f, 2 * KEYS, 7);
    kit_keys *a = keys_of(&f, key, KEYS);
    kit_keys *b = keys_of(&f, key + KEYS, KEYS);
    pull(&f, a);
    pull(&f, b);
    tn_keyset kept = a->set;
    a->set = b->set;
    push(&f, a);
    a->set = kept;
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_true(weight(&f, key[i]) == 0);
        assert_true(weight(&f, key[KEYS + i]) == -1);
    }
}

TEST(after_a_clear_nothing_is_remembered)
{
    onetable f CLEANUP(onetable_end) = begin();
    uint64_t *key = many_keys(&f, 2 * KEYS, 7);
    kit_keys *a = keys_of(&f, key, KEYS);
    kit_keys *b = keys_of(&f, key + KEYS, KEYS);
    pull(&f, a);
    tn_table_clear(f.t);
    push(&f, a);
    pull(&f, b);
    push(&f, a);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_true(weight(&f, key[KEYS + i]) == 0);
    }
}

TEST(many_keysets_may_be_under_way)
{
    enum { SETS = 3 * TN_ROW_POSITIONS_MAX, EACH = 40 };
    onetable f CLEANUP(onetable_end) = begin();
    uint64_t *key = many_keys(&f, SETS * EACH, 7);
    kit_keys *k[SETS];
    for (uint32_t i = 0; i < SETS; i++) {
        k[i] = keys_of(&f, key + (size_t)i * EACH, EACH);
        pull(&f, k[i]);
    }
    for (uint32_t i = 0; i < SETS; i++) {
        push(&f, k[i]);
    }
    for (uint32_t i = 0; i < SETS * EACH; i++) {
        assert_true(weight(&f, key[i]) == -1);
    }
}

TEST(a_hint_in_use_is_for_nobody_else)
{
    tn_keyset keys = {.n = 10};
    tn_row_positions h = {0};
    tn_keyset_rows *x = NULL;
    tn_keyset_rows *y = NULL;
    tn_row_positions_init(&h);
    assert_null(tn_row_positions_read(&h, &keys));
    assert_int_equal(tn_row_positions_write(&h, &keys, &x, NULL), TN_OK);
    assert_non_null(x);
    assert_int_equal(tn_row_positions_write(&h, &keys, &y, NULL), TN_OK);
    assert_null(y);
    assert_null(tn_row_positions_read(&h, &keys));
    tn_row_positions_release(&h, x, true);
    assert_ptr_equal(tn_row_positions_read(&h, &keys), x);
    tn_row_positions_release(&h, x, true);

    keys.n = 9; /* not the keyset that was pulled */
    assert_null(tn_row_positions_read(&h, &keys));
    keys.n = 10;
    assert_int_equal(tn_row_positions_write(&h, &keys, &x, NULL), TN_OK);
    tn_row_positions_release(&h, x, false); /* the pull failed */
    assert_null(tn_row_positions_read(&h, &keys));
    tn_row_positions_release(&h, NULL, true);
    tn_row_positions_done(&h);
}

TEST(a_pull_without_memory_for_hints_fails_and_the_next_works)
{
    onetable f CLEANUP(onetable_end) = begin();
    kit_keys *k = keys_of(&f, many_keys(&f, KEYS, 7), KEYS);
    float *rows = floats(&f, k);
    tn_error err = {0};
    tn_alloc_fail_at(1);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, &err), TN_E_MEMORY);
    tn_alloc_fail_at(0);
    assert_non_null(strstr(err.text, "the rows of a batch"));
    pull(&f, k);
    push(&f, k);
    assert_true(weight(&f, k->set.key[0]) == -1);
}
