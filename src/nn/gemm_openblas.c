/* gemm_openblas.c - products by OpenBLAS, which is always there. Its kernel, and so its rounding,
 * depends on the shape of a call: hence tiles of fixed size. */
#include "nn/products.h"

#include <cblas.h>

static void multiply(const tn_products *by, const tn_factors *f)
{
    (void)by;
    const CBLAS_TRANSPOSE trans = f->transposed ? CblasTrans : CblasNoTrans;
    int m = (int)f->d.m;
    int n = (int)f->d.n;
    int k = (int)f->d.k;
#ifdef TN_REAL_DOUBLE
    cblas_dgemm(CblasRowMajor, trans, CblasNoTrans, m, n, k, 1, f->a.at, (int)f->a.stride, f->b.at,
                (int)f->b.stride, f->c.add ? 1 : 0, f->c.at, (int)f->c.stride);
#else
    cblas_sgemm(CblasRowMajor, trans, CblasNoTrans, m, n, k, 1, f->a.at, (int)f->a.stride, f->b.at,
                (int)f->b.stride, f->c.add ? 1 : 0, f->c.at, (int)f->c.stride);
#endif
}

tn_status tn_products_openblas(tn_products *out, tn_error *err)
{
    if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) {
        return tn_fail(err, TN_E_CONFIG,
                       "this build of openblas is not safe for threads ('%s')\n"
                       "hint: install libopenblas0-pthread",
                       openblas_get_config());
    }
    if (openblas_get_num_threads() != 1) {
        openblas_set_num_threads(1);
    }
    *out = (tn_products){.name = "openblas", .multiply = multiply};
    return TN_OK;
}

const char *tn_openblas_core(void)
{
    return openblas_get_corename();
}
