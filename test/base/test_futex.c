/* test_futex.c - who waits for a word sees it change, awake or asleep. */
#include "support/test.h"

#include "base/thread/futex.h"
#include "base/thread/threads.h"

typedef struct shared {
    _Atomic uint32_t word;
    _Atomic uint32_t rounds; /* that the sleeper has come to */
} shared;

static void a_word_that_stays_is_given_up_on(void **state)
{
    (void)state;
    _Atomic uint32_t word = 7;
    assert_false(tn_word_changes(&word, 7, 100));
    assert_false(tn_word_changes(&word, 7, 0));
    assert_true(tn_word_changes(&word, 6, 0));
}

static void nobody_sleeps_on_a_word_that_has_changed(void **state)
{
    (void)state;
    _Atomic uint32_t word = 7;
    tn_word_sleep(&word, 6);
    tn_word_wake(&word); /* and nobody is there to be woken */
    assert_int_equal(word, 7);
}

static tn_status sleep_for_each(void *arg, tn_error *err)
{
    (void)err;
    shared *s = arg;
    for (uint32_t seen = 0; seen < 200; seen++) {
        atomic_store(&s->rounds, seen + 1);
        while (atomic_load(&s->word) == seen) {
            tn_word_sleep(&s->word, seen);
        }
    }
    return TN_OK;
}

static void a_sleeper_is_woken_by_every_change(void **state)
{
    (void)state;
    tn_error err = {0};
    shared s = {0};
    tn_thread *thread = NULL;
    assert_int_equal(tn_thread_start(&thread, "sleeper", sleep_for_each, &s, &err), TN_OK);
    for (uint32_t next = 1; next <= 200; next++) {
        while (atomic_load(&s.rounds) < next) { /* then it sleeps or is about to */
            (void)tn_word_changes(&s.rounds, next - 1, 10);
        }
        atomic_store(&s.word, next);
        tn_word_wake(&s.word);
    }
    assert_int_equal(tn_thread_join(thread, &err), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_that_stays_is_given_up_on),
        cmocka_unit_test(nobody_sleeps_on_a_word_that_has_changed),
        cmocka_unit_test(a_sleeper_is_woken_by_every_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
