/* gemm_onednn.c - products by oneDNN, loaded when somebody asks for it.
 *
 * Its C++ runtime, OpenMP and OpenCL loader would cost every start of every program a few
 * milliseconds and megabytes, so no program is linked with it. The header is needed to build, the
 * library to run.
 *
 * Debian's oneDNN spreads a product over OpenMP threads. Parallelism is ours, so each call says
 * first that it wants one; that is a note of the calling thread alone.
 */
#include "base/machine/library.h"
#include "nn/gemm/gemm_backends.h"

#if defined(TN_HAVE_ONEDNN) && !defined(TN_REAL_DOUBLE)
#include <dnnl.h>

typedef void set_threads(int n);

enum { SGEMM, SET_THREADS };

#define TEXT_OF(number) #number
#define LIBRARY(major) "libdnnl.so." TEXT_OF(major)

static void multiply(const tn_products *by, const tn_factors *f)
{
    __typeof__(dnnl_sgemm) *sgemm = (__typeof__(dnnl_sgemm) *)by->library[SGEMM];
    ((set_threads *)by->library[SET_THREADS])(1);
    dnnl_status_t status =
        sgemm(f->transposed ? 'T' : 'N', 'N', (dnnl_dim_t)f->d.m, (dnnl_dim_t)f->d.n,
              (dnnl_dim_t)f->d.k, 1, f->a.at, (dnnl_dim_t)f->a.stride, f->b.at,
              (dnnl_dim_t)f->b.stride, f->c.add ? 1 : 0, f->c.at, (dnnl_dim_t)f->c.stride);
    TN_ASSERT(status == dnnl_success);
}

static tn_status load(tn_products *out, tn_error *err)
{
    static const tn_library_name name = {LIBRARY(DNNL_VERSION_MAJOR), "onednn",
                                         "install libdnnl2, or choose 'auto'"};
    void *library = NULL;
    tn_products p = {.name = "onednn (" LIBRARY(DNNL_VERSION_MAJOR) ")", .multiply = multiply};
    TN_TRY(tn_library_load(&library, &name, err));
    TN_TRY(tn_library_find(library, &name, "dnnl_sgemm", &p.library[SGEMM], err));
    TN_TRY(tn_library_find(library, &name, "omp_set_num_threads", &p.library[SET_THREADS], err));
    *out = p;
    return TN_OK;
}

#endif

tn_status tn_products_onednn(tn_products *out, tn_error *err)
{
#if defined(TN_HAVE_ONEDNN) && !defined(TN_REAL_DOUBLE)
    return load(out, err);
#else
    (void)out;
    return tn_fail(err, TN_E_CONFIG,
                   "this build has no onednn\n"
                   "hint: install libdnnl-dev and build again, or choose 'auto'");
#endif
}
