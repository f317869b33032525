/* gemm_openblas.c - products by OpenBLAS, loaded when somebody asks for it.
 *
 * Its kernel, and so its rounding, depends on the shape of a call: hence tiles of fixed size. When
 * it is loaded it starts a pool of threads, which processors with kernels of our own can do
 * without. No header is needed to build: the interface of CBLAS is the same everywhere.
 */
#include "base/machine/library.h"
#include "nn/gemm/gemm_backends.h"

#if defined(TN_REAL_DOUBLE)
#define GEMM "cblas_dgemm"
#else
#define GEMM "cblas_sgemm"
#endif

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112, SEQUENTIAL = 0 };

typedef void gemm(int order, int trans_a, int trans_b, int m, int n, int k, tn_real alpha,
                  const tn_real *a, int lda, const tn_real *b, int ldb, tn_real beta, tn_real *c,
                  int ldc);

static void multiply(const tn_products *by, const tn_factors *f)
{
    ((gemm *)by->library[0])(CBLAS_ROW_MAJOR, f->transposed ? CBLAS_TRANS : CBLAS_NO_TRANS,
                             CBLAS_NO_TRANS, (int)f->d.m, (int)f->d.n, (int)f->d.k, 1, f->a.at,
                             (int)f->a.stride, f->b.at, (int)f->b.stride, f->c.add ? 1 : 0, f->c.at,
                             (int)f->c.stride);
}

/* What it says of itself, and what it is told. */
typedef struct calls {
    int (*parallel)(void);
    char *(*config)(void);
    char *(*core)(void);
    int (*threads)(void);
    void (*set_threads)(int n);
} calls;

static tn_status find_calls(void *library, const tn_library_name *name, calls *c, tn_error *err)
{
    TN_TRY(tn_library_find(library, name, "openblas_get_parallel", &c->parallel, err));
    TN_TRY(tn_library_find(library, name, "openblas_get_config", &c->config, err));
    TN_TRY(tn_library_find(library, name, "openblas_get_corename", &c->core, err));
    TN_TRY(tn_library_find(library, name, "openblas_get_num_threads", &c->threads, err));
    return tn_library_find(library, name, "openblas_set_num_threads", &c->set_threads, err);
}

tn_status tn_products_openblas(tn_products *out, tn_error *err)
{
    static const tn_library_name name = {
        "libopenblas.so.0", "openblas, which makes matrix products without AVX2 or by choice,",
        "install libopenblas0-pthread"};
    void *library = NULL;
    calls c;
    tn_products p = {.name = "openblas", .multiply = multiply};
    TN_TRY(tn_library_load(&library, &name, err));
    TN_TRY(tn_library_find(library, &name, GEMM, &p.library[0], err));
    TN_TRY(find_calls(library, &name, &c, err));
    if (c.parallel() == SEQUENTIAL) {
        return tn_fail(err, TN_E_CONFIG,
                       "this build of openblas is not safe for threads ('%s')\n"
                       "hint: install libopenblas0-pthread",
                       c.config());
    }
    if (c.threads() != 1) {
        c.set_threads(1);
    }
    p.core = c.core();
    *out = p;
    return TN_OK;
}
