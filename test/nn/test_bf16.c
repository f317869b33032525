/* test_bf16.c - rounding to bfloat16, its products, and layers that use them. */
#include "base/thread/team.h"
#include "nn/gemm/gemm.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "nn/nets.h"
#include "nn/vec/vecmath.h"
#include "support/test.h"

enum { SIDE = 300 };

static uint32_t bits(float x)
{
    return ((tn_float_bits){.f = x}).u;
}

static float from_bits(uint32_t u)
{
    return ((tn_float_bits){.u = u}).f;
}

/* Rounded by counting: the nearest multiple of the last place, ties to the even one. */
static double rounded(double x)
{
    int e = 0;
    double m = frexp(x, &e); /* .5 .. 1 */
    double scaled = ldexp(m, 8);
    double below = floor(scaled);
    double rest = scaled - below;
    bool up = rest > .5 || (rest >= .5 && fmod(below, 2) != 0);
    return ldexp(up ? below + 1 : below, e - 8);
}

/* Skips where the processor cannot: nothing in bfloat16 runs there. */
static tn_products bf16_or_skip(void)
{
    tn_products by = {0};
    tn_error err = {0};
    if (tn_bf16_products(&by, &err) != TN_OK) {
        assert_non_null(strstr(err.text, "AVX512_BF16"));
        skip();
    }
    return by;
}

TEST(rounding_is_to_the_nearest_and_ties_to_even)
{
    (void)bf16_or_skip();
    static const struct {
        float from;
        uint32_t to;
    } known[] = {{.1F, 0x3dcd},         {-.25F, 0xbe80},     {1.0F / 3, 0x3eab},  {1e-5F, 0x3728},
                 {1.00390625F, 0x3f80}, /* a tie: down to even */
                 {1.01171875F, 0x3f82}, /* a tie: up to even */
                 {3.4e38F, 0x7f80},     {INFINITY, 0x7f80},  {-INFINITY, 0xff80}, {0, 0},
                 {-0.0F, 0x8000},       {0x1p-126F, 0x0080}, {0x1p-127F, 0}}; /* no denormals */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        float pair[2] = {known[i].from, 1};
        float word = 0;
        tn_bf16_rows(1, 2, (tn_mat){pair, 2, false}, (tn_product){&word, 1, false});
        assert_int_equal(bits(word), known[i].to | 0x3f800000U);
        tn_bf16_pairs(1, 1, (tn_mat){pair, 2, false}, (tn_product){&word, 1, false});
        assert_int_equal(bits(word), known[i].to); /* with nothing below: 0 */
    }
    float nan = from_bits(0x7f800001U); /* its upper half alone would be an infinity */
    float word = 0;
    tn_bf16_rows(1, 1, (tn_mat){&nan, 1, false}, (tn_product){&word, 1, false});
    assert_true(isnan(from_bits(bits(word) << 16)));
}

typedef struct matrices {
    float *a, *b, *a_words, *b_words, *c;
} matrices;

static float *random_matrix(uint64_t seed)
{
    float *m = tn_alloc((size_t)SIDE * SIDE, sizeof *m, "a matrix");
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        m[i] = (float)(2 * tn_unit(tn_draw(seed, i)) - 1);
    }
    return m;
}

static matrices new_matrices(void)
{
    return (matrices){random_matrix(1), random_matrix(2), random_matrix(3), random_matrix(4),
                      random_matrix(5)};
}

static void free_matrices(matrices *x)
{
    tn_free(x->a);
    tn_free(x->b);
    tn_free(x->a_words);
    tn_free(x->b_words);
    tn_free(x->c);
}

static const size_t sizes[] = {1, 2, 3, 7, 12, 16, 31, 32, 45, 64, 130, 299};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

TEST(turning_pairs_is_pairing_what_was_turned)
{
    (void)bf16_or_skip();
    matrices x = new_matrices();
    for (size_t i = 0; i < (size_t)N_SIZES * N_SIZES; i++) {
        size_t n = sizes[i % N_SIZES];
        size_t k = sizes[i / N_SIZES];
        tn_transpose(n, k, (tn_mat){x.a, SIDE, false}, (tn_product){x.b, SIDE, false});
        tn_bf16_pairs(k, n, (tn_mat){x.b, SIDE, false}, (tn_product){x.b_words, n, false});
        tn_bf16_pairs_transposed(n, k, (tn_mat){x.a, SIDE, false},
                                 (tn_product){x.a_words, n, false});
        assert_memory_equal(x.a_words, x.b_words, tn_bf16_words(k) * n * sizeof(float));
    }
    free_matrices(&x);
}

static void check(matrices *x, const tn_products *by, tn_dims d, bool transposed)
{
    size_t words = tn_bf16_words(d.k);
    if (transposed) {
        tn_bf16_pairs(d.k, d.m, (tn_mat){x->a, SIDE, false}, (tn_product){x->a_words, SIDE, false});
    } else {
        tn_bf16_rows(d.m, d.k, (tn_mat){x->a, SIDE, false}, (tn_product){x->a_words, SIDE, false});
    }
    tn_bf16_pairs(d.k, d.n, (tn_mat){x->b, SIDE, false}, (tn_product){x->b_words, SIDE, false});
    by->multiply(by, &(tn_factors){.d = {d.m, d.n, words},
                                   .a = {x->a_words, SIDE, false},
                                   .b = {x->b_words, SIDE, false},
                                   .c = {x->c, SIDE, false},
                                   .transposed = transposed});
    for (size_t i = 0; i < d.m; i++) {
        for (size_t j = 0; j < d.n; j++) {
            double want = 0;
            for (size_t p = 0; p < d.k; p++) {
                double a = (double)(transposed ? x->a[p * SIDE + i] : x->a[i * SIDE + p]);
                want += rounded(a) * rounded((double)x->b[p * SIDE + j]);
            }
            double got = (double)x->c[i * SIDE + j];
            fail_if(!(fabs(got - want) <= 2e-6 * sqrt((double)d.k) + 1e-7),
                    "[%zu x %zu x %zu] [%zu][%zu] is %.9g instead of %.9g", d.m, d.n, d.k, i, j,
                    got, want);
        }
    }
}

/* The products of bfloat16 are exact; only sums of floats are rounded. */
TEST(products_are_those_of_rounded_factors)
{
    tn_products by = bf16_or_skip();
    matrices x = new_matrices();
    for (size_t i = 0; i < (size_t)N_SIZES * N_SIZES; i++) {
        tn_dims d = {sizes[i % N_SIZES], sizes[i / N_SIZES], sizes[(i * 5 + 3) % N_SIZES]};
        check(&x, &by, d, i % 2 == 0);
        check(&x, &by, d, i % 2 == 1);
    }
    free_matrices(&x);
}

typedef struct outcome {
    double loss;
    size_t n;
    tn_real *grads;
} outcome;

static outcome step(const tn_graph_opts *opts, uint32_t rows)
{
    tn_test_net n = tn_test_net_build(NULL, opts);
    tn_test_net_finish(&n);
    tn_test_batch *batch = tn_test_batch_new(rows, 7);
    tn_graph_feed feed = tn_test_feed(batch, true);
    size_t n_rows = tn_test_grads_size(batch);
    size_t n_dense = tn_params_size(n.params);
    outcome o = {.n = n_rows + n_dense};
    tn_forward(n.g, &feed);
    tn_backward(n.g);
    o.loss = tn_graph_loss(n.g);
    o.grads = tn_alloc(o.n, sizeof *o.grads, "gradients");
    memcpy(o.grads, feed.sparse->grads, n_rows * sizeof *o.grads);
    memcpy(o.grads + n_rows, tn_params_grads(n.params), n_dense * sizeof *o.grads);
    tn_test_batch_free(batch);
    tn_graph_free(n.g);
    tn_params_free(n.params);
    return o;
}

static double length(const outcome *a, const outcome *minus)
{
    double sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        double d = (double)a->grads[i] - (minus == NULL ? 0 : (double)minus->grads[i]);
        sum += d * d;
    }
    return sqrt(sum);
}

/* Near the gradients of floats, not equal to them, and the same on any number of threads. */
TEST(a_step_is_near_that_of_floats_on_any_number_of_threads)
{
    enum { ROWS = 301 };
    (void)bf16_or_skip();
    tn_graph_opts opts = {.max_rows = ROWS, .train = true, .seed = 5};
    outcome exact = step(&opts, ROWS);
    opts.bf16 = true;
    outcome first = step(&opts, ROWS);
    assert_true(fabs(first.loss - exact.loss) < .01 * exact.loss);
    double off = length(&first, &exact) / length(&exact, NULL);
    assert_true(off > 1e-5 && off < .05);
    for (uint32_t threads = 2; threads <= 4; threads++) {
        assert_int_equal(tn_team_open(&opts.team, threads, NULL), TN_OK);
        outcome again = step(&opts, ROWS);
        assert_memory_equal(again.grads, first.grads, first.n * sizeof *first.grads);
        assert_true(again.loss >= first.loss && again.loss <= first.loss);
        tn_free(again.grads);
        tn_team_close(opts.team);
    }
    tn_free(first.grads);
    tn_free(exact.grads);
}
