/* test_async_server_receive.c - requests that an owner refuses, each with its reason, and what they
 * leave. */
#include "freeone.h"

#include "base/core/bytes.h"
#include "base/math/rng.h"
#include "support/test.h"

#include <math.h>

static const free_pull good = {.rank = 1, .sequence = 1, .to = 4, .show = 1, .examples = 5};

static void assert_refused(free_one *x, uint32_t rank, uint64_t sequence, tn_refusal why)
{
    const free_answer *a = free_one_answer(x, rank, sequence);
    assert_non_null(a);
    assert_int_equal(a->type, TN_FRAME_REFUSED);
    assert_int_equal(a->code, why);
}

/* The bound on staleness, as the owner sees it. */
static void a_rank_has_no_more_pulls_than_permits(void **state)
{
    (void)state;
    free_one *x = free_one_new(2, NULL);
    free_pull p = good;
    for (p.sequence = 1; p.sequence <= 3; p.sequence++) {
        free_one_pull(x, &p);
    }
    free_one_wait(x, 3);
    assert_refused(x, 1, 3, TN_REFUSAL_FULL);
    assert_int_equal(tn_freeserve_open_pulls(x->serve), 2);
    p.rank = 2;
    p.sequence = 1;
    free_one_pull(x, &p); /* others have their own */
    free_one_wait(x, 4);
    assert_int_equal(free_one_answer(x, 2, 1)->type, TN_FRAME_ROWS);
    p = good;
    free_one_push(x, &(free_push){.of = &good, .sequence = 4, .value = 1});
    free_one_wait(x, 5);
    p.sequence = 3; /* a permit is back: the refused one may come */
    free_one_pull(x, &p);
    free_one_wait(x, 6);
    assert_int_equal(free_one_answer(x, 1, 3)->type, TN_FRAME_ROWS);
    free_one_free(x);
}

static void a_push_must_name_a_pull_that_was_answered(void **state)
{
    (void)state;
    free_one *x = free_one_new(2, NULL);
    free_pull other = good;
    free_one_pull(x, &good);
    free_one_wait(x, 1);
    other.sequence = 9;
    free_one_push(x, &(free_push){.of = &other, .sequence = 2, .value = 1});
    other.sequence = 1;
    other.rank = 2; /* of another rank */
    free_one_push(x, &(free_push){.of = &other, .sequence = 1, .value = 1});
    free_one_wait(x, 3);
    assert_refused(x, 1, 2, TN_REFUSAL_PULL);
    assert_refused(x, 2, 1, TN_REFUSAL_PULL);
    free_one_push(x, &(free_push){.of = &good, .sequence = 3, .value = 1});
    free_one_wait(x, 4);
    free_one_push(x, &(free_push){.of = &good, .sequence = 4, .value = 1}); /* twice */
    free_one_wait(x, 5);
    assert_refused(x, 1, 4, TN_REFUSAL_PULL);
    assert_int_equal(tn_freeserve_updates(x->serve), 101);
    free_one_free(x);
}

/* ---- damage ---- */

static void bad_weight(free_message *m)
{
    tn_store_f64(m->payload + 8, -1);
}

static void bad_keys(free_message *m)
{
    m->payload[TN_PULL_PARAMS] = 9; /* width of deltas */
}

static void bad_factor(free_message *m)
{
    tn_store_f64(m->payload + 8, (double)NAN);
}

static void fewer_keys(free_message *m)
{
    m->frame.count[TN_KEYS]--;
}

static void fewer_floats(free_message *m)
{
    m->frame.count[TN_ROW_FLOATS] -= FREE_ONE_DIM;
}

static void no_dense(free_message *m)
{
    m->frame.count[TN_DENSE_FLOATS] = 0;
}

static void bad_row(free_message *m)
{
    tn_store_f32(m->payload + TN_PUSH_PARAMS, NAN);
}

static void bad_dense(free_message *m)
{
    tn_store_f32(m->payload + m->frame.bytes - sizeof(float), INFINITY);
}

static void what_is_damaged_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static free_edit *const of_pull[] = {bad_weight, bad_keys};
    static const struct {
        free_edit *edit;
        tn_refusal why;
    } of_push[] = {
        {bad_factor, TN_REFUSAL_DAMAGED},   {fewer_keys, TN_REFUSAL_DAMAGED},
        {fewer_floats, TN_REFUSAL_DAMAGED}, {no_dense, TN_REFUSAL_DAMAGED},
        {bad_row, TN_REFUSAL_DIVERGED},     {bad_dense, TN_REFUSAL_DIVERGED},
    };
    free_one *x = free_one_new(1, NULL);
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof of_pull / sizeof *of_pull; i++) {
        free_pull bad = good;
        bad.edit = of_pull[i];
        free_one_pull(x, &bad);
        free_one_wait(x, ++n);
        assert_refused(x, 1, 1, TN_REFUSAL_DAMAGED);
    }
    free_one_pull(x, &good); /* the same id: it was never applied */
    free_one_wait(x, ++n);
    assert_int_equal(free_one_answer(x, 1, 1)->type, TN_FRAME_ROWS);
    for (uint32_t i = 0; i < sizeof of_push / sizeof *of_push; i++) {
        free_one_push(
            x, &(free_push){.of = &good, .sequence = 2, .value = 1, .edit = of_push[i].edit});
        free_one_wait(x, ++n);
        assert_refused(x, 1, 2, of_push[i].why);
    }
    assert_int_equal(tn_freeserve_updates(x->serve), 100);
    free_one_push(x, &(free_push){.of = &good, .sequence = 2, .value = 1});
    free_one_wait(x, ++n);
    assert_int_equal(free_one_answer(x, 1, 2)->type, TN_FRAME_DENSE);
    assert_int_equal(tn_freeserve_updates(x->serve), 101);
    free_one_free(x);
}

static void keys_of_no_examples(free_message *m)
{
    tn_store_u64(m->payload, 0);
    tn_store_f64(m->payload + 8, 0);
}

static void a_pull_of_keys_without_examples_is_refused(void **state)
{
    (void)state;
    free_one *x = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = keys_of_no_examples;
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    assert_refused(x, 1, 1, TN_REFUSAL_DAMAGED);
    assert_int_equal(tn_table_rows(x->shard.table), 0);
    free_one_free(x);
}

static void weighs_nothing(free_message *m)
{
    tn_store_f64(m->payload + 8, 0);
}

static void a_batch_that_weighs_nothing_is_no_update(void **state)
{
    (void)state;
    free_one *x = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = weighs_nothing;
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    free_one_push(x, &(free_push){.of = &p, .sequence = 2, .value = 1});
    free_one_wait(x, 2);
    assert_int_equal(free_one_answer(x, 1, 2)->type, TN_FRAME_DENSE);
    assert_int_equal(tn_freeserve_updates(x->serve), 100);
    assert_true(x->weights[0] == 0);
    free_one_free(x);
}

/* ---- a peer that sends anything ---- */

enum { SEQUENCES = 50000, STARTS = 50 };

/* A learning rate of 1e300 is a number: then weights are none any more, and that is told. */
static void assert_served(const free_answer *a, tn_frame_type type)
{
    assert_non_null(a);
    if (a->type == TN_FRAME_REFUSED) {
        assert_int_equal(a->code, TN_REFUSAL_DIVERGED);
    } else {
        assert_int_equal(a->type, type);
    }
}

/* Pulls and pushes of rank 1 with bytes changed; those of rank 2 are served all the while. */
static void r50000_damaged_sequences_leave_a_live_owner_well(void **state)
{
    (void)state;
    uint32_t n_read = 0;
    for (uint64_t start = 1; start <= STARTS; start++) {
        free_one *x = free_one_new(3, NULL);
        x->damage = tn_stream2(41, start, 1);
        free_pull bad = good;
        free_pull well = {.rank = 2, .to = 10, .show = 1, .examples = 3};
        for (uint32_t i = 0; i < SEQUENCES / STARTS; i++) {
            const uint64_t drawn = tn_draw(x->damage, x->draws++);
            bad.sequence = 1 + drawn % (2 + i / 8);
            bad.to = (uint32_t)(drawn >> 32) % FREE_ONE_KEYS;
            free_one_pull(x, &bad);
            free_one_push(x, &(free_push){.of = &bad, .sequence = bad.sequence + 1, .value = 1});
            if (i % 100 == 99) {
                const uint32_t before = x->n_answers;
                well.sequence = 1 + i / 50;
                free_one_pull(x, &well);
                free_one_wait(x, before + 1);
                free_one_push(x, &(free_push){.of = &well, .sequence = well.sequence + 1});
                free_one_wait(x, before + 2);
                assert_served(free_one_answer(x, 2, well.sequence), TN_FRAME_ROWS);
                assert_served(free_one_answer(x, 2, well.sequence + 1), TN_FRAME_DENSE);
            }
        }
        n_read += x->n_damaged;
        assert_in_range(tn_freeserve_open_pulls(x->serve), 0, 3);
        assert_int_equal(x->failed, TN_OK);
        free_one_free(x);
    }
    assert_true(n_read > SEQUENCES / 2); /* most get past the header */
}

/* ---- strangers ---- */

static void other_start(free_message *m)
{
    m->frame.incarnation++;
}

static void far_ahead(free_message *m)
{
    m->frame.sequence = TN_ONCE_WINDOW + 1;
}

static void the_own_rank(free_message *m)
{
    m->frame.rank = 0;
}

static void a_share(free_message *m)
{
    m->frame.type = TN_FRAME_SHARE;
}

static void what_is_not_of_this_mode_is_not_served(void **state)
{
    (void)state;
    free_one *x = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = the_own_rank;
    free_one_pull(x, &p); /* nobody to answer */
    p.edit = a_share;
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    assert_refused(x, 1, 1, TN_REFUSAL_DAMAGED);
    assert_int_equal(x->n_answers, 1);
    assert_int_equal(tn_freeserve_open_pulls(x->serve), 0);
    free_one_free(x);
}

static void another_start_and_what_is_far_ahead_are_refused(void **state)
{
    (void)state;
    free_one *x = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = other_start;
    free_one_pull(x, &p);
    p.edit = far_ahead;
    free_one_pull(x, &p);
    free_one_wait(x, 2);
    assert_refused(x, 1, 1, TN_REFUSAL_INCARNATION);
    assert_refused(x, 1, TN_ONCE_WINDOW + 1, TN_REFUSAL_BEYOND);
    assert_int_equal(tn_freeserve_open_pulls(x->serve), 0);
    free_one_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_has_no_more_pulls_than_permits),
        cmocka_unit_test(a_push_must_name_a_pull_that_was_answered),
        cmocka_unit_test(what_is_damaged_is_refused_and_changes_nothing),
        cmocka_unit_test(a_pull_of_keys_without_examples_is_refused),
        cmocka_unit_test(a_batch_that_weighs_nothing_is_no_update),
        cmocka_unit_test(r50000_damaged_sequences_leave_a_live_owner_well),
        cmocka_unit_test(what_is_not_of_this_mode_is_not_served),
        cmocka_unit_test(another_start_and_what_is_far_ahead_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
