/* test_gemm.c - matrix products against three loops, in every shape that takes another road. */
#include "base/core/failpoint.h"
#include "base/thread/team.h"
#include "nn/gemm/gemm.h"
#include "nn/gemm/kernels.h"
#include "support/test.h"

static const size_t sizes[] = {1, 2, 3, 5, 12, 13, 16, 17, 31, 32, 33, 64, 65, 100, 129, 260};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], SIDE = 1100 };

typedef struct buffers {
    tn_real *a, *b, *c, *want;
    tn_products by;
} buffers;

static tn_real *random_matrix(uint64_t seed)
{
    size_t n = (size_t)SIDE * 320;
    tn_real *m = tn_alloc(n, sizeof *m, "a matrix");
    for (size_t i = 0; i < n; i++) {
        m[i] = (tn_real)(2 * tn_unit(tn_draw(seed, i)) - 1);
    }
    return m;
}

static buffers new_buffers(void)
{
    buffers x = {random_matrix(1), random_matrix(2), random_matrix(3), random_matrix(3), {0}};
    assert_int_equal(tn_products_find(&x.by, TN_PRODUCTS_AUTO, NULL), TN_OK);
    return x;
}

static void free_buffers(buffers *x)
{
    tn_free(x->a);
    tn_free(x->b);
    tn_free(x->c);
    tn_free(x->want);
}

typedef struct strides {
    size_t a, b, c;
} strides;

static double reference(const buffers *x, tn_dims d, strides s, size_t i, size_t j, bool transposed)
{
    double sum = 0;
    for (size_t p = 0; p < d.k; p++) {
        tn_real a = transposed ? x->a[p * s.a + i] : x->a[i * s.a + p];
        sum += (double)a * (double)x->b[p * s.b + j];
    }
    return sum;
}

static void check(buffers *x, tn_dims d, bool transposed, bool add)
{
    strides s = {(transposed ? d.m : d.k) + 3, d.n + 1, d.n + 5};
    if (d.n == 1) {
        s.b = 1;
        s.c = 1;
    }
    memcpy(x->c, x->want, (d.m * s.c + 1) * sizeof *x->c);
    (transposed ? tn_gemm_at : tn_gemm)(&x->by, d, (tn_mat){x->a, s.a, false},
                                        (tn_mat){x->b, s.b, false}, (tn_product){x->c, s.c, add});
    for (size_t i = 0; i < d.m; i++) {
        for (size_t j = 0; j < s.c; j++) {
            double old = (double)x->want[i * s.c + j];
            double want = old;
            if (j < d.n) {
                want = reference(x, d, s, i, j, transposed) + (add ? old : 0);
            }
            double tolerance = j < d.n ? 1e-5 * sqrt((double)d.k) : 0;
            fail_if(!(fabs((double)x->c[i * s.c + j] - want) <= tolerance),
                    "%s [%zu x %zu x %zu]%s: [%zu][%zu] is %g instead of %g", x->by.name, d.m, d.n,
                    d.k, transposed ? " transposed" : "", i, j, (double)x->c[i * s.c + j], want);
        }
    }
}

/* All that this machine and this build can do; the number of them. */
static uint32_t all_ways(tn_products out[4])
{
    uint32_t n = 0;
    tn_error err = {0};
#if TN_KERNELS_AVX512
    if (__builtin_cpu_supports("avx512f")) {
        out[n++] = tn_products_own(&tn_kernels_avx512);
    }
#endif
#if TN_KERNELS_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        out[n++] = tn_products_own(&tn_kernels_avx2);
    }
#endif
#if TN_KERNELS_SSE2
    out[n++] = tn_products_own(&tn_kernels_sse2);
#endif
    n += tn_products_find(&out[n], TN_PRODUCTS_OPENBLAS, &err) == TN_OK;
    return n;
}

TEST(products_are_those_of_three_loops)
{
    buffers x CLEANUP(free_buffers) = new_buffers();
    tn_products way[4];
    uint32_t n_ways = all_ways(way);
    assert_true(n_ways > 0);
    for (uint32_t w = 0; w < n_ways; w++) {
        x.by = way[w];
        for (int i = 0; i < N_SIZES * N_SIZES; i++) {
            size_t m = sizes[i % N_SIZES];
            size_t n = sizes[i / N_SIZES];
            size_t k = sizes[(i * 7 + 3) % N_SIZES];
            check(&x, (tn_dims){m, n, k}, false, i % 2 == 0);
            check(&x, (tn_dims){m, n, k}, true, i % 2 == 1);
        }
        check(&x, (tn_dims){70, 40, 1000}, true, false);
        check(&x, (tn_dims){70, 40, 600}, false, true);
    }
}

TEST(a_choice_is_honoured_or_refused_with_a_reason)
{
    static const char *const prefix[] = {"", "avx", "openblas ("};
    for (uint32_t c = TN_PRODUCTS_AUTO; c <= TN_PRODUCTS_OPENBLAS; c++) {
        tn_error err = {0};
        tn_products p = {0};
        if (tn_products_find(&p, (tn_products_choice)c, &err) == TN_OK) {
            char name[TN_PRODUCTS_NAME];
            tn_products_describe(&p, name);
            assert_memory_equal(name, prefix[c], strlen(prefix[c]));
        } else { /* what every machine has may not be missing */
            assert_int_equal(c, TN_PRODUCTS_OWN);
            assert_non_null(strstr(err.text, "hint: "));
            assert_null(p.multiply);
        }
    }
}

/* A processor without AVX2: OpenBLAS for programs, our own for what links no library. */
TEST(old_processors_have_products_too)
{
    tn_error err = {0};
    tn_products p;
    char name[TN_PRODUCTS_NAME];
    assert_int_equal(tn_failpoint_set("nn.no_kernels:error", &err), TN_OK);
    assert_int_equal(tn_products_find(&p, TN_PRODUCTS_AUTO, &err), TN_OK);
    tn_products_describe(&p, name);
    assert_memory_equal(name, "openblas (", strlen("openblas ("));
    assert_int_equal(tn_products_find(&p, TN_PRODUCTS_ALONE, &err), TN_OK);
    tn_products_describe(&p, name);
#if TN_KERNELS_SSE2
    assert_string_equal(name, "sse2");
#endif
    assert_int_equal(tn_products_find(&p, TN_PRODUCTS_OWN, &err), TN_E_CONFIG);
    assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
}

/* Whole vectors are read where they may be, instead of a copy. */
TEST(padded_rows_give_the_same_bits)
{
    enum { LINE = 16 };
    buffers x CLEANUP(free_buffers) = new_buffers();
    for (int i = 0; i < N_SIZES * N_SIZES; i++) {
        tn_dims d = {sizes[i % N_SIZES], sizes[i / N_SIZES] + 1, sizes[(i * 7 + 3) % N_SIZES]};
        size_t stride = (d.n + LINE - 1) / LINE * LINE;
        tn_mat a = {x.a, d.k, false};
        tn_gemm(&x.by, d, a, (tn_mat){x.b, stride, false}, (tn_product){x.c, d.n, false});
        tn_gemm(&x.by, d, a, (tn_mat){x.b, stride, true}, (tn_product){x.want, d.n, false});
        assert_memory_equal(x.c, x.want, d.m * d.n * sizeof *x.c);
    }
}

/* Weights of 16 bits: near what they were, and one row by words is the product of the floats. */
TEST(words_give_the_bits_of_rounded_weights)
{
    const tn_real seven = 7;
    buffers x CLEANUP(free_buffers) = new_buffers();
    tn_products way[5];
    uint32_t n_ways = all_ways(way);
    for (size_t i = 0; i < (size_t)N_SIZES * N_SIZES; i++) {
        const size_t n = sizes[i / N_SIZES] + 1;
        const size_t k = i == 7 ? 600 : sizes[(i * 7 + 3) % N_SIZES] + 1;
        tn_real *words FREED(tn_free) = tn_alloc(tn_words_size(k, n), sizeof *words, "words");
        memcpy(x.b, x.want, k * n * sizeof *x.b);
        tn_words_round(k, n, x.b, words);
        for (size_t j = 0; j < k * n; j++) {
            assert_true(fabs((double)(x.b[j] - x.want[j])) <= 0x1.01p-8 * fabs((double)x.want[j]));
        }
        for (uint32_t w = 0; w < n_ways; w++) {
            tn_real got[SIDE];
            got[n] = seven;
            tn_gemm(&way[w], (tn_dims){1, n, k}, (tn_mat){x.a, k, false}, (tn_mat){x.b, n, false},
                    (tn_product){x.c, n, false});
            if (tn_gemm_words(&way[w], k, n, x.a, words, got)) {
                assert_memory_equal(got, x.c, n * sizeof *got);
            }
            assert_memory_equal(&got[n], &seven, sizeof seven);
            assert_true(way[w].kernels != NULL || !tn_gemm_words(&way[w], k, n, x.a, words, got));
        }
    }
}

/* Weights that no sum of ordinary ones makes: nothing becomes infinite, or a denormal. */
TEST(rounded_weights_are_ordinary_floats)
{
    static const float w[] = {0, 1, -3e38F, 3.4028234e38F, 1e-40F, -1e-30F, 1e-20F, -.1F, 0x1p-60F};
    enum { N = sizeof w / sizeof *w };
    for (size_t low = 0; low < N; low++) {
        for (size_t high = 0; high < N; high++) {
            tn_real pair[2] = {(tn_real)w[low], (tn_real)w[high]};
            tn_real words[16];
            assert_int_equal(tn_words_size(2, 1), 16);
            tn_words_round(2, 1, pair, words);
            const double off[] = {fabs((double)pair[0] - (double)w[low]),
                                  fabs((double)pair[1] - (double)w[high])};
            assert_true(off[0] <= 0x1.01p-8 * fabs((double)w[low]) + 0x1p-126);
            assert_true(off[1] <= 0x1.01p-8 * fabs((double)w[high]) + 0x1p-59);
            for (int i = 0; i < 2; i++) {
                const double size = fabs((double)pair[i]);
                assert_true(isfinite(size) && !(size > 0 && size < 0x1p-126));
            }
            assert_true(low > 0 || off[0] <= 0);
        }
    }
}

TEST(transposing_twice_is_the_identity)
{
    buffers x CLEANUP(free_buffers) = new_buffers();
    for (int i = 0; i < N_SIZES; i++) {
        size_t m = sizes[i];
        size_t n = sizes[N_SIZES - 1 - i];
        tn_transpose(m, n, (tn_mat){x.a, n + 2, false}, (tn_product){x.b, m + 1, false});
        tn_transpose(n, m, (tn_mat){x.b, m + 1, false}, (tn_product){x.c, n + 2, false});
        for (size_t r = 0; r < m; r++) {
            assert_memory_equal(x.a + r * (n + 2), x.c + r * (n + 2), n * sizeof *x.a);
            tn_real d = x.b[(n - 1) * (m + 1) + r] - x.a[r * (n + 2) + n - 1];
            assert_true(d <= 0 && d >= 0);
        }
    }
}

/* An entry is one chain of operations, whatever the block around it and the vector width. */
TEST(an_entry_has_the_same_bits_in_every_tile)
{
    if (tn_kernels_find() == NULL) {
        skip(); /* OpenBLAS picks its kernels by shape */
    }
    enum { M = 61, N = 77, K = 300 };
    buffers x CLEANUP(free_buffers) = new_buffers();
    tn_gemm(&x.by, (tn_dims){M, N, K}, (tn_mat){x.a, K, false}, (tn_mat){x.b, N, false},
            (tn_product){x.c, N, false});
    for (size_t rows = 1; rows < 16; rows++) {
        for (size_t i = 0; i < M; i += rows) {
            size_t m = M - i < rows ? M - i : rows;
            tn_gemm(&x.by, (tn_dims){m, N, K}, (tn_mat){x.a + i * K, K, false},
                    (tn_mat){x.b, N, false}, (tn_product){x.want + i * N, N, false});
        }
        assert_memory_equal(x.c, x.want, (size_t)M * N * sizeof *x.c);
    }
    enum { WIDE = 300 }; /* a single row takes wider blocks */
    tn_gemm(&x.by, (tn_dims){3, WIDE, K}, (tn_mat){x.a, K, false}, (tn_mat){x.b, WIDE, false},
            (tn_product){x.c, WIDE, false});
    tn_gemm(&x.by, (tn_dims){1, WIDE, K}, (tn_mat){x.a, K, false}, (tn_mat){x.b, WIDE, false},
            (tn_product){x.want, WIDE, false});
    assert_memory_equal(x.c, x.want, WIDE * sizeof *x.c);
    tn_gemm(&x.by, (tn_dims){M, N, K}, (tn_mat){x.a, K, false}, (tn_mat){x.b, N, false},
            (tn_product){x.c, N, false});
    for (size_t j = 0; j < N; j += 7) { /* narrow tiles of columns */
        tn_gemm(&x.by, (tn_dims){M, 7, K}, (tn_mat){x.a, K, false}, (tn_mat){x.b + j, N, false},
                (tn_product){x.want + j, N, false});
    }
    assert_memory_equal(x.c, x.want, (size_t)M * N * sizeof *x.c);
}

#if TN_KERNELS_AVX512
TEST(avx2_and_avx512_give_the_same_bits)
{
    if (!__builtin_cpu_supports("avx512f")) {
        skip();
    }
    enum { M = 45, K = 200, COLS = 64, LANES = 16 };
    static float a[M * K];
    static float b[K * COLS];
    static float c[2][M * COLS];
    for (int i = 0; i < M * K; i++) {
        a[i] = (float)(tn_unit(tn_draw(1, (uint64_t)i)) - .5);
    }
    for (int i = 0; i < K * COLS; i++) {
        b[i] = (float)(tn_unit(tn_draw(2, (uint64_t)i)) - .5);
    }
    for (int way = 0; way < 4; way++) {
        bool across = way % 2 == 1;
        tn_gemm_block block = {.depth = across ? 64 : K,
                               .a = a,
                               .a_stride = across ? 140 : K,
                               .across = across,
                               .b = b,
                               .b_stride = COLS,
                               .c = c[0],
                               .c_stride = COLS,
                               .add = way / 2 == 1};
        for (size_t cols = LANES; cols <= COLS; cols += LANES) { /* every width of a panel */
            memset(c, 0, sizeof c);
            block.b = b;
            block.c = c[0];
            tn_kernels_avx512.run(&block, M, cols);
            tn_kernels_avx512.run(&block, M, cols); /* adds to what is not 0, or assigns again */
            for (size_t j = 0; j < cols; j += LANES) {
                block.b = b + j;
                block.c = c[1] + j;
                tn_kernels_avx2.run(&block, M, LANES);
                tn_kernels_avx2.run(&block, M, LANES);
            }
            assert_memory_equal(c[0], c[1], sizeof c[0]);
        }
    }
}
#endif

typedef struct shared_job {
    buffers *x;
    tn_real *out;
} shared_job;

enum { JOB = 96 };

static void multiply_tile(void *job, uint32_t tile)
{
    const shared_job *j = job;
    tn_gemm(&j->x->by, (tn_dims){JOB, JOB, JOB}, (tn_mat){j->x->a, JOB, false},
            (tn_mat){j->x->b, JOB, false},
            (tn_product){j->out + (size_t)tile * JOB * JOB, JOB, false});
}

TEST(threads_may_multiply_at_once)
{
    enum { TILES = 32 };
    tn_team *team FREED(tn_team_close) = NULL;
    tn_products way[5];
    buffers x CLEANUP(free_buffers) = new_buffers();
    uint32_t n_ways = all_ways(way);
    assert_int_equal(tn_team_open(&team, 4, NULL), TN_OK);
    shared_job job = {&x, x.c};
    for (uint32_t times = 0; times < 20 * n_ways; times++) {
        x.by = way[times % n_ways];
        tn_team_run(team, TILES, multiply_tile, &job);
        for (size_t t = 1; t < TILES; t++) {
            assert_memory_equal(x.c, x.c + t * JOB * JOB, (size_t)JOB * JOB * sizeof *x.c);
        }
    }
}
