/* test_params.c - slices of the flat vector and first values. */
#include "nn/graph/params.h"
#include "nn/nets.h"
#include "support/test.h"

CLOSER(tn_params_free);

static const tn_init glorot = {.kind = TN_INIT_GLOROT_UNIFORM};
static const tn_init zero = {.kind = TN_INIT_CONSTANT};

static uint32_t bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static void seal(tn_params *p)
{
    assert_int_equal(tn_params_seal(p, NULL), TN_OK);
}

TEST(v17_dense_init)
{
    tn_params *p FREED(tn_params_free) = tn_params_new();
    (void)tn_params_add(p, "other", 3, 5, true, glorot);
    uint32_t i = tn_params_add(p, "deep.1.W", 429, 400, true, glorot);
    seal(p);
    tn_params_init(p, 42);
    const tn_real *w = tn_params_weights(p) + tn_params_get(p, i)->at;
    static const uint32_t want[] = {0x3d916fdf, 0xbd45be83, 0x3d7bf7d6};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(bits((float)w[k]), want[k]);
    }
}

TEST(v17_row_init)
{
    uint64_t s = tn_stream3(42, TN_RNG_ROW, tn_name64("deep"), 0x0123456789abcdef);
    static const struct {
        tn_init init;
        uint32_t want[4];
    } cases[] = {
        {{TN_INIT_UNIFORM, -.1, .1}, {0xbd1e6e04, 0x3d5dad65, 0x3dabd360, 0x3d6a536e}},
        {{TN_INIT_NORMAL, 0, .01}, {0xbba5a44d, 0x3bf2c174, 0x3c65a735, 0x3c01e2ef}},
        {{TN_INIT_TRUNCATED, 0, .01}, {0xbb9d7ad5, 0x3be5a459, 0x3c525a18, 0x3bf5626a}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (uint64_t k = 0; k < 4; k++) {
            float x = tn_init_value(&cases[c].init, s, k, 1, 1);
            assert_int_equal(bits(x), cases[c].want[k]);
        }
    }
}

TEST(slices_begin_on_cache_lines_and_gaps_are_0)
{
    tn_params *p FREED(tn_params_free) = tn_params_new();
    for (uint32_t i = 1; i < 20; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%u", i);
        assert_int_equal(tn_params_add(p, name, i, 3, true, glorot), i - 1);
    }
    seal(p);
    tn_params_init(p, 1);
    size_t end = 0;
    for (uint32_t i = 0; i < tn_params_count(p); i++) {
        const tn_param_slice *s = tn_params_get(p, i);
        assert_int_equal(s->at % 16, 0);
        for (; end < s->at; end++) {
            assert_true(tn_params_weights(p)[end] <= 0 && tn_params_weights(p)[end] >= 0);
        }
        end = s->at + (size_t)s->rows * s->cols;
    }
    assert_true(tn_params_size(p) >= end);
}

TEST(the_same_name_is_the_same_slice)
{
    tn_params *p FREED(tn_params_free) = tn_params_new();
    uint32_t a = tn_params_add(p, "W", 4, 5, true, glorot);
    assert_int_equal(tn_params_add(p, "W", 4, 5, true, glorot), a);
    assert_int_equal(tn_params_count(p), 1);
    assert_null(tn_params_find(p, "V"));
    assert_ptr_equal(tn_params_find(p, "W"), tn_params_get(p, a));
}

TEST(a_frozen_bias_still_counts_and_a_running_value_never)
{
    tn_params *p FREED(tn_params_free) = tn_params_new();
    (void)tn_params_add(p, "W", 4, 5, true, glorot);
    uint32_t b = tn_params_add(p, "b", 1, 5, true, zero);
    (void)tn_params_add(p, "mean", 1, 5, false, zero);
    tn_params_freeze(p, b);
    assert_int_equal(tn_params_trained(p), 25);
    assert_false(tn_params_get(p, b)->train);
    assert_false(tn_params_get(p, b)->state);
}

TEST(no_memory_is_reported)
{
    for (uint64_t nth = 1; nth <= 2; nth++) {
        tn_params *p FREED(tn_params_free) = tn_params_new();
        (void)tn_params_add(p, "W", 4, 5, true, glorot);
        tn_error err = {0};
        tn_alloc_fail_at(nth);
        assert_int_equal(tn_params_seal(p, &err), TN_E_MEMORY);
        assert_int_equal(tn_params_seal(p, &err), TN_OK);
    }
}

/* A layer that is wired up wrongly stays where it began and nobody notices. */
TEST(a14_every_parameter_has_a_gradient)
{
    enum { ROWS = 64 };
    tn_test_net net = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS, .train = true});
    tn_test_net_finish(&net);
    tn_test_batch *batch = tn_test_batch_new(ROWS, 14);
    tn_graph_feed feed = tn_test_feed(batch, true);
    tn_forward(net.g, &feed);
    tn_backward(net.g);
    for (uint32_t i = 0; i < tn_params_count(net.params); i++) {
        const tn_param_slice *s = tn_params_get(net.params, i);
        const tn_real *grad = tn_params_grads(net.params) + s->at;
        bool moves = s->state;
        for (size_t k = 0; k < (size_t)s->rows * s->cols; k++) {
            moves |= grad[k] > 0 || grad[k] < 0;
        }
        fail_if(!moves, "'%s' has no gradient", s->name);
    }
    tn_test_batch_free(batch);
    tn_graph_free(net.g);
    tn_params_free(net.params);
}
