/* kernelbody.h - the text of a kernel set (kernels.h), included once per vector width.
 *
 * Before: TARGET, VEC, LANES, ROWS (of a full block), LOAD, STORE, SPREAD (one float to all lanes),
 * FMA, ADD, ZERO. After: run_blocks(), the `run` of a kernel set. Bounds of the inner
 * loops are constants in every use, so they unroll and the block stays in registers.
 */
#ifdef VEC

enum { VECTORS = 2, PANEL = VECTORS * LANES, GROUPS = ROWS / 3, LINE = 64 };

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE __attribute__((always_inline)) TARGET static inline

/* Empty sums; c is on its way. */
INLINE void begin(const tn_gemm_block *k, float *c, VEC sum[][VECTORS], const int rows,
                  const int vectors)
{
    UNROLL for (int i = 0; i < rows; i++, c += k->c_stride)
    {
        UNROLL for (int v = 0; v < vectors; v++)
        {
            sum[i][v] = ZERO();
            __builtin_prefetch(c + (size_t)v * LANES, 1);
        }
    }
}

/* Sums to c, assigned or added. */
INLINE void put(const tn_gemm_block *k, float *c, VEC sum[][VECTORS], const int rows,
                const int vectors)
{
    UNROLL for (int i = 0; i < rows; i++, c += k->c_stride)
    {
        UNROLL for (int v = 0; v < vectors; v++)
        {
            float *at = c + (size_t)v * LANES;
            STORE(at, k->add ? ADD(LOAD(at), sum[i][v]) : sum[i][v]);
        }
    }
}

/* Lines to come, to the first or second level. They may lie beyond the matrix, so they are numbers;
 * a macro, since the level must be a constant before anything is inlined. */
#define EXPECT(at, level)                                                                          \
    __builtin_prefetch((const void *)(at), 0, level) // NOLINT(performance-no-int-to-ptr)

/* `across`, a is read one line per step: the line beside, which the next rows are made of, and that
 * of the next depth. */
INLINE void expect_across(const float *a, size_t stride)
{
    EXPECT((uintptr_t)a + LINE, 3);
    EXPECT((uintptr_t)a + TN_DEPTH_ACROSS * stride * sizeof *a, 2);
}

/* Rows of b lie apart, so the processor does not guess the next panel. It is in no cache when a
 * batch comes to a layer: without this, 128 rows take half as long again (400 x 400). */
INLINE void expect_panel(const float *b)
{
    UNROLL for (size_t v = 0; v < PANEL * sizeof *b; v += LINE)
    {
        EXPECT((uintptr_t)b + PANEL * sizeof *b + v, 2);
    }
}

/* c[i0 .. i0 + rows) (+)= a b, for 1 or 2 vectors of columns. a[g] is row 3 g: base + 1 or 2
 * strides is one address. */
INLINE void multiply(const tn_gemm_block *k, size_t i0, const int rows, const int vectors,
                     const bool across)
{
    VEC sum[ROWS][VECTORS];
    VEC right[VECTORS];
    const float *a[GROUPS];
    const float *b = k->b;
    float *c = k->c + i0 * k->c_stride;
    UNROLL for (int g = 0; g < GROUPS; g++)
    {
        a[g] = across ? k->a + i0 : k->a + (i0 + 3 * (size_t)g) * k->a_stride;
    }
    begin(k, c, sum, rows, vectors);
    for (size_t p = 0; p < k->depth; p++, b += k->b_stride) {
        if (across) {
            expect_across(a[0], k->a_stride);
        } else if (vectors == VECTORS) {
            expect_panel(b);
        }
        UNROLL for (int v = 0; v < vectors; v++)
        {
            right[v] = LOAD(b + (size_t)v * LANES);
        }
        UNROLL for (int i = 0; i < rows; i++)
        {
            VEC left = SPREAD(across ? a[0] + i : a[i / 3] + (size_t)(i % 3) * k->a_stride);
            sum[i][0] = FMA(left, right[0], sum[i][0]);
            if (vectors == VECTORS) {
                sum[i][1] = FMA(left, right[1], sum[i][1]);
            }
        }
        UNROLL for (int g = 0; g < GROUPS; g++)
        {
            a[g] += across ? k->a_stride : 1;
        }
    }
    put(k, c, sum, rows, vectors);
}

/* Blocks of all heights, one below the other. */

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
