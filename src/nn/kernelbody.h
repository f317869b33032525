/* kernelbody.h - the text of a kernel set (kernels.h), included once per vector width.
 *
 * Before: TARGET, VEC, LANES, ROWS (of a full block), LOAD, STORE, SPREAD (one float to all lanes),
 * FMA, ADD, ZERO. After: run_blocks(). Bounds of the inner loops are constants in every use, so
 * they unroll and the block stays in registers.
 */
// NOLINTBEGIN(llvm-header-guard): a text, not a header

enum { VECTORS = 2, PANEL = VECTORS * LANES, GROUPS = ROWS / 3 };

/* c[i0 .. i0 + rows) (+)= a b, for 1 or 2 vectors of columns. */
__attribute__((always_inline)) TARGET static inline void
multiply(const tn_block *k, size_t i0, const int rows, const int vectors, const bool across)
{
    VEC sum[ROWS][VECTORS];
    VEC right[VECTORS];
    const size_t stride = k->a_stride;
    const float *a[GROUPS]; /* of rows 0, 3, 6, ..: base + 1 or 2 strides is one address */
    const float *b = k->b;
#pragma GCC unroll 4
    for (int g = 0; g < GROUPS; g++) {
        a[g] = across ? k->a + i0 : k->a + (i0 + 3 * (size_t)g) * stride;
    }
    float *c = k->c + i0 * k->c_stride;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            sum[i][v] = ZERO();
            __builtin_prefetch(c + (size_t)i * k->c_stride + (size_t)v * LANES, 1);
        }
    }
    for (size_t p = 0; p < k->depth; p++, b += k->b_stride) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            right[v] = LOAD(b + (size_t)v * LANES);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            VEC left = SPREAD(across ? a[0] + i : a[i / 3] + (size_t)(i % 3) * stride);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                sum[i][v] = FMA(left, right[v], sum[i][v]);
            }
        }
#pragma GCC unroll 4
        for (int g = 0; g < GROUPS; g++) {
            a[g] += across ? stride : 1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++, c += k->c_stride) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            float *at = c + (size_t)v * LANES;
            STORE(at, k->add ? ADD(LOAD(at), sum[i][v]) : sum[i][v]);
        }
    }
}

#define BLOCKS(vectors, layout, across)                                                            \
    TARGET static void run_##layout##_##vectors(const tn_block *k, size_t rows)                    \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; rows - i >= ROWS; i += ROWS) {                                                      \
            multiply(k, i, ROWS, vectors, across);                                                 \
        }                                                                                          \
        if (ROWS > 8 && rows - i >= 8) {                                                           \
            multiply(k, i, ROWS > 8 ? 8 : 1, vectors, across);                                     \
            i += 8;                                                                                \
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

static void run_vectors(const tn_block *k, size_t rows, size_t cols)
{
    if (k->across) {
        (cols > LANES ? run_across_2 : run_across_1)(k, rows);
    } else {
        (cols > LANES ? run_along_2 : run_along_1)(k, rows);
    }
}

/* Columns that are no whole vectors go through a block of their own. */
static void run_narrow(const tn_block *k, size_t rows, size_t cols)
{
    float c[ROWS * PANEL];
    for (size_t i = 0; i < rows; i += ROWS) {
        size_t n = rows - i < ROWS ? rows - i : ROWS;
        tn_block part = *k;
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

static void run_blocks(const tn_block *k, size_t rows, size_t cols)
{
    (cols % LANES == 0 ? run_vectors : run_narrow)(k, rows, cols);
}

// NOLINTEND(llvm-header-guard)
