/* gemm_backends.c - see gemm_backends.h: choosing, and trying what was chosen. */
#include "nn/gemm/gemm_backends.h"

#include "base/core/failpoint.h"

#include <stdio.h>

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
        return tn_products_openblas(out, err);
    case TN_PRODUCTS_ONEDNN:
        return tn_products_onednn(out, err);
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
            return tn_products_openblas(out, err);
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
