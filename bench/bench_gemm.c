/* bench_gemm.c - the products of the layers of two nets, by each of those who can make them.
 *
 *     bench_gemm [rows] [times] [warm]
 *
 * Per layer and direction: the best of `times` runs on one core, in GFLOP/s and as a share of the
 * multiply-add peak of this run. `tiles` are the calls that a graph makes (op_dense.c: 24 rows of y
 * and of dx at a time, 128 rows of the batch into 96 columns of dW); `whole` is one call.
 * Activations are taken from memory that the caches have forgotten, as in a step; `warm`, they are
 * the same each time, as weights are.
 */
#include "base/machine/machine_peak.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "nn/gemm/gemm.h"
#include "nn/gemm/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES = 12, SIDE_MAX = 416, TILE = 24, COLS = 96, DEPTH = 128, WAYS = 3 };

typedef struct bench {
    tn_products by;
    size_t rows, in, out;
    uint32_t copies;
    tn_real *x[COPIES], *y[COPIES]; /* one after the other, so that none is in cache */
    tn_real *w;
} bench;

typedef void pass(const bench *b, uint32_t copy, size_t rows, size_t cols);

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void forward(const bench *b, uint32_t copy, size_t rows, size_t cols)
{
    (void)cols;
    for (size_t r = 0; r < b->rows; r += rows) {
        tn_gemm(&b->by, (tn_dims){least(rows, b->rows - r), b->out, b->in},
                (tn_mat){b->x[copy] + r * b->in, b->in, false}, (tn_mat){b->w, b->out, false},
                (tn_product){b->y[copy] + r * b->out, b->out, false});
    }
}

/* dx, with transposed weights as the graph keeps them. */
static void backward(const bench *b, uint32_t copy, size_t rows, size_t cols)
{
    (void)cols;
    size_t stride = (b->in + 15) / 16 * 16;
    for (size_t r = 0; r < b->rows; r += rows) {
        tn_gemm(&b->by, (tn_dims){least(rows, b->rows - r), b->in, b->out},
                (tn_mat){b->y[copy] + r * b->out, b->out, false}, (tn_mat){b->w, stride, true},
                (tn_product){b->x[copy] + r * b->in, b->in, false});
    }
}

static void weights(const bench *b, uint32_t copy, size_t rows, size_t cols)
{
    size_t depth = least(rows * DEPTH / TILE, b->rows);
    for (size_t c = 0; c < b->out; c += cols) {
        for (size_t r = 0; r < b->rows; r += depth) {
            tn_gemm_at(&b->by, (tn_dims){b->in, least(cols, b->out - c), least(depth, b->rows - r)},
                       (tn_mat){b->x[copy] + r * b->in, b->in, false},
                       (tn_mat){b->y[copy] + r * b->out + c, b->out, false},
                       (tn_product){b->w + c, b->out, r > 0});
        }
    }
}

static double gflops(const bench *b, pass *run, uint32_t times, bool whole)
{
    double best = 0;
    for (uint32_t t = 0; t < times; t++) {
        double start = tn_clock_s();
        run(b, t % b->copies, whole ? b->rows : TILE, whole ? b->out : COLS);
        double rate = 2e-9 * (double)(b->rows * b->in * b->out) / (tn_clock_s() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static tn_real *fill(size_t n, uint32_t seed)
{
    tn_real *m = tn_alloc(n, sizeof *m, "a matrix");
    for (size_t i = 0; i < n; i++) {
        m[i] = (tn_real)((int)((i * 7 + seed) % 19) - 9) / 64;
    }
    return m;
}

static uint32_t find_ways(tn_products *way)
{
    uint32_t n = 0;
    tn_error err = {0};
    n += tn_products_find(&way[n], TN_PRODUCTS_OWN, &err) == TN_OK;
#if TN_KERNELS_AVX512
    if (n > 0 && way[0].kernels == &tn_kernels_avx512) {
        way[n++] = tn_products_own(&tn_kernels_avx2);
    }
#endif
    n += tn_products_find(&way[n], TN_PRODUCTS_OPENBLAS, &err) == TN_OK;
    return n;
}

static void layer(bench *b, const tn_products *way, uint32_t n_ways, uint32_t times)
{
    static const struct {
        const char *name;
        pass *run;
    } passes[] = {{"y", forward}, {"dx", backward}, {"dW", weights}};
    for (uint32_t p = 0; p < sizeof passes / sizeof passes[0]; p++) {
        printf("%zu x %zu -> %zu, %s:", b->rows, b->in, b->out, passes[p].name);
        for (uint32_t w = 0; w < n_ways; w++) {
            char name[TN_PRODUCTS_NAME];
            b->by = way[w];
            tn_products_describe(&b->by, name);
            double tiles = gflops(b, passes[p].run, times, false);
            double whole = gflops(b, passes[p].run, times, true);
            double peak = tn_peak_gflops(1);
            printf("  %s %.0f (%.0f%%) whole %.0f (%.0f%%)", name, tiles, 100 * tiles / peak, whole,
                   100 * whole / peak);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static const size_t layers[][2] = {{312, 400}, {400, 400}, {312, 128}, {128, 64}, {64, 32}};
    static bench b;
    tn_products way[WAYS];
    tn_flush_denormals();
    b.rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
    uint32_t times = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 48;
    b.copies = argc > 3 && strcmp(argv[3], "warm") == 0 ? 1 : COPIES;
    if (b.rows == 0 || b.rows > 65536 || times == 0) {
        (void)fprintf(stderr, "usage: bench_gemm [rows] [times] [warm]\n");
        return 2;
    }
    uint32_t n_ways = find_ways(way);
    for (uint32_t i = 0; i < COPIES; i++) {
        b.x[i] = fill(b.rows * SIDE_MAX, i);
        b.y[i] = fill(b.rows * SIDE_MAX, 5 * i);
    }
    b.w = fill((size_t)SIDE_MAX * SIDE_MAX, 3);
    printf("peak %.0f GFLOP/s (%s)\n", tn_peak_gflops(5), tn_peak_kind());
    for (uint32_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        b.in = layers[i][0];
        b.out = layers[i][1];
        layer(&b, way, n_ways, times);
    }
    for (uint32_t i = 0; i < COPIES; i++) {
        tn_free(b.x[i]);
        tn_free(b.y[i]);
    }
    tn_free(b.w);
    return 0;
}
