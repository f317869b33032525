/* gemm.c - see gemm.h. Cuts a product into depths and panels for the kernels.
 *
 *            n: panels of 32 columns
 *          +----+----+--
 *     k    |    |    |       a panel of b, 128 to 256 deep, stays in the first-level cache while
 *          +----+----+--     all rows of the call pass by
 */
#include "nn/gemm.h"

#include "nn/kernels.h"
#include "nn/vec.h"

#include <cblas.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void call_blas(const CBLAS_TRANSPOSE trans, tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    int m = (int)d.m;
    int n = (int)d.n;
    int k = (int)d.k;
#ifdef TN_REAL_DOUBLE
    cblas_dgemm(CblasRowMajor, trans, CblasNoTrans, m, n, k, 1, a.at, (int)a.stride, b.at,
                (int)b.stride, c.add ? 1 : 0, c.at, (int)c.stride);
#else
    cblas_sgemm(CblasRowMajor, trans, CblasNoTrans, m, n, k, 1, a.at, (int)a.stride, b.at,
                (int)b.stride, c.add ? 1 : 0, c.at, (int)c.stride);
#endif
}

enum {
    DEPTH_ALONG = 256,
    PANEL_MAX = 32,
    BAD_STRIDE = 1024, /* rows that far apart share a few sets of the cache */
    LINE = 64,         /* bytes */
    ROWS_TO_PACK = 48, /* fewer rows do not pay for a copy of the panel */
};

/* `at` may lie beyond the matrix, so it is a number. */
static inline void expect(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 2);
}

/* Rows of the next depth are on their way. */
static inline void copy_rows(size_t depth, size_t cols, size_t width, tn_mat b, tn_real *panel)
{
    for (size_t p = 0; p < depth; p++) {
        uintptr_t next = (uintptr_t)(b.at + p * b.stride) + depth * b.stride * sizeof *b.at;
        expect(next);
        expect(next + LINE);
        memcpy(panel + p * width, b.at + p * b.stride, cols * sizeof *panel);
    }
}

/* Rows of a panel side by side; columns that are missing to whole vectors are 0. */
static void pack(size_t depth, size_t cols, size_t width, tn_mat b, tn_real *panel)
{
    if (cols == PANEL_MAX) { /* a length that the compiler knows takes no call per row */
        copy_rows(depth, PANEL_MAX, PANEL_MAX, b, panel);
        return;
    }
    if (cols != width) {
        memset(panel, 0, depth * width * sizeof *panel);
    }
    copy_rows(depth, cols, width, b, panel);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One panel of columns over one depth. */
static void panel_product(const tn_kernels *kernels, tn_dims d, tn_block *block, bool packs)
{
    _Alignas(64) tn_real panel[DEPTH_ALONG * PANEL_MAX];
    size_t width = (d.n + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
    if (packs) {
        pack(block->depth, d.n, width, (tn_mat){block->b, block->b_stride, false}, panel);
        block->b = panel;
        block->b_stride = width;
    }
    kernels->run(block, d.m, d.n);
}

static bool by_kernels(bool transposed, tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    const tn_kernels *kernels = tn_kernels_find();
    if (kernels == NULL) {
        return false;
    }
    size_t wide = TN_WIDE_VECTORS * kernels->lanes;
    size_t deepest = transposed ? TN_DEPTH_ACROSS : DEPTH_ALONG;
    bool packs = d.m >= ROWS_TO_PACK && (transposed || b.stride % BAD_STRIDE == 0);
    bool ends = d.n % kernels->lanes == 0 || b.padded; /* a kernel loads whole vectors */
    for (size_t p = 0; p < d.k; p += deepest) {
        size_t n = 0;
        for (size_t j = 0; j < d.n; j += n) {
            bool one = d.m == 1 && !transposed && d.n - j >= wide;
            n = one ? wide : smaller(2 * kernels->lanes, d.n - j);
            tn_block block = {.depth = smaller(deepest, d.k - p),
                              .a = transposed ? a.at + p * a.stride : a.at + p,
                              .a_stride = a.stride,
                              .across = transposed,
                              .b = b.at + p * b.stride + j,
                              .b_stride = b.stride,
                              .c = c.at + j,
                              .c_stride = c.stride,
                              .add = c.add || p > 0};
            tn_dims part = {d.m, n, block.depth};
            panel_product(kernels, part, &block, packs || (!ends && n % kernels->lanes != 0));
        }
    }
    return true;
}

/* One column: a dot product per row. */
static void one_column(tn_dims d, tn_mat a, const tn_real *x, tn_product c)
{
    for (size_t i = 0; i < d.m; i++) {
        tn_real y = tn_vec_dot(d.k, a.at + i * a.stride, x);
        c.at[i * c.stride] = c.add ? c.at[i * c.stride] + y : y;
    }
}

void tn_gemm(tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.k && b.stride >= d.n);
    if (d.n == 1 && b.stride == 1) {
        one_column(d, a, b.at, c);
    } else if (d.k == 1) { /* an outer product: row i is a_i times b */
        for (size_t i = 0; i < d.m; i++) {
            tn_vec_scale(d.n, c.at + i * c.stride, b.at, a.at[i * a.stride], c.add);
        }
    } else if (!by_kernels(false, d, a, b, c)) {
        call_blas(CblasNoTrans, d, a, b, c);
    }
}

void tn_gemm_at(tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.m && b.stride >= d.n);
    if (d.n == 1 && c.stride == 1) { /* a sum of rows of a, weighted by b, in order */
        for (size_t r = 0; r < d.k; r++) {
            tn_vec_scale(d.m, c.at, a.at + r * a.stride, b.at[r * b.stride], c.add || r > 0);
        }
    } else if (!by_kernels(true, d, a, b, c)) {
        call_blas(CblasTrans, d, a, b, c);
    }
}

static void transpose_slowly(size_t m, size_t n, tn_mat from, tn_product to)
{
    for (size_t j = 0; j < n; j++) {
        tn_real *row = to.at + j * to.stride;
        for (size_t i = 0; i < m; i++) {
            row[i] = from.at[i * from.stride + j];
        }
    }
}

void tn_transpose(size_t m, size_t n, tn_mat from, tn_product to)
{
    enum { SIDE = 8 };
    const tn_kernels *kernels = tn_kernels_find();
    size_t rows = kernels == NULL ? 0 : m / SIDE * SIDE;
    size_t cols = kernels == NULL ? 0 : n / SIDE * SIDE;
    for (size_t j = 0; j < cols; j += SIDE) {
        for (size_t i = 0; i < rows; i += SIDE) {
            kernels->transpose(from.at + i * from.stride + j, from.stride,
                               to.at + j * to.stride + i, to.stride);
        }
    }
    tn_mat right = {from.at + cols, from.stride, false};
    tn_mat below = {from.at + rows * from.stride, from.stride, false};
    transpose_slowly(m, n - cols, right, (tn_product){to.at + cols * to.stride, to.stride, false});
    transpose_slowly(m - rows, cols, below, (tn_product){to.at + rows, to.stride, false});
}

enum { TEST = 37, TEST_STRIDE = 40 };

typedef struct test_matrices {
    tn_real a[TEST * TEST_STRIDE];
    tn_real b[TEST * TEST_STRIDE];
    tn_real c[TEST * TEST_STRIDE];
} test_matrices;

/* Small integers: every order of additions gives the same sum. */
static void fill(test_matrices *t)
{
    for (int i = 0; i < TEST * TEST_STRIDE; i++) {
        t->a[i] = (tn_real)((i * 7 + 3) % 11 - 5);
        t->b[i] = (tn_real)((i * 5 + 1) % 13 - 6);
        t->c[i] = (tn_real)(i % 3);
    }
}

static bool entry_is_right(const test_matrices *t, int i, int j, bool transposed)
{
    tn_real sum = (tn_real)((i * TEST_STRIDE + j) % 3);
    for (int k = 0; k < TEST; k++) {
        tn_real a = transposed ? t->a[k * TEST_STRIDE + i] : t->a[i * TEST_STRIDE + k];
        sum += a * t->b[k * TEST_STRIDE + j];
    }
    tn_real diff = sum - t->c[i * TEST_STRIDE + j];
    return diff <= 0 && diff >= 0;
}

static bool self_test(bool transposed)
{
    test_matrices t;
    fill(&t);
    (transposed ? tn_gemm_at
                : tn_gemm)((tn_dims){TEST, TEST, TEST}, (tn_mat){t.a, TEST_STRIDE, false},
                           (tn_mat){t.b, TEST_STRIDE, false}, (tn_product){t.c, TEST_STRIDE, true});
    for (int i = 0; i < TEST; i++) {
        for (int j = 0; j < TEST; j++) {
            if (!entry_is_right(&t, i, j, transposed)) {
                return false;
            }
        }
    }
    return true;
}

void tn_gemm_describe(char *out)
{
    enum { SIZE = 128 };
    if (tn_kernels_find() != NULL) {
        (void)snprintf(out, SIZE, "%s", tn_kernels_find()->name);
    } else {
        (void)snprintf(out, SIZE, "openblas (%s)", openblas_get_corename());
    }
}

tn_status tn_gemm_check(tn_error *err)
{
    if (tn_kernels_find() == NULL && openblas_get_parallel() == OPENBLAS_SEQUENTIAL) {
        return tn_fail(err, TN_E_USAGE,
                       "this build of openblas is not safe for threads ('%s')\n"
                       "hint: install libopenblas0-pthread",
                       openblas_get_config());
    }
    if (tn_kernels_find() == NULL && openblas_get_num_threads() != 1) {
        openblas_set_num_threads(1);
    }
    if (!self_test(false) || !self_test(true)) {
        char name[128];
        tn_gemm_describe(name);
        return tn_fail(err, TN_E_USAGE, "matrix products of '%s' are wrong on this processor",
                       name);
    }
    return TN_OK;
}
