/* test_vec.c - loops over vectors: alike at every length, and right. */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"
#include "support/test.h"

enum { LENGTH_MAX = 67, GUARD = 3 };

static const tn_op *const acts[] = {&tn_op_relu,      &tn_op_leaky_relu, &tn_op_sigmoid,
                                    &tn_op_tanh,      &tn_op_softplus,   &tn_op_gelu,
                                    &tn_op_gelu_tanh, &tn_op_silu};
enum { N_ACTS = sizeof acts / sizeof acts[0] };

static tn_real sample(int i)
{
    return (tn_real)((i * 37 % 101 - 50) * 0.17);
}

/* One call for n numbers, and n calls for one: the vector body and its tail must agree. */
TEST(a11_vectors_equal_scalars_bit_for_bit_at_lengths_1_to_67)
{
    tn_real x[LENGTH_MAX];
    tn_real whole[LENGTH_MAX + GUARD];
    tn_real single[LENGTH_MAX];
    for (int i = 0; i < LENGTH_MAX; i++) {
        x[i] = sample(i);
    }
    for (int a = 0; a < N_ACTS; a++) {
        for (size_t n = 1; n <= LENGTH_MAX; n++) {
            tn_act_area area = {.rows = 1, .cols = n, .x = x, .y = whole, .a = (tn_real).01};
            whole[n] = 77;
            acts[a]->act->forward(&area);
            assert_true(whole[n] >= 77 && whole[n] <= 77);
            for (size_t i = 0; i < n; i++) {
                tn_act_area one = {.rows = 1, .cols = 1, .x = x + i, .y = single + i, .a = area.a};
                acts[a]->act->forward(&one);
            }
            assert_memory_equal(whole, single, n * sizeof *whole);
        }
    }
}

TEST(rows_of_an_area_are_done_alike)
{
    enum { AREA_ROWS = 5, COLS = 9, STRIDE = 16 };
    tn_real x[AREA_ROWS * STRIDE];
    tn_real y[AREA_ROWS * STRIDE] = {0};
    for (int i = 0; i < AREA_ROWS * STRIDE; i++) {
        x[i] = sample(i);
    }
    for (int a = 0; a < N_ACTS; a++) {
        tn_act_area area = {.rows = AREA_ROWS,
                            .cols = COLS,
                            .x = x,
                            .y = y,
                            .x_stride = STRIDE,
                            .y_stride = STRIDE,
                            .a = (tn_real).01};
        acts[a]->act->forward(&area);
        for (size_t r = 0; r < AREA_ROWS; r++) {
            tn_real row[COLS];
            tn_act_area one = {.rows = 1, .cols = COLS, .x = x + r * STRIDE, .y = row, .a = area.a};
            acts[a]->act->forward(&one);
            assert_memory_equal(row, y + r * STRIDE, sizeof row);
            assert_true(y[r * STRIDE + COLS] <= 0 && y[r * STRIDE + COLS] >= 0);
        }
    }
}

static void check(const char *name, double x, double got, double want, double tolerance)
{
    double error = fabs(got - want) / fmax(fabs(want), 1e-30);
    fail_if(!(error <= tolerance), "%s(%g) = %.9g instead of %.9g", name, x, got, want);
}

TEST(functions_are_exact_to_a_few_ulp)
{
    for (int i = -8700; i <= 8800; i++) {
        float x = (float)i * 0.01F;
        double d = (double)x;
        check("exp", d, (double)tn_exp_of(x), exp(d), 4e-7);
        check("sigmoid", d, (double)tn_sigmoid_of(x), 1 / (1 + exp(-d)), 6e-7);
        check("softplus", d, (double)tn_softplus_of(x), d > 30 ? d : log1p(exp(d)), 6e-7);
        check("tanh", d, (double)tn_tanh_of(x), tanh(d), 5e-7);
        if (i > -800 && i < 800) {
            check("erfc", d, (double)tn_erfc_of(x), erfc(d), 3e-5); /* its exponent is rounded */
        }
    }
}

TEST(extremes_are_finite_and_bounded)
{
    static const float big[] = {88.7F, 100, 1e10F, 3e38F};
    for (int i = 0; i < 4; i++) {
        assert_true(tn_exp_of(-big[i]) <= 1e-38F && tn_exp_of(-big[i]) >= 0);
        assert_true(tn_sigmoid_of(big[i]) <= 1 && tn_sigmoid_of(big[i]) >= 1);
        assert_true(tn_tanh_of(-big[i]) <= -1 && tn_tanh_of(-big[i]) >= -1);
        assert_true(tn_softplus_of(-big[i]) >= 0 && tn_softplus_of(-big[i]) < 1e-37F);
    }
    assert_true(isfinite(tn_exp_of(88.7F)) != 0);
    assert_true(tn_tanh_of(0) <= 0 && tn_tanh_of(0) >= 0);
    check("tanh", 1e-6, (double)tn_tanh_of(1e-6F), 1e-6, 1e-6);
}

TEST(sums_and_products_are_right)
{
    tn_real a[LENGTH_MAX];
    tn_real b[LENGTH_MAX];
    for (int i = 0; i < LENGTH_MAX; i++) {
        a[i] = (tn_real)(i % 7);
        b[i] = (tn_real)(i % 5 - 2);
    }
    for (size_t n = 1; n <= LENGTH_MAX; n++) {
        double sum = 0;
        double dot = 0;
        tn_real y[LENGTH_MAX];
        for (size_t i = 0; i < n; i++) {
            sum += (double)a[i];
            dot += (double)a[i] * (double)b[i];
        }
        check("sum", (double)n, (double)tn_vec_sum(n, a), sum, 0);
        assert_true(fabs((double)tn_vec_dot(n, a, b) - dot) <= 0);
        tn_vec_copy(n, y, a, false);
        tn_vec_mul(n, y, a, b, true);
        tn_vec_mul(n, y, a, b, true);
        for (size_t i = 0; i < n; i++) {
            assert_true(y[i] - (2 * a[i] * b[i] + a[i]) <= 0);
        }
    }
}
