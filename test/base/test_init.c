/* test_init.c - first values: bounds, mean and deviation of every rule, and where they come from.
 */
#include "base/keys/init.h"

#include "support/test.h"

enum { N = 100000, IN = 300, OUT = 100 };

typedef struct expected {
    tn_init rule;
    double mean, deviation;
    double most; /* |value - mean| is never larger; INFINITY: no bound */
} expected;

/* Deviation of a normal distribution that is cut at two deviations. */
static const double cut = 0.87962566103423978;

TEST(every_rule_has_its_mean_deviation_and_bounds)
{
    const double root_3 = sqrt(3);
    const expected cases[] = {
        {{TN_INIT_UNIFORM, -1, 3}, 1, 2 / root_3, 2},
        {{TN_INIT_NORMAL, 5, 0.5}, 5, 0.5, (double)INFINITY},
        {{TN_INIT_TRUNCATED, -2, 0.1}, -2, 0.1 * cut, 0.2},
        {{TN_INIT_GLOROT_UNIFORM, 0, 0}, 0, sqrt(2.0 / (IN + OUT)), sqrt(6.0 / (IN + OUT))},
        {{TN_INIT_XAVIER_NORMAL, 0, 0}, 0, sqrt(2.0 / (IN + OUT)), (double)INFINITY},
        {{TN_INIT_HE_UNIFORM, 0, 0}, 0, sqrt(2.0 / IN), sqrt(6.0 / IN)},
        {{TN_INIT_HE_NORMAL, 0, 0}, 0, sqrt(2.0 / IN), (double)INFINITY},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const expected *e = &cases[c];
        uint64_t stream = tn_stream2(1, TN_RNG_DENSE, c);
        double sum = 0;
        double squares = 0;
        double far = 0;
        for (uint64_t i = 0; i < N; i++) {
            double off = (double)tn_init_value(&e->rule, stream, i, IN, OUT) - e->mean;
            sum += off;
            squares += off * off;
            far = fmax(far, fabs(off));
        }
        /* five deviations of the mean; the deviation itself to one in a hundred */
        assert_true(fabs(sum / N) < 5 * e->deviation / sqrt(N));
        assert_true(fabs(sqrt(squares / N) / e->deviation - 1) < 0.01);
        assert_true(far <= e->most * (1 + 1e-6));
        assert_true(isinf(e->most) || far > 0.99 * e->most);
    }
}

TEST(a_constant_is_what_it_says)
{
    const tn_init rule = {TN_INIT_CONSTANT, 0.1, 9};
    for (uint64_t i = 0; i < 10; i++) {
        assert_true(tn_init_value(&rule, i, i, 1, 1) == 0.1F);
    }
}

TEST(a_value_depends_on_stream_and_index_alone)
{
    const tn_init rule = {TN_INIT_NORMAL, 0, 1};
    uint64_t stream = tn_stream2(7, TN_RNG_DENSE, 3);
    uint32_t equal = 0;
    for (uint64_t i = 1000; i-- > 0;) {
        float x = tn_init_value(&rule, stream, i, 0, 0);
        assert_true(x == (float)tn_normal(tn_draw(stream, i)));
        equal += x == tn_init_value(&rule, stream + 1, i, 0, 0);
        equal += x == tn_init_value(&rule, stream, i + 1, 0, 0);
    }
    assert_int_equal(equal, 0);
}

TEST(values_of_rows_are_the_values_one_by_one)
{
    enum { ROWS = 3, MANY = 67 };
    const uint64_t stream[ROWS] = {5, 1, UINT64_MAX};
    for (int kind = TN_INIT_CONSTANT; kind <= (int)TN_INIT_HE_NORMAL; kind++) {
        for (uint32_t dim = 1; dim <= MANY; dim++) {
            const tn_init rule = {(tn_init_kind)kind, -0.1, 0.3};
            float w[ROWS][MANY + 1] = {{0}};
            tn_init_rows(&rule, ROWS, stream, dim, (float *[]){w[0], w[1], w[2]});
            for (uint32_t i = 0; i < ROWS * dim; i++) {
                assert_true(w[i / dim][i % dim] ==
                            tn_init_value(&rule, stream[i / dim], i % dim, dim, dim));
            }
            assert_true(w[0][dim] == 0 && w[ROWS - 1][dim] == 0);
        }
    }
}
