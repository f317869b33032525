/* test_allgather.c - messages of an exchange, in any order, one exchange early, and broken ones. */
#include "cluster/sync/allgather.h"

#include "cluster/wire/request_headers.h"
#include "support/test.h"

enum { RANKS = 3, NUMBERS = 2 };

static uint32_t n_closed;

static int count_close(zmq_msg_t *message)
{
    (void)message;
    n_closed++;
    return 0;
}

/* A SHARE of `rank` that says n times `value`; the bytes stay in `payload`. */
static tn_in_message *incoming(uint32_t rank, uint64_t step, uint32_t code, uint32_t n,
                               char *payload, double value)
{
    tn_in_message *l = tn_try_alloc(1, sizeof *l, "a letter", NULL);
    assert_non_null(l);
    assert_true(n <= NUMBERS + 1);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(payload + i * sizeof value, &value, sizeof value);
    }
    l->frame.type = TN_FRAME_SHARE;
    l->frame.rank = rank;
    l->frame.step = step;
    l->frame.code = code;
    l->frame.count[TN_DENSE_FLOATS] = n;
    l->frame.payload = payload;
    l->frame.bytes = n * sizeof value;
    l->from = rank;
    l->close = count_close;
    return l;
}

static tn_arena *arena;

GROUP_SET_UP
{
    arena = tn_arena_new(1 << 12);
}

GROUP_TEAR_DOWN
{
    tn_arena_free(arena);
}

static tn_allgather *open_gather(void)
{
    n_closed = 0;
    return tn_allgather_new(arena, 1, RANKS);
}

static void begin(tn_allgather *g, uint64_t step, uint32_t code, double value)
{
    const double own[NUMBERS] = {value, value};
    assert_int_equal(tn_allgather_begin(g, step, code, own, NUMBERS, NULL), TN_OK);
}

static void assert_all(const tn_allgather *g, const double *want)
{
    assert_int_equal(*tn_allgather_count(g), RANKS);
    assert_int_equal(tn_allgather_waits_for(g), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint32_t i = 0; i < NUMBERS; i++) {
            assert_true(tn_allgather_all(g)[r * NUMBERS + i] == want[r]);
        }
    }
}

TEST(numbers_stand_in_the_order_of_ranks_however_they_come)
{
    char bytes[4][32];
    tn_allgather *g = open_gather();
    assert_true(tn_allgather_put(g, incoming(2, 7, 1, NUMBERS, bytes[0], 20)));
    begin(g, 7, 1, 10);
    assert_int_equal(tn_allgather_waits_for(g), 1);
    assert_int_equal(tn_allgather_poll(g, NULL), TN_OK);
    assert_int_equal(*tn_allgather_count(g), 2);
    assert_int_equal(tn_allgather_waits_for(g), 1);
    assert_true(tn_allgather_put(g, incoming(0, 7, 1, NUMBERS, bytes[1], 5)));
    assert_int_equal(tn_allgather_poll(g, NULL), TN_OK);
    assert_all(g, (const double[]){5, 10, 20});
    assert_int_equal(n_closed, 2);
    tn_allgather_free(g);
}

TEST(what_is_one_exchange_early_waits_for_it)
{
    char bytes[4][32];
    tn_allgather *g = open_gather();
    begin(g, 7, 1, 1);
    assert_true(tn_allgather_put(g, incoming(2, 7, 2, NUMBERS, bytes[0], 22)));
    assert_true(tn_allgather_put(g, incoming(2, 7, 1, NUMBERS, bytes[1], 21)));
    assert_true(tn_allgather_put(g, incoming(0, 7, 1, NUMBERS, bytes[2], 1)));
    assert_int_equal(tn_allgather_poll(g, NULL), TN_OK);
    assert_all(g, (const double[]){1, 1, 21});
    begin(g, 7, 2, 2);
    assert_true(tn_allgather_put(g, incoming(0, 7, 2, NUMBERS, bytes[3], 2)));
    assert_int_equal(tn_allgather_poll(g, NULL), TN_OK);
    assert_all(g, (const double[]){2, 2, 22});
    tn_allgather_free(g);
}

TEST(a_third_letter_of_a_rank_is_not_kept)
{
    char bytes[3][32];
    tn_allgather *g = open_gather();
    assert_true(tn_allgather_put(g, incoming(2, 7, 1, NUMBERS, bytes[0], 1)));
    assert_true(tn_allgather_put(g, incoming(2, 7, 2, NUMBERS, bytes[1], 1)));
    tn_in_message *third = incoming(2, 7, 3, NUMBERS, bytes[2], 1);
    assert_false(tn_allgather_put(g, third));
    tn_in_message_close(third);
    begin(g, 7, 1, 1);
    assert_int_equal(tn_allgather_poll(g, NULL), TN_OK);
    assert_true(
        tn_allgather_put(g, incoming(2, 7, 3, NUMBERS, bytes[2], 1))); /* there is room again */
    tn_allgather_free(g);
    assert_int_equal(n_closed, 4);
}

static void refuse(tn_in_message *first, tn_in_message *second)
{
    tn_error err = {0};
    tn_allgather *g = open_gather();
    begin(g, 7, 1, 1);
    assert_true(tn_allgather_put(g, first));
    assert_true(second == NULL || tn_allgather_put(g, second));
    assert_int_equal(tn_allgather_poll(g, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 2 sent statistics that nobody can use");
    tn_allgather_free(g);
    assert_int_equal(n_closed, second != NULL ? 2 : 1);
}

TEST(numbers_that_cannot_be_are_told_with_their_rank)
{
    char bytes[2][32];
    refuse(incoming(2, 7, 1, NUMBERS + 1, bytes[0], 1), NULL);
    refuse(incoming(2, 7, 1, NUMBERS, bytes[0], (double)INFINITY), NULL);
    refuse(incoming(2, 7, 1, NUMBERS, bytes[0], 1), incoming(2, 7, 1, NUMBERS, bytes[1], 1));
}

TEST(an_own_number_that_is_not_finite_is_not_sent)
{
    const double own[NUMBERS] = {0, (double)NAN};
    tn_error err = {0};
    tn_allgather *g = open_gather();
    assert_int_equal(tn_allgather_begin(g, 7, 1, own, NUMBERS, &err), TN_E_DIVERGED);
    assert_non_null(strstr(err.text, "not finite at step 8"));
    tn_allgather_free(g);
    tn_allgather_free(NULL);
}
