/* test_sync_server.c - an owner's steps by hand: when what is answered, and what to those who ask
 * again.
 */
#include "serving.h"
#include "support/test.h"

#include "base/core/bytes.h"

CLOSER(serving_free);

static const double no_clip = (double)INFINITY;

static void assert_floats(const char *payload, size_t n, float expected)
{
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, payload + i * sizeof x, sizeof x);
        assert_true(x == expected);
    }
}

/* The rows of the three keys as a rank got them. */
static void assert_rows(const served *a, uint64_t first, float expected)
{
    tn_rows_params p;
    assert_non_null(a);
    assert_int_equal(a->frame.type, TN_FRAME_ROWS);
    assert_int_equal(tn_rows_params_get(&p, a->payload), TN_DROP_NONE);
    assert_int_equal(p.first, first);
    assert_int_equal(p.examples, 8);
    assert_true(p.weight_sum == 8);
    assert_int_equal(a->frame.count[TN_KEYS], SERVING_KEYS);
    assert_int_equal(a->frame.count[TN_ROW_FLOATS], SERVING_FLOATS);
    assert_floats(a->payload + TN_ROWS_PARAMS, SERVING_FLOATS, expected);
}

static void assert_weights(const served *a, float expected)
{
    assert_non_null(a);
    assert_int_equal(a->frame.type, TN_FRAME_DENSE);
    assert_int_equal(a->frame.count[TN_DENSE_FLOATS], SERVING_OWN);
    assert_floats(a->payload + TN_DENSE_PARAMS, SERVING_OWN, expected);
}

static void pull_both(serving *s, uint64_t sequence)
{
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        serving_take(s, serving_pull(s, r, sequence));
    }
    serving_run(s);
}

static void push_both(serving *s, uint64_t sequence)
{
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        serving_take(s, serving_push(s, r, sequence, .5F));
    }
    serving_run(s);
}

TEST(a_step_is_answered_when_all_have_asked)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    assert_int_equal(tn_sync_server_waits_for(s->serve), 1);
    serving_take(s, serving_pull(s, 1, 1));
    serving_run(s);
    assert_int_equal(s->n_answers, 0);
    assert_int_equal(tn_sync_server_waits_for(s->serve), 1); /* rank 0 has not asked */
    serving_take(s, serving_pull(s, 0, 1));
    serving_run(s);
    assert_int_equal(s->n_answers, 2);
    assert_rows(serving_answer(s, 0, 1), 0, 0);
    assert_rows(serving_answer(s, 1, 1), 4, 0); /* behind the four rows of rank 0 */
    serving_take(s, serving_push(s, 0, 2, .5F));
    serving_run(s);
    assert_int_equal(s->n_answers, 2);
    assert_int_equal(tn_sync_server_waits_for(s->serve), 2); /* rank 1 has not pushed */
    serving_take(s, serving_push(s, 1, 2, .25F));
    serving_run(s);
    assert_int_equal(s->n_answers, 4);
    assert_weights(serving_answer(s, 0, 2), -.75F);
    assert_weights(serving_answer(s, 1, 2), -.75F);
    pull_both(s, 3);
    assert_rows(serving_answer(s, 0, 3), 0, -.75F);
    assert_int_equal(s->n_norms, 0); /* nobody asks for norms */
}

TEST(the_norm_goes_with_the_weights)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    tn_dense_params p;
    pull_both(s, 1);
    push_both(s, 2); /* all gradients are 1 */
    assert_int_equal(tn_dense_params_get(&p, serving_answer(s, 1, 2)->payload), TN_DROP_NONE);
    assert_true(fabs(p.grad_norm - sqrt(SERVING_FLOATS + SERVING_OWN)) < 1e-9);
    assert_int_equal(p.staleness, 0);
}

TEST(a_pull_may_come_a_step_early)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    pull_both(s, 1);
    pull_both(s, 2);
    assert_int_equal(s->n_answers, 2);
    push_both(s, 3);
    assert_int_equal(s->n_answers, 6); /* weights, and rows after the update */
    assert_rows(serving_answer(s, 1, 2), 4, -1);
    push_both(s, 4);
    assert_weights(serving_answer(s, 1, 4), -2);
}

TEST(c5_a_repeated_pull_gets_the_same_rows_until_its_push)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    serving_take(s, serving_pull(s, 1, 1));
    serving_take(s, serving_pull(s, 1, 1)); /* nothing to answer yet */
    serving_run(s);
    assert_int_equal(s->n_answers, 0);
    serving_take(s, serving_pull(s, 0, 1));
    serving_run(s);
    assert_int_equal(s->n_answers, 2);
    const served first = *serving_answer(s, 1, 1);
    serving_take(s, serving_pull(s, 1, 1));
    serving_run(s);
    assert_int_equal(s->n_answers, 3);
    const served *again = serving_answer(s, 1, 1);
    assert_int_equal(again->frame.bytes, first.frame.bytes);
    assert_memory_equal(again->payload, first.payload, first.frame.bytes);
    serving_take(s, serving_push(s, 1, 2, .5F));
    serving_take(s, serving_pull(s, 1, 1)); /* late: the rank had its rows, or it had not pushed */
    serving_run(s);
    assert_int_equal(s->n_answers, 3);
}

TEST(c5_a_repeated_push_counts_once_and_gets_the_weights_again)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    pull_both(s, 1);
    serving_take(s, serving_push(s, 1, 2, .5F));
    serving_take(s, serving_push(s, 1, 2, .5F)); /* not due yet */
    serving_run(s);
    assert_int_equal(s->n_answers, 2);
    serving_take(s, serving_push(s, 0, 2, .5F));
    serving_run(s);
    assert_int_equal(s->n_answers, 4);
    for (uint32_t i = 1; i <= 3; i++) {
        serving_take(s, serving_push(s, 1, 2, .5F));
        serving_run(s);
        assert_int_equal(s->n_answers, 4 + i);
        assert_weights(&s->answer[3 + i], -1);
    }
    pull_both(s, 3);
    assert_rows(serving_answer(s, 1, 3), 4, -1);
    push_both(s, 4);
    const uint32_t n = s->n_answers;
    serving_take(s, serving_push(s, 1, 2, .5F)); /* of the step before: nobody waits for it */
    serving_run(s);
    assert_int_equal(s->n_answers, n);
}

/* Whoever waits for weights cannot meet the others: it gets them though no step is being made. */
TEST(c5_what_is_repeated_while_the_worker_rests_is_answered_at_once)
{
    serving *s FREED(serving_free) = serving_new(1e6);
    pull_both(s, 1);
    push_both(s, 2);
    const double own = 4 * (SERVING_FLOATS + SERVING_OWN);
    serving_take(s, serving_norm(s, 1, 3, own));
    serving_take(s, serving_push(s, 1, 2, .5F)); /* is heard before the rest begins */
    assert_int_equal(tn_sync_server_rest(s->serve, NULL, NULL), TN_OK);
    assert_int_equal(s->n_answers, 5);
    serving_take(s, serving_push(s, 1, 2, .5F));
    assert_int_equal(s->n_answers, 6);
    assert_weights(&s->answer[5], s->weights[0]);
    serving_take(s, serving_norm(s, 1, 3, own));
    assert_int_equal(s->n_answers, 7);
    assert_int_equal(s->answer[6].frame.type, TN_FRAME_NOTED);
    serving_take(s, serving_pull(s, 1, 4)); /* a new one waits, also when it comes again */
    serving_take(s, serving_pull(s, 1, 4));
    assert_int_equal(s->n_answers, 7);
    tn_sync_server_wake(s->serve);
    serving_take(s, serving_pull(s, 0, 4));
    assert_int_equal(s->n_answers, 7);
    serving_run(s);
    assert_int_equal(s->n_answers, 9);
}

TEST(with_a_global_clip_owners_tell_each_other_their_norm)
{
    const double own = 4 * (SERVING_FLOATS + SERVING_OWN); /* two gradients of 1 */
    serving *s FREED(serving_free) = serving_new(1e6);
    pull_both(s, 1);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        serving_take(s, serving_push(s, r, 2, 1));
    }
    serving_run(s);
    assert_int_equal(s->n_answers, 2);
    assert_int_equal(s->n_norms, 1);
    assert_true(fabs(s->norm2 - own) < 1e-9);
    for (uint32_t i = 0; i < 2; i++) { /* the second time is a repetition */
        serving_take(s, serving_norm(s, 1, 3, 100 - own));
    }
    serving_run(s);
    assert_int_equal(s->answer[2].frame.type, TN_FRAME_NOTED);
    assert_int_equal(serving_answer(s, 1, 3)->frame.type, TN_FRAME_NOTED);
    assert_int_equal(s->n_answers, 6);
    tn_dense_params p;
    assert_int_equal(tn_dense_params_get(&p, serving_answer(s, 0, 2)->payload), TN_DROP_NONE);
    assert_true(fabs(p.grad_norm - 10) < 1e-9); /* of both owners */
    assert_weights(serving_answer(s, 0, 2), -2);
}

TEST(a_norm_that_is_not_finite_is_told_to_all)
{
    serving *s FREED(serving_free) = serving_new(1e6);
    pull_both(s, 1);
    push_both(s, 2);
    serving_take(s, serving_norm(s, 1, 3, (double)INFINITY));
    assert_int_equal(tn_sync_server_run(s->serve, NULL, NULL), TN_E_DIVERGED);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        assert_int_equal(serving_answer(s, r, 2)->frame.type, TN_FRAME_REFUSED);
        assert_int_equal(serving_answer(s, r, 2)->frame.code, TN_REFUSAL_DIVERGED);
    }
    assert_true(s->weights[0] == 0);
}

TEST(a_norm_that_is_not_due_ends_the_run)
{
    serving *s FREED(serving_free) = serving_new(1e6);
    tn_error err = {0};
    serving_take(s, serving_norm(s, 1, 1, 1));
    assert_int_equal(tn_sync_server_run(s->serve, NULL, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 1 sent a norm that is not due in step 0");
}

TEST(a_meeting_is_announced_to_every_rank)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    tn_frame f = serving_pull(s, 0, 1);
    f.code = TN_MEET;
    serving_take(s, f);
    serving_take(s, serving_pull(s, 1, 1));
    serving_run(s);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        assert_int_equal(serving_answer(s, r, 1)->frame.code, TN_MEET);
    }
    push_both(s, 2);
    pull_both(s, 3);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        assert_int_equal(serving_answer(s, r, 3)->frame.code, 0);
    }
}

static void take_empty(serving *s, uint32_t rank, uint64_t sequence, uint64_t examples)
{
    tn_frame f = serving_pull_keys(s, rank, sequence, s->key, examples > 0 ? SERVING_KEYS : 0);
    memcpy(s->payload, &(tn_pull_params){.examples = examples, .weight_sum = 0}, TN_PULL_PARAMS);
    serving_take(s, f);
}

TEST(a_batch_that_weighs_nothing_is_answered_without_rows)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    tn_rows_params p;
    for (uint64_t examples = 0; examples <= 3; examples += 3) {
        const uint64_t sequence = 1 + examples;
        for (uint32_t r = 0; r < SERVING_RANKS; r++) {
            take_empty(s, r, sequence, examples);
        }
        serving_run(s);
        const served *a = serving_answer(s, 1, sequence);
        assert_non_null(a);
        assert_int_equal(tn_rows_params_get(&p, a->payload), TN_DROP_NONE);
        assert_int_equal(p.examples, 2 * examples);
        assert_true(p.weight_sum == 0);
        assert_int_equal(a->frame.bytes, TN_ROWS_PARAMS);
        assert_int_equal(a->frame.count[TN_KEYS], 0);
    }
    for (uint32_t i = 0; i < 2; i++) { /* whose answer got lost is told again that all is over */
        const uint32_t n = s->n_answers;
        take_empty(s, 1, 4, 3);
        serving_run(s);
        assert_int_equal(s->n_answers, n + 1);
        assert_int_equal(tn_rows_params_get(&p, s->answer[n].payload), TN_DROP_NONE);
        assert_int_equal(p.examples, 6);
        assert_int_equal(s->answer[n].frame.bytes, TN_ROWS_PARAMS);
    }
    assert_int_equal(tn_table_rows(s->shard.table), 0);
    pull_both(s, 6); /* and training goes on */
    assert_rows(serving_answer(s, 1, 6), 4, 0);
}

/* C4: a rank that has no data takes part in everything. */
TEST(c4_a_rank_without_data_pulls_and_pushes_nothing)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    take_empty(s, 1, 1, 0);
    serving_take(s, serving_pull(s, 0, 1));
    serving_run(s);
    assert_int_equal(serving_answer(s, 1, 1)->frame.count[TN_ROW_FLOATS], 0);
    assert_int_equal(serving_answer(s, 0, 1)->frame.count[TN_ROW_FLOATS], SERVING_FLOATS);
    tn_frame f = serving_push(s, 1, 2, 7);
    f.count[TN_KEYS] = f.count[TN_ROW_FLOATS] = f.count[TN_DENSE_FLOATS] = 0;
    f.bytes = TN_PUSH_PARAMS;
    serving_take(s, f);
    serving_take(s, serving_push(s, 0, 2, .5F));
    serving_run(s);
    assert_weights(serving_answer(s, 1, 2), -.5F);
}

TEST(answers_are_written_as_the_request_wants_them)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    float row[SERVING_FLOATS];
    pull_both(s, 1);
    push_both(s, 2);
    tn_frame f = serving_pull(s, 1, 3);
    f.flags = tn_frame_flags(TN_VALUES_F16, TN_VALUES_F32);
    serving_take(s, f);
    serving_take(s, serving_pull(s, 0, 3));
    serving_run(s);
    const served *a = serving_answer(s, 1, 3);
    assert_int_equal(tn_frame_row_values(a->frame.flags), TN_VALUES_F16);
    assert_int_equal(a->frame.bytes, TN_ROWS_PARAMS + 2 * SERVING_FLOATS);
    assert_int_equal(
        tn_values_read(TN_VALUES_F16, a->payload + TN_ROWS_PARAMS, SERVING_FLOATS, row),
        TN_VALUES_FINITE);
    assert_true(row[0] == -1 && row[SERVING_FLOATS - 1] == -1);
    assert_rows(serving_answer(s, 0, 3), 0, -1); /* whole for who did not ask */
}

TEST(what_16_bits_cannot_hold_is_refused_as_diverged)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    pull_both(s, 1);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        serving_take(s, serving_push(s, r, 2, 40000)); /* each of them fits */
    }
    serving_run(s);
    tn_frame f = serving_pull(s, 1, 3);
    f.flags = tn_frame_flags(TN_VALUES_F16, TN_VALUES_F32);
    serving_take(s, f);
    serving_take(s, serving_pull(s, 0, 3));
    serving_run(s);
    assert_int_equal(serving_answer(s, 1, 3)->frame.type, TN_FRAME_REFUSED);
    assert_int_equal(serving_answer(s, 1, 3)->frame.code, TN_REFUSAL_DIVERGED);
    assert_rows(serving_answer(s, 0, 3), 0, -80000);
}

TEST(weights_that_are_not_finite_are_refused_as_diverged)
{
    serving *s FREED(serving_free) = serving_new(no_clip);
    pull_both(s, 1);
    s->weights[3] = (float)INFINITY;
    push_both(s, 2);
    assert_int_equal(serving_answer(s, 0, 2)->frame.type, TN_FRAME_REFUSED);
    assert_int_equal(serving_answer(s, 0, 2)->frame.code, TN_REFUSAL_DIVERGED);
}

/* Every allocation of making an owner, and of a step, fails once. */
TEST(memory_that_runs_out_is_told)
{
    serving *s = serving_new(no_clip);
    const tn_reply_path reply = {.pool = s->pool};
    uint64_t nth = 0;
    tn_status status = TN_E_MEMORY;
    while (status != TN_OK) {
        tn_sync_server *made = NULL;
        tn_alloc_fail_at(++nth);
        status = tn_sync_server_new(&made, &s->exchange, &reply, NULL, NULL);
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || (status == TN_E_MEMORY && made == NULL));
        tn_sync_server_free(made);
    }
    assert_true(nth > 1);
    serving_free(s);
    status = TN_E_MEMORY;
    for (nth = 1; status != TN_OK; nth++) {
        s = serving_new(no_clip);
        serving_take(s, serving_pull(s, 0, 1));
        serving_take(s, serving_pull(s, 1, 1));
        tn_alloc_fail_at(nth);
        status = tn_sync_server_run(s->serve, NULL, NULL);
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || status == TN_E_MEMORY);
        serving_free(s);
    }
    assert_true(nth > 4);
}

/* The request is refused, and as it should be it is taken afterwards under the same number. */
static void assert_refused(serving *s, const tn_frame *request, tn_refusal code)
{
    const uint32_t n = s->n_answers;
    serving_take(s, *request);
    serving_refused(s, n + 1, request, code);
    assert_int_equal(
        tn_dedup_check(&s->dedup[request->rank], request->incarnation, request->sequence),
        TN_DEDUP_APPLY);
}

static void assert_taken(serving *s, tn_frame request)
{
    const uint32_t n = s->n_answers;
    serving_take(s, request);
    assert_int_equal(s->n_answers, n);
    assert_int_equal(tn_dedup_check(&s->dedup[request.rank], request.incarnation, request.sequence),
                     TN_DEDUP_REPEATED);
}

static void take_both_pulls(serving *s, uint64_t sequence)
{
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        assert_taken(s, serving_pull(s, r, sequence));
    }
    serving_run(s);
    assert_int_equal(serving_answer(s, 1, sequence)->frame.type, TN_FRAME_ROWS);
}

TEST(what_is_of_another_start_or_too_far_ahead_is_refused)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
    tn_frame f = serving_pull(s, 1, 1);
    f.incarnation++;
    serving_take(s, f);
    serving_refused(s, 1, &f, TN_REFUSAL_INCARNATION);
    f = serving_pull(s, 1, TN_DEDUP_WINDOW + 1);
    serving_take(s, f);
    serving_refused(s, 2, &f, TN_REFUSAL_BEYOND);
    f = serving_pull(s, 1, 0);
    serving_take(s, f);
    serving_refused(s, 3, &f, TN_REFUSAL_BEYOND);
    assert_taken(s, serving_pull(s, 1, 1));
}

TEST(a_damaged_pull_is_refused)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
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
}

TEST(a_third_pull_ahead_is_refused)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
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
}

TEST(a_push_before_its_pull_or_beside_another_is_refused)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
    tn_frame f = serving_push(s, 1, 1, 1);
    assert_refused(s, &f, TN_REFUSAL_FULL);
    take_both_pulls(s, 1);
    assert_taken(s, serving_push(s, 1, 2, 1));
    f = serving_push(s, 1, 3, 1);
    assert_refused(s, &f, TN_REFUSAL_FULL);
    serving_run(s);
    assert_refused(s, &f, TN_REFUSAL_FULL); /* rank 0 has not pushed */
}

TEST(a_push_of_other_keys_or_lengths_is_refused)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
    take_both_pulls(s, 1);
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
}

TEST(a_gradient_that_is_not_finite_is_refused_as_diverged)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
    const size_t last[] = {0, SERVING_FLOATS - 1, SERVING_FLOATS, SERVING_FLOATS + SERVING_OWN - 1};
    const float bad[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    take_both_pulls(s, 1);
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            tn_frame f = serving_push(s, 1, 2, 1);
            memcpy(s->payload + TN_PUSH_PARAMS + last[i] * sizeof(float), &bad[k], sizeof(float));
            assert_refused(s, &f, TN_REFUSAL_DIVERGED);
        }
    }
    assert_taken(s, serving_push(s, 1, 2, 1));
}

TEST(a_norm_is_one_number_that_is_not_negative)
{
    serving *s FREED(serving_free) = serving_new(1);
    take_both_pulls(s, 1);
    tn_frame f = serving_norm(s, 1, 2, 1);
    f.count[TN_DENSE_FLOATS] = 2;
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    f = serving_norm(s, 1, 2, -1);
    assert_refused(s, &f, TN_REFUSAL_DIVERGED);
    f = serving_norm(s, 1, 2, (double)NAN);
    assert_refused(s, &f, TN_REFUSAL_DIVERGED);
    assert_taken(s, serving_norm(s, 1, 2, 0));
}

/* Whatever allocation fails, the request is as if it had not come, or is taken. */
TEST(without_memory_a_request_is_as_if_it_had_not_come)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        uint32_t failures = 0;
        for (uint64_t nth = 1;; nth++) {
            serving *s = serving_new((double)INFINITY);
            if (kind == 1) {
                take_both_pulls(s, 1);
            }
            const uint32_t n = s->n_answers;
            const tn_frame f = kind == 0 ? serving_pull(s, 1, 1) : serving_push(s, 1, 2, 1);
            tn_alloc_fail_at(nth);
            serving_take(s, f);
            tn_alloc_fail_at(0);
            assert_int_equal(s->n_answers, n); /* no refusal: it is sent again */
            bool taken =
                tn_dedup_check(&s->dedup[1], f.incarnation, f.sequence) == TN_DEDUP_REPEATED;
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

TEST(a_refusal_without_memory_is_silence)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
    tn_frame f = serving_pull(s, 1, 1);
    f.incarnation++;
    tn_alloc_fail_at(1);
    serving_take(s, f);
    tn_alloc_fail_at(0);
    assert_int_equal(s->n_answers, 0);
    serving_take(s, f);
    serving_refused(s, 1, &f, TN_REFUSAL_INCARNATION);
}

TEST(every_request_that_is_taken_rings_the_bell)
{
    serving *s FREED(serving_free) = serving_new((double)INFINITY);
    const uint64_t before = tn_wakeup_count(&s->replies.wakeup);
    assert_taken(s, serving_pull(s, 1, 1));
    assert_int_equal(tn_wakeup_count(&s->replies.wakeup), before + 1);
    assert_taken(s, serving_pull(s, 1, 1)); /* again: it may want its answer again */
    assert_int_equal(tn_wakeup_count(&s->replies.wakeup), before + 2);
    tn_frame f = serving_push(s, 1, 5, 1);
    f.count[TN_KEYS]++;
    assert_refused(s, &f, TN_REFUSAL_DAMAGED);
    assert_int_equal(tn_wakeup_count(&s->replies.wakeup), before + 2);
}
