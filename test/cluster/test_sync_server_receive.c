/* test_sync_server_receive.c - requests that an owner does not take: each is refused with its
 * reason, changes nothing, and may come again. */
#include "serving.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

/* The request is refused, and as it should be it is taken afterwards under the same number. */
static void assert_refused(serving *s, const tn_frame *request, tn_refusal code)
{
    const uint32_t n = s->n_answers;
    serving_take(s, *request);
    serving_refused(s, n + 1, request, code);
    assert_int_equal(tn_once_ask(&s->once[request->rank], request->incarnation, request->sequence),
                     TN_ONCE_APPLY);
}

static void assert_taken(serving *s, tn_frame request)
{
    const uint32_t n = s->n_answers;
    serving_take(s, request);
    assert_int_equal(s->n_answers, n);
    assert_int_equal(tn_once_ask(&s->once[request.rank], request.incarnation, request.sequence),
                     TN_ONCE_REPEATED);
}

static void pull_both(serving *s, uint64_t sequence)
{
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        assert_taken(s, serving_pull(s, r, sequence));
    }
    serving_run(s);
    assert_int_equal(serving_answer(s, 1, sequence)->frame.type, TN_FRAME_ROWS);
}

static void what_is_of_another_start_or_too_far_ahead_is_refused(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    tn_frame f = serving_pull(s, 1, 1);
    f.incarnation++;
    serving_take(s, f);
    serving_refused(s, 1, &f, TN_REFUSAL_INCARNATION);
    f = serving_pull(s, 1, TN_ONCE_WINDOW + 1);
    serving_take(s, f);
    serving_refused(s, 2, &f, TN_REFUSAL_BEYOND);
    f = serving_pull(s, 1, 0);
    serving_take(s, f);
    serving_refused(s, 3, &f, TN_REFUSAL_BEYOND);
    assert_taken(s, serving_pull(s, 1, 1));
    serving_free(s);
}

static void a_damaged_pull_is_refused(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    tn_frame f = serving_pull(s, 1, 1);
    tn_store_f64(s->payload + 8, (double)NAN); /* the weight of the batch */
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    f = serving_pull(s, 1, 1);
    f.bytes--;
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    f = serving_pull(s, 1, 1);
    f.count[TN_ROW_FLOATS]++;
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    f = serving_pull_keys(s, 1, 1, &s->foreign, 1);
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    assert_taken(s, serving_pull(s, 1, 1));
    serving_free(s);
}

static void a_third_pull_ahead_is_refused(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    assert_taken(s, serving_pull(s, 1, 1));
    assert_taken(s, serving_pull(s, 1, 2));
    tn_frame f = serving_pull(s, 1, 3);
    assert_refused(s, &f, TN_REFUSAL_FULL);
    serving_run(s);
    assert_refused(s, &f, TN_REFUSAL_FULL);
    assert_taken(s, serving_pull(s, 0, 1));
    serving_run(s);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        assert_taken(s, serving_push(s, r, r == 0 ? 2 : 3, 1)); /* the refused number is free */
    }
    serving_run(s); /* the first step is over */
    assert_taken(s, serving_pull(s, 1, 4));
    serving_free(s);
}

static void a_push_before_its_pull_or_beside_another_is_refused(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    tn_frame f = serving_push(s, 1, 1, 1);
    assert_refused(s, &f, TN_REFUSAL_FULL);
    pull_both(s, 1);
    assert_taken(s, serving_push(s, 1, 2, 1));
    f = serving_push(s, 1, 3, 1);
    assert_refused(s, &f, TN_REFUSAL_FULL);
    serving_run(s);
    assert_refused(s, &f, TN_REFUSAL_FULL); /* rank 0 has not pushed */
    serving_free(s);
}

static void a_push_of_other_keys_or_lengths_is_refused(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    pull_both(s, 1);
    for (uint32_t count = 0; count < TN_FRAME_COUNTS; count++) {
        tn_frame f = serving_push(s, 1, 2, 1);
        f.count[count]--;
        assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    }
    tn_frame f = serving_push(s, 1, 2, 1);
    tn_store_f64(s->payload + 8, -1); /* the factor of the rate */
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    f = serving_push(s, 1, 2, 1);
    f.count[TN_DENSE_FLOATS] = 0; /* nothing for the dense vector is fine */
    assert_taken(s, f);
    serving_free(s);
}

static void a_gradient_that_is_not_finite_is_refused_as_diverged(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    const size_t last[] = {0, SERVING_FLOATS - 1, SERVING_FLOATS, SERVING_FLOATS + SERVING_OWN - 1};
    const float bad[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    pull_both(s, 1);
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            tn_frame f = serving_push(s, 1, 2, 1);
            memcpy(s->payload + TN_PUSH_PARAMS + last[i] * sizeof(float), &bad[k], sizeof(float));
            assert_refused(s, &f, TN_REFUSAL_DIVERGED);
        }
    }
    assert_taken(s, serving_push(s, 1, 2, 1));
    serving_free(s);
}

static void a_norm_is_one_number_that_is_not_negative(void **state)
{
    (void)state;
    serving *s = serving_new(1);
    pull_both(s, 1);
    tn_frame f = serving_norm(s, 1, 2, 1);
    f.count[TN_DENSE_FLOATS] = 2;
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    f = serving_norm(s, 1, 2, -1);
    assert_refused(s, &f, TN_REFUSAL_DIVERGED);
    f = serving_norm(s, 1, 2, (double)NAN);
    assert_refused(s, &f, TN_REFUSAL_DIVERGED);
    assert_taken(s, serving_norm(s, 1, 2, 0));
    serving_free(s);
}

/* Whatever allocation fails, the request is as if it had not come, or is taken. */
static void without_memory_a_request_is_as_if_it_had_not_come(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < 2; kind++) {
        uint32_t failures = 0;
        for (uint64_t nth = 1;; nth++) {
            serving *s = serving_new((double)INFINITY);
            if (kind == 1) {
                pull_both(s, 1);
            }
            const uint32_t n = s->n_answers;
            const tn_frame f = kind == 0 ? serving_pull(s, 1, 1) : serving_push(s, 1, 2, 1);
            tn_alloc_fail_at(nth);
            serving_take(s, f);
            tn_alloc_fail_at(0);
            assert_int_equal(s->n_answers, n); /* no refusal: it is sent again */
            bool taken = tn_once_ask(&s->once[1], f.incarnation, f.sequence) == TN_ONCE_REPEATED;
            if (!taken) {
                failures++;
                assert_taken(s, kind == 0 ? serving_pull(s, 1, 1) : serving_push(s, 1, 2, 1));
            }
            serving_free(s);
            if (taken) {
                break;
            }
        }
        assert_true(failures >= 1);
    }
}

static void a_refusal_without_memory_is_silence(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    tn_frame f = serving_pull(s, 1, 1);
    f.incarnation++;
    tn_alloc_fail_at(1);
    serving_take(s, f);
    tn_alloc_fail_at(0);
    assert_int_equal(s->n_answers, 0);
    serving_take(s, f);
    serving_refused(s, 1, &f, TN_REFUSAL_INCARNATION);
    serving_free(s);
}

static void every_request_that_is_taken_rings_the_bell(void **state)
{
    (void)state;
    serving *s = serving_new((double)INFINITY);
    const uint64_t before = tn_bell_rings(&s->bell);
    assert_taken(s, serving_pull(s, 1, 1));
    assert_int_equal(tn_bell_rings(&s->bell), before + 1);
    assert_taken(s, serving_pull(s, 1, 1)); /* again: it may want its answer again */
    assert_int_equal(tn_bell_rings(&s->bell), before + 2);
    tn_frame f = serving_push(s, 1, 5, 1);
    f.count[TN_KEYS]++;
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    assert_int_equal(tn_bell_rings(&s->bell), before + 2);
    serving_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_of_another_start_or_too_far_ahead_is_refused),
        cmocka_unit_test(a_damaged_pull_is_refused),
        cmocka_unit_test(a_third_pull_ahead_is_refused),
        cmocka_unit_test(a_push_before_its_pull_or_beside_another_is_refused),
        cmocka_unit_test(a_push_of_other_keys_or_lengths_is_refused),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_refused_as_diverged),
        cmocka_unit_test(a_norm_is_one_number_that_is_not_negative),
        cmocka_unit_test(without_memory_a_request_is_as_if_it_had_not_come),
        cmocka_unit_test(a_refusal_without_memory_is_silence),
        cmocka_unit_test(every_request_that_is_taken_rings_the_bell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
