/* gemm.c - matrix products: those of one column or one term, all others by our own kernels, and
 * factors rounded to bfloat16. For our kernels a product is cut into depths and panels:
 *
 *            n: panels of 32 to 64 columns
 *          +----+----+--
 *     k    |    |    |       a panel of b, 128 to 256 deep, stays in the nearest caches while all
 *          +----+----+--     rows of the call pass by
 */
#include "nn/gemm/gemm.h"

#include "nn/gemm/kernels.h"
#include "nn/vec/vec.h"

#include <stdint.h>
#include <string.h>

enum {
    DEPTH_ALONG = 256,
    PANEL_MAX = 64,
    BAD_STRIDE = 1024, /* rows that far apart share a few sets of the cache */
    LINE = 64,         /* bytes */
    ROWS_MIN = 8,
    COLS_MIN = 256,
    ROWS_TO_PACK = 48, /* fewer rows do not pay for a copy of the panel */
};

/* `at` may lie beyond the matrix, so it is a number. */
static inline void expect(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 2); // NOLINT(performance-no-int-to-ptr): no object
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Multiplies one panel of columns over one depth. */
static void panel_product(const tn_kernels *kernels, tn_dims d, tn_gemm_block *block, bool packs)
{
    _Alignas(64) tn_real panel[DEPTH_ALONG * PANEL_MAX];
    size_t width = (d.n + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
    if (packs) {
        kernels->copy(block, d.n, panel);
        block->b = panel;
        block->b_stride = width;
    }
    kernels->run(block, d.m, d.n);
}

/* The rows that the caller will come with next. They are fetched while the panels of these pass by,
 * a few lines at a time: all at once would wait for one another. Narrow layers have theirs in
 * cache, where asking for them took 1 to 13 % of a product. */
typedef struct rows_below {
    uintptr_t at, end;
    size_t share; /* bytes at a time */
} rows_below;

static rows_below rows_after(const tn_factors *f, size_t panel)
{
    if (f->transposed || f->d.m < ROWS_MIN || f->d.m > ROWS_TO_PACK || f->d.n < COLS_MIN) {
        return (rows_below){0};
    }
    size_t bytes = f->d.m * f->a.stride * sizeof *f->a.at;
    size_t panels = (f->d.n + panel - 1) / panel * ((f->d.k + DEPTH_ALONG - 1) / DEPTH_ALONG);
    uintptr_t at = (uintptr_t)f->a.at + bytes;
    return (rows_below){at, at + bytes, bytes / panels + LINE};
}

static void expect_share(rows_below *r)
{
    for (uintptr_t to = r->at + r->share; r->at < to && r->at < r->end; r->at += LINE) {
        expect(r->at);
    }
}

/* Columns of the next panel. The wider, the fewer loads a sum takes: three vectors where four do
 * not have to see to it that no single one is left over. */
static size_t panel_width(const tn_kernels *kernels, size_t cols)
{
    size_t vectors = (cols + kernels->lanes - 1) / kernels->lanes;
    size_t best = vectors % 3 == 0 || vectors == 5 ? 3 : 4;
    return smaller(cols, kernels->lanes * smaller(best, kernels->panel));
}

static void own_multiply(const tn_products *by, const tn_factors *f)
{
    const tn_kernels *kernels = by->kernels;
    const bool transposed = f->transposed;
    const tn_dims d = f->d;
    const tn_mat a = f->a;
    const tn_mat b = f->b;
    const tn_product c = f->c;
    size_t wide = TN_WIDE_VECTORS * kernels->lanes;
    size_t deepest = transposed ? TN_DEPTH_ACROSS : DEPTH_ALONG;
    bool packs = d.m >= ROWS_TO_PACK && (transposed || b.stride % BAD_STRIDE == 0);
    bool ends = d.n % kernels->lanes == 0 || b.padded; /* a kernel loads whole vectors */
    rows_below below = rows_after(f, kernels->panel * kernels->lanes);
    for (size_t p = 0; p < d.k; p += deepest) {
        size_t n = 0;
        for (size_t j = 0; j < d.n; j += n) {
            bool one = d.m == 1 && !transposed && d.n - j >= wide;
            n = one ? wide : panel_width(kernels, d.n - j);
            tn_gemm_block block = {.depth = smaller(deepest, d.k - p),
                                   .a = transposed ? a.at + p * a.stride : a.at + p,
                                   .a_stride = a.stride,
                                   .across = transposed,
                                   .b = b.at + p * b.stride + j,
                                   .b_stride = b.stride,
                                   .c = c.at + j,
                                   .c_stride = c.stride,
                                   .add = c.add || p > 0};
            tn_dims part = {d.m, n, block.depth};
            expect_share(&below);
            panel_product(kernels, part, &block, packs || (!ends && n % kernels->lanes != 0));
        }
    }
}

tn_products tn_products_own(const tn_kernels *kernels)
{
    return (tn_products){.name = kernels->name, .multiply = own_multiply, .kernels = kernels};
}

/* Multiplies by one column: a dot product per row. */
static void one_column(tn_dims d, tn_mat a, const tn_real *x, tn_product c)
{
    for (size_t i = 0; i < d.m; i++) {
        tn_real y = tn_vec_dot(d.k, a.at + i * a.stride, x);
        c.at[i * c.stride] = c.add ? c.at[i * c.stride] + y : y;
    }
}

void tn_gemm(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.k && b.stride >= d.n);
    if (d.n == 1 && b.stride == 1) {
        one_column(d, a, b.at, c);
    } else if (d.k == 1) { /* an outer product: row i is a_i times b */
        for (size_t i = 0; i < d.m; i++) {
            tn_vec_scale(d.n, c.at + i * c.stride, b.at, a.at[i * a.stride], c.add);
        }
    } else {
        by->multiply(by, &(tn_factors){d, a, b, c, false});
    }
}

void tn_gemm_at(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.m && b.stride >= d.n);
    if (d.n == 1 && c.stride == 1) { /* a sum of rows of a, weighted by b, in order */
        for (size_t r = 0; r < d.k; r++) {
            tn_vec_scale(d.m, c.at, a.at + r * a.stride, b.at[r * b.stride], c.add || r > 0);
        }
    } else {
        by->multiply(by, &(tn_factors){d, a, b, c, true});
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

/* ---- weights of 16 bits ---- */

enum { LINE_WORDS = LINE / 4 };

static size_t words_stride(size_t n)
{
    return (n + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS;
}

size_t tn_words_size(size_t k, size_t n)
{
    return tn_bf16_words(k) * words_stride(n);
}

/* Returns the upper half of a float that has `low` below it and is nearest to w. Never a denormal,
 * which is slow to multiply by: 0 instead, or 2^-60 where `low` would make one of it. */
static uint32_t upper_half(tn_real w, uint32_t low)
{
    const int64_t most = 0x7f7f;
    const int64_t normal = 0x0080;
    const int64_t least = 0x2180;
    const float f = (float)w;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    int64_t half = ((int64_t)(bits & INT32_MAX) - low + 0x8000) >> 16;
    if (low != 0) {
        half = half < least ? least : half;
    } else {
        half = half < normal ? 0 : half;
    }
    return (bits >> 16 & 0x8000) | (uint32_t)(half > most ? most : half);
}

static tn_real float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return (tn_real)f;
}

void tn_words_round(size_t k, size_t n, tn_real *w, tn_real *words)
{
    const size_t stride = words_stride(n);
    for (size_t p = 0; p < k; p += 2, words += stride) {
        tn_real *row = w + p * n;
        for (size_t j = 0; j < n; j++) {
            const uint32_t low = upper_half(row[j], 0);
            const uint32_t word = p + 1 < k ? upper_half(row[n + j], low) << 16 | low : low;
            row[j] = float_of(low << 16);
            if (p + 1 < k) {
                row[n + j] = float_of(word);
            }
            memcpy(words + j, &word, sizeof word);
        }
    }
}

bool tn_gemm_words(const tn_products *by, size_t k, size_t n, const tn_real *a,
                   const tn_real *words, tn_real *c)
{
    const tn_kernels *kernels = by->kernels;
    _Alignas(LINE) tn_real last[PANEL_MAX * 2];
    if (kernels == NULL || kernels->words == NULL) {
        return false;
    }
    const size_t lanes = kernels->lanes;
    const size_t vectors = (n + lanes - 1) / lanes;
    const size_t parts = (vectors + TN_WIDE_VECTORS - 1) / TN_WIDE_VECTORS;
    for (size_t p = 0; p < k; p += DEPTH_ALONG) {
        for (size_t i = 0; i < parts; i++) {
            const size_t from = vectors * i / parts;
            const size_t wide = vectors * (i + 1) / parts - from;
            const size_t cols = smaller(wide * lanes, n - from * lanes);
            tn_real *to = c + from * lanes;
            const bool whole = cols == wide * lanes;
            const tn_gemm_block block = {.depth = smaller(DEPTH_ALONG, k - p),
                                         .a = a + p,
                                         .b = words + p / 2 * words_stride(n) + from * lanes,
                                         .b_stride = words_stride(n),
                                         .c = whole ? to : last,
                                         .add = p > 0};
            kernels->words(&block, wide);
            if (!whole) { /* `last` has what came before, too */
                memcpy(to, last, cols * sizeof *to);
            }
        }
    }
    return true;
}

/* ---- bfloat16 ---- */

tn_status tn_bf16_products(tn_products *out, tn_error *err)
{
#if TN_KERNELS_AVX512
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16")) {
        *out = tn_products_own(&tn_kernels_bf16);
        return TN_OK;
    }
#endif
    (void)out;
    return tn_fail(err, TN_E_CONFIG,
                   "this processor has no products in bfloat16 (AVX512_BF16)\n"
                   "hint: leave it out; elsewhere it would be slower than float and less exact");
}

enum { BLOCK = 64 }; /* words on a side */

/* Blocks of words side by side are turned while they are in cache. */
void tn_bf16_pairs_transposed(size_t n, size_t k, tn_mat from, tn_product to)
{
    const size_t wide = (size_t)2 * BLOCK;
    tn_real block[BLOCK * BLOCK] = {0};
    tn_product words = {block, BLOCK, false};
    for (size_t j = 0; j < n; j += BLOCK) {
        size_t rows = n - j < BLOCK ? n - j : BLOCK;
        for (size_t p = 0; p < k; p += wide) {
            size_t cols = k - p < wide ? k - p : wide;
            tn_mat part = {from.at + j * from.stride + p, from.stride, false};
            tn_bf16_rows(rows, cols, part, words);
            tn_transpose(rows, tn_bf16_words(cols), (tn_mat){block, BLOCK, false},
                         (tn_product){to.at + p / 2 * to.stride + j, to.stride, false});
        }
    }
}
