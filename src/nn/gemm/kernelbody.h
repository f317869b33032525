/* kernelbody.h - the text of a kernel set (kernels.h), included once per vector width.
 *
 * Before: TARGET, VEC, LANES, VECTORS (in the widest panel: 2 or 4), ROWS (of a full block of one
 * or two vectors), with four also ROWS_OF_3 and ROWS_OF_4, LOAD, STORE, SPREAD (one float to all
 * lanes), FMA, ADD, ZERO, LOW (the lower halves of words as floats: gemm.h). After: run_blocks(),
 * run_words() and copy_panel(), the `run`, `words` and `copy` of a kernel set. Bounds of the inner
 * loops are constants in every use, so they unroll and the block stays in registers.
 */
#ifdef VEC

enum { PANEL = VECTORS * LANES, GROUPS = ROWS / 3, LINE = 64 };

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE __attribute__((always_inline)) TARGET static inline

/* Sums to c, assigned or added. */
INLINE void put(const tn_gemm_block *k, float *c, VEC sum[][VECTORS], const int rows,
                const int vectors)
{
    const size_t stride = k->c_stride;
    const float *before = c;
    if (k->add) {
        UNROLL for (int i = 0; i < rows; i++, before += stride)
        {
            UNROLL for (int v = 0; v < vectors; v++)
            {
                sum[i][v] = ADD(LOAD(before + (size_t)v * LANES), sum[i][v]);
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++, c += stride)
    {
        UNROLL for (int v = 0; v < vectors; v++)
        {
            STORE(c + (size_t)v * LANES, sum[i][v]);
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
INLINE void expect_panel(const float *b, const int vectors)
{
    const size_t width = (size_t)vectors * LANES * sizeof *b;
    UNROLL for (size_t v = 0; v < width; v += LINE)
    {
        EXPECT((uintptr_t)b + width + v, 2);
    }
}

/* c[i0 .. i0 + rows) (+)= a b, for 1 to VECTORS vectors of columns. a[g] is row 3 g: base + 1 or 2
 * strides is one address. */
INLINE void multiply(const tn_gemm_block *k, size_t i0, const int rows, const int vectors,
                     const bool across)
{
    VEC sum[ROWS][VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int v = 0; v < vectors; v++)
        {
            sum[i][v] = ZERO();
        }
    }
    VEC right[VECTORS];
    const float *a[GROUPS];
    const float *b = k->b;
    float *c = k->c + i0 * k->c_stride;
    UNROLL for (int g = 0; g < GROUPS; g++)
    {
        a[g] = across ? k->a + i0 : k->a + (i0 + 3 * (size_t)g) * k->a_stride;
    }
    for (size_t p = 0; p < k->depth; p++, b += k->b_stride) {
        if (across) {
            expect_across(a[0], k->a_stride);
        } else if (vectors > 1) {
            expect_panel(b, vectors);
        }
        UNROLL for (int v = 0; v < vectors; v++)
        {
            right[v] = LOAD(b + (size_t)v * LANES);
        }
        UNROLL for (int i = 0; i < rows; i++)
        {
            VEC left = SPREAD(across ? a[0] + i : a[i / 3] + (size_t)(i % 3) * k->a_stride);
            UNROLL for (int v = 0; v < vectors; v++)
            {
                sum[i][v] = FMA(left, right[v], sum[i][v]);
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

#define BLOCKS(vectors, full, layout, across)                                                      \
    TARGET static void run_##layout##_##vectors(const tn_gemm_block *k, size_t rows)               \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; rows - i >= (full); i += (full)) {                                                  \
            multiply(k, i, full, vectors, across);                                                 \
        }                                                                                          \
        for (; rows - i >= 4; i += 4) {                                                            \
            multiply(k, i, 4, vectors, across);                                                    \
        }                                                                                          \
        if (rows - i >= 2) {                                                                       \
            multiply(k, i, 2, vectors, across);                                                    \
            i += 2;                                                                                \
        }                                                                                          \
        if (rows - i >= 1) {                                                                       \
            multiply(k, i, 1, vectors, across);                                                    \
        }                                                                                          \
    }

BLOCKS(1, ROWS, along, false)
BLOCKS(2, ROWS, along, false)
BLOCKS(1, ROWS, across, true)
BLOCKS(2, ROWS, across, true)
#if VECTORS == 4
BLOCKS(3, ROWS_OF_3, along, false)
BLOCKS(4, ROWS_OF_4, along, false)
BLOCKS(3, ROWS_OF_3, across, true)
BLOCKS(4, ROWS_OF_4, across, true)
#endif

/* Stores the sums of one row. */
INLINE void put_row(const tn_gemm_block *k, const VEC *sum, const int vectors)
{
    UNROLL for (int v = 0; v < vectors; v++)
    {
        float *at = k->c + (size_t)v * LANES;
        STORE(at, k->add ? ADD(LOAD(at), sum[v]) : sum[v]);
    }
}

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
    put_row(k, sum, WIDE);
}

#ifdef LOW
/* One row by words, each two terms of the sum: the lower half's first. */
INLINE void multiply_words(const tn_gemm_block *k, const int vectors)
{
    enum { AHEAD = 8 }; /* rows; the processor guesses too few of them */
    VEC sum[WIDE];
    const float *b = k->b;
    UNROLL for (int v = 0; v < vectors; v++)
    {
        sum[v] = ZERO();
    }
    size_t p = 0;
    for (; p + 1 < k->depth; p += 2, b += k->b_stride) {
        VEC first = SPREAD(k->a + p);
        VEC second = SPREAD(k->a + p + 1);
        UNROLL for (size_t v = 0; v < (size_t)vectors * LANES * sizeof *b; v += LINE)
        {
            EXPECT((uintptr_t)(b + AHEAD * k->b_stride) + v, 3);
        }
        UNROLL for (int v = 0; v < vectors; v++)
        {
            VEC word = LOAD(b + (size_t)v * LANES);
            sum[v] = FMA(second, word, FMA(first, LOW(word), sum[v]));
        }
    }
    if (p < k->depth) {
        VEC last = SPREAD(k->a + p);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            sum[v] = FMA(last, LOW(LOAD(b + (size_t)v * LANES)), sum[v]);
        }
    }
    put_row(k, sum, vectors);
}

#define WORDS(vectors)                                                                             \
    TARGET static void words_##vectors(const tn_gemm_block *k)                                     \
    {                                                                                              \
        multiply_words(k, vectors);                                                                \
    }

WORDS(1)
WORDS(2)
WORDS(3)
WORDS(4)
WORDS(5)
WORDS(6)
WORDS(7)
WORDS(8)

static void run_words(const tn_gemm_block *k, size_t vectors)
{
    static void (*const words[WIDE])(const tn_gemm_block *k) = {words_1, words_2, words_3, words_4,
                                                                words_5, words_6, words_7, words_8};
    words[vectors - 1](k);
}
#endif

typedef void run_rows(const tn_gemm_block *k, size_t rows);

static void run_vectors(const tn_gemm_block *k, size_t rows, size_t cols)
{
#if VECTORS == 4
    static run_rows *const along[] = {run_along_1, run_along_2, run_along_3, run_along_4};
    static run_rows *const across[] = {run_across_1, run_across_2, run_across_3, run_across_4};
#else
    static run_rows *const along[] = {run_along_1, run_along_2};
    static run_rows *const across[] = {run_across_1, run_across_2};
#endif
    if (cols == (size_t)WIDE * LANES) {
        run_wide_row(k);
    } else {
        (k->across ? across : along)[(cols - 1) / LANES](k, rows);
    }
}

/* Columns that are no whole vectors go through a block of their own. */
static void run_narrow(const tn_gemm_block *k, size_t rows, size_t cols)
{
    enum { AT_ONCE = 24 }; /* whole blocks of any width */
    float c[AT_ONCE * PANEL];
    for (size_t i = 0; i < rows; i += AT_ONCE) {
        size_t n = rows - i < AT_ONCE ? rows - i : AT_ONCE;
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

/* Rows of a panel side by side. Those of the next depth are on their way. */
TARGET static void copy_panel(const tn_gemm_block *k, size_t cols, float *to)
{
    const float *b = k->b;
    for (size_t p = 0; p < k->depth; p++, b += k->b_stride) {
        for (size_t v = 0; v < cols; v += LANES, to += LANES) {
            EXPECT((uintptr_t)(b + v) + k->depth * k->b_stride * sizeof *b, 2);
            STORE(to, cols - v < LANES ? ZERO() : LOAD(b + v));
        }
        if (cols % LANES != 0) {
            memcpy(to - LANES, b + cols / LANES * LANES, cols % LANES * sizeof *to);
        }
    }
}

#endif
