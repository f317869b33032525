/* gemm.c - see gemm.h. */
#include "nn/gemm.h"

#include "nn/vec.h"

#include <cblas.h>
#include <string.h>

static void multiply(const CBLAS_TRANSPOSE trans[2], tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    blasint m = (blasint)d.m;
    blasint n = (blasint)d.n;
    blasint k = (blasint)d.k;
#ifdef TN_REAL_DOUBLE
    cblas_dgemm(CblasRowMajor, trans[0], trans[1], m, n, k, 1, a.at, (blasint)a.stride, b.at,
                (blasint)b.stride, c.add, c.at, (blasint)c.stride);
#else
    cblas_sgemm(CblasRowMajor, trans[0], trans[1], m, n, k, 1, a.at, (blasint)a.stride, b.at,
                (blasint)b.stride, c.add ? 1.0F : 0.0F, c.at, (blasint)c.stride);
#endif
}

/* Plain loops where OpenBLAS is slow: one column. */
static void column(tn_dims d, tn_mat a, const tn_real *x, size_t x_step, tn_product c)
{
    TN_ASSERT(x_step == 1);
    for (size_t i = 0; i < d.m; i++) {
        tn_real y = tn_vec_dot(d.k, a.at + i * a.stride, x);
        c.at[i * c.stride] = c.add ? c.at[i * c.stride] + y : y;
    }
}

void tn_gemm(tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.k && b.stride >= d.n);
    if (d.n == 1 && b.stride == 1) {
        column(d, a, b.at, 1, c);
    } else {
        multiply((const CBLAS_TRANSPOSE[]){CblasNoTrans, CblasNoTrans}, d, a, b, c);
    }
}

void tn_gemm_bt(tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.k && b.stride >= d.k);
    if (d.k == 1 && b.stride == 1) { /* an outer product: row i is a_i times b */
        for (size_t i = 0; i < d.m; i++) {
            tn_vec_scale(d.n, c.at + i * c.stride, b.at, a.at[i * a.stride], c.add);
        }
    } else {
        multiply((const CBLAS_TRANSPOSE[]){CblasNoTrans, CblasTrans}, d, a, b, c);
    }
}

void tn_gemm_at(tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.m && b.stride >= d.n);
    if (d.n == 1 && c.stride == 1) { /* a sum of rows of a, weighted by b, in order */
        for (size_t r = 0; r < d.k; r++) {
            tn_vec_scale(d.m, c.at, a.at + r * a.stride, b.at[r * b.stride], c.add || r > 0);
        }
    } else {
        multiply((const CBLAS_TRANSPOSE[]){CblasTrans, CblasNoTrans}, d, a, b, c);
    }
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

static bool entry_is_right(const test_matrices *t, int i, int j, int kind)
{
    tn_real sum = (tn_real)((i * TEST_STRIDE + j) % 3);
    for (int k = 0; k < TEST; k++) {
        tn_real a = kind == 2 ? t->a[k * TEST_STRIDE + i] : t->a[i * TEST_STRIDE + k];
        tn_real b = kind == 1 ? t->b[j * TEST_STRIDE + k] : t->b[k * TEST_STRIDE + j];
        sum += a * b;
    }
    tn_real diff = sum - t->c[i * TEST_STRIDE + j];
    return diff <= 0 && diff >= 0;
}

static bool self_test(int kind)
{
    static void (*const product[])(tn_dims, tn_mat, tn_mat, tn_product) = {tn_gemm, tn_gemm_bt,
                                                                           tn_gemm_at};
    test_matrices t;
    fill(&t);
    product[kind]((tn_dims){TEST, TEST, TEST}, (tn_mat){t.a, TEST_STRIDE},
                  (tn_mat){t.b, TEST_STRIDE}, (tn_product){t.c, TEST_STRIDE, true});
    for (int i = 0; i < TEST; i++) {
        for (int j = 0; j < TEST; j++) {
            if (!entry_is_right(&t, i, j, kind)) {
                return false;
            }
        }
    }
    return true;
}

tn_status tn_gemm_check(tn_error *err)
{
    if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) {
        return tn_fail(err, TN_E_USAGE,
                       "this build of openblas is not safe for threads ('%s')\n"
                       "hint: install libopenblas0-pthread",
                       openblas_get_config());
    }
    if (openblas_get_num_threads() != 1) {
        openblas_set_num_threads(1);
    }
    for (int kind = 0; kind < 3; kind++) {
        if (!self_test(kind)) {
            return tn_fail(err, TN_E_USAGE, "openblas ('%s') multiplies wrongly on this processor",
                           openblas_get_config());
        }
    }
    return TN_OK;
}
