/* kernelruns.h - blocks of all heights, one below the other; included after kernelbody.h.
 *
 * After: run_blocks(), the `run` of a kernel set.
 */
#ifdef VEC

enum { WIDE = TN_WIDE_VECTORS };

/* Blocks of few rows read b for little: what is left of 16 rows is 8 and 8, not 12 and 4. */
enum { HALF = 8, HALVES = ROWS > HALF ? 2 * HALF : 0 };

static inline bool takes_full(size_t left)
{
    return left >= ROWS && (HALVES == 0 || left != HALVES);
}

#define BLOCKS(vectors, layout, across)                                                            \
    TARGET static void run_##layout##_##vectors(const tn_gemm_block *k, size_t rows)               \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; takes_full(rows - i); i += ROWS) {                                                  \
            multiply(k, i, ROWS, vectors, across);                                                 \
        }                                                                                          \
        for (; HALVES > 0 && rows - i >= HALF; i += HALF) {                                        \
            multiply(k, i, HALVES / 2, vectors, across);                                           \
        }                                                                                          \
        if (rows - i >= 4) {                                                                       \
            multiply(k, i, 4, vectors, across);                                                    \
            i += 4;                                                                                \
        }                                                                                          \
        if (rows - i >= 2) {                                                                       \
            multiply(k, i, 2, vectors, across);                                                    \
            i += 2;                                                                                \
        }                                                                                          \
        if (rows - i >= 1) {                                                                       \
            multiply(k, i, 1, vectors, across);                                                    \
        }                                                                                          \
    }

BLOCKS(1, along, false)
BLOCKS(2, along, false)
BLOCKS(1, across, true)
BLOCKS(2, across, true)

/* One row at a time is how a single example is scored: eight vectors keep the adders busy. */
TARGET static void run_wide_row(const tn_gemm_block *k)
{
    VEC sum[WIDE];
    const float *b = k->b;
    UNROLL for (int v = 0; v < WIDE; v++)
    {
        sum[v] = ZERO();
    }
    for (size_t p = 0; p < k->depth; p++, b += k->b_stride) {
        VEC left = SPREAD(k->a + p);
        UNROLL for (int v = 0; v < WIDE; v++)
        {
            sum[v] = FMA(left, LOAD(b + (size_t)v * LANES), sum[v]);
        }
    }
    UNROLL for (int v = 0; v < WIDE; v++)
    {
        float *at = k->c + (size_t)v * LANES;
        STORE(at, k->add ? ADD(LOAD(at), sum[v]) : sum[v]);
    }
}

static void run_vectors(const tn_gemm_block *k, size_t rows, size_t cols)
{
    if (cols == (size_t)WIDE * LANES && rows == 1 && !k->across) {
        run_wide_row(k);
    } else if (k->across) {
        (cols > LANES ? run_across_2 : run_across_1)(k, rows);
    } else {
        (cols > LANES ? run_along_2 : run_along_1)(k, rows);
    }
}

/* Columns that are no whole vectors go through a block of their own. */
static void run_narrow(const tn_gemm_block *k, size_t rows, size_t cols)
{
    float c[ROWS * PANEL];
    for (size_t i = 0; i < rows; i += ROWS) {
        size_t n = rows - i < ROWS ? rows - i : ROWS;
        tn_gemm_block part = *k;
        part.a += k->across ? i : i * k->a_stride;
        part.c = c;
        part.c_stride = PANEL;
        part.add = false;
        run_vectors(&part, n, cols);
        for (size_t r = 0; r < n; r++) {
            float *to = k->c + (i + r) * k->c_stride;
            for (size_t j = 0; j < cols; j++) {
                to[j] = k->add ? to[j] + c[r * PANEL + j] : c[r * PANEL + j];
            }
        }
    }
}

static void run_blocks(const tn_gemm_block *k, size_t rows, size_t cols)
{
    (cols % LANES == 0 ? run_vectors : run_narrow)(k, rows, cols);
}

#endif
