/* gemm_backends.c - OpenBLAS, loaded when it is chosen; the choice, and its trial.
 *
 * OpenBLAS picks its kernel, and so its rounding, by the shape of a call: hence tiles of fixed
 * size. When it is loaded it starts a pool of threads, which processors with kernels of our own can
 * do without. No header is needed to build: the interface of CBLAS is the same everywhere.
 */
#include "nn/gemm/gemm.h"

#include "base/core/failpoint.h"
#include "base/machine/library.h"
#include "nn/gemm/kernels.h"

#include <stdio.h>

#if defined(TN_REAL_DOUBLE)
#define GEMM "cblas_dgemm"
#else
#define GEMM "cblas_sgemm"
#endif

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112, SEQUENTIAL = 0 };

typedef void gemm(int order, int trans_a, int trans_b, int m, int n, int k, tn_real alpha,
                  const tn_real *a, int lda, const tn_real *b, int ldb, tn_real beta, tn_real *c,
                  int ldc);

static void openblas_multiply(const tn_products *by, const tn_factors *f)
{
    ((gemm *)by->library)(CBLAS_ROW_MAJOR, f->transposed ? CBLAS_TRANS : CBLAS_NO_TRANS,
                          CBLAS_NO_TRANS, (int)f->d.m, (int)f->d.n, (int)f->d.k, 1, f->a.at,
                          (int)f->a.stride, f->b.at, (int)f->b.stride, f->c.add ? 1 : 0, f->c.at,
                          (int)f->c.stride);
}

/* Calls that ask OpenBLAS about itself and set its threads. */
typedef struct openblas_calls {
    int (*parallel)(void);
    char *(*config)(void);
    char *(*core)(void);
    int (*threads)(void);
    void (*set_threads)(int n);
} openblas_calls;

static tn_status find_calls(void *library, const tn_library_name *name, openblas_calls *c,
                            tn_error *err)
{
    TN_TRY(tn_library_find(library, name, "openblas_get_parallel", &c->parallel, err));
    TN_TRY(tn_library_find(library, name, "openblas_get_config", &c->config, err));
    TN_TRY(tn_library_find(library, name, "openblas_get_corename", &c->core, err));
    TN_TRY(tn_library_find(library, name, "openblas_get_num_threads", &c->threads, err));
    return tn_library_find(library, name, "openblas_set_num_threads", &c->set_threads, err);
}

static tn_status find_openblas(tn_products *out, tn_error *err)
{
    static const tn_library_name name = {
        "libopenblas.so.0", "openblas, which makes matrix products without AVX2 or by choice,",
        "install libopenblas0-pthread"};
    void *library = NULL;
    openblas_calls c;
    tn_products p = {.name = "openblas", .multiply = openblas_multiply};
    TN_TRY(tn_library_load(&library, &name, err));
    TN_TRY(tn_library_find(library, &name, GEMM, &p.library, err));
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

/* ---- the choice ---- */

const tn_kernels *tn_kernels_find(void)
{
#if TN_KERNELS_AVX512
    if (__builtin_cpu_supports("avx512f")) {
        return &tn_kernels_avx512;
    }
#endif
#if TN_KERNELS_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &tn_kernels_avx2;
    }
#endif
    return NULL;
}

enum { TEST = 37, TEST_STRIDE = 40 };

typedef struct test_matrices {
    tn_real a[TEST * TEST_STRIDE];
    tn_real b[TEST * TEST_STRIDE];
    tn_real c[TEST * TEST_STRIDE];
} test_matrices;

/* Fills with small integers: every order of additions gives the same sum. */
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

static bool is_right(const tn_products *p, bool transposed)
{
    test_matrices t;
    fill(&t);
    (transposed ? tn_gemm_at
                : tn_gemm)(p, (tn_dims){TEST, TEST, TEST}, (tn_mat){t.a, TEST_STRIDE, false},
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

static tn_status choose(tn_products *out, tn_products_choice choice, tn_error *err)
{
    const tn_kernels *kernels = tn_failpoint("nn.no_kernels") != 0 ? NULL : tn_kernels_find();
#if TN_KERNELS_SSE2
    if (choice == TN_PRODUCTS_ALONE && kernels == NULL) {
        kernels = &tn_kernels_sse2;
    }
#endif
    switch (choice) {
    case TN_PRODUCTS_OPENBLAS:
        return find_openblas(out, err);
    case TN_PRODUCTS_OWN:
        if (kernels == NULL) {
            return tn_fail(err, TN_E_CONFIG,
                           "this processor has neither AVX-512 nor AVX2 with fused multiply-add\n"
                           "hint: choose 'auto'");
        }
        break;
    case TN_PRODUCTS_AUTO:
    case TN_PRODUCTS_ALONE:
        if (kernels == NULL) {
            return find_openblas(out, err);
        }
        break;
    }
    *out = tn_products_own(kernels);
    return TN_OK;
}

tn_status tn_products_find(tn_products *out, tn_products_choice choice, tn_error *err)
{
    tn_products p;
    TN_TRY(choose(&p, choice, err));
    if (!is_right(&p, false) || !is_right(&p, true)) {
        char name[TN_PRODUCTS_NAME];
        tn_products_describe(&p, name);
        return tn_fail(err, TN_E_CONFIG, "matrix products of '%s' are wrong on this processor",
                       name);
    }
    *out = p;
    return TN_OK;
}

void tn_products_describe(const tn_products *p, char out[TN_PRODUCTS_NAME])
{
    if (p->core != NULL) {
        (void)snprintf(out, TN_PRODUCTS_NAME, "%s (%s)", p->name, p->core);
    } else {
        (void)snprintf(out, TN_PRODUCTS_NAME, "%s", p->name);
    }
}
