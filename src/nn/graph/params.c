/* params.c - dense weights: names and shapes in an arena, values in two flat vectors. */
#include "nn/graph/params.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/rng.h"
#include "nn/gemm/gemm.h"

#include <string.h>

enum { SLICES_MAX = 4096, SLICE_ALIGN = 16, CHUNK_BYTES = 1 << 14 };

struct tn_params {
    tn_arena *arena;
    uint32_t n;
    tn_param_slice *slice; /* SLICES_MAX of them */
    size_t size;
    tn_real *weights; /* NULL until sealed */
    tn_real *grads;
    tn_real *words; /* NULL: not rounded */
};

static tn_params *params_in(tn_arena *arena)
{
    tn_params *p = TN_NEW(arena, tn_params);
    p->arena = arena;
    p->slice = TN_NEW_ARRAY(arena, tn_param_slice, SLICES_MAX);
    return p;
}

tn_params *tn_params_new(void)
{
    return params_in(tn_arena_new(CHUNK_BYTES));
}

tn_status tn_params_open(tn_params **out, tn_error *err)
{
    enum { BYTES = sizeof(tn_params) + SLICES_MAX * sizeof(tn_param_slice) + TN_CACHE_LINE };
    tn_arena *arena = NULL;
    *out = NULL;
    TN_TRY(tn_arena_open(&arena, BYTES, "names of dense weights", err));
    *out = params_in(arena);
    return TN_OK;
}

tn_status tn_params_reserve(tn_params *p, size_t bytes, tn_error *err)
{
    return tn_arena_reserve(p->arena, bytes, "names of dense weights", err);
}

void tn_params_free(tn_params *p)
{
    if (p != NULL) {
        tn_free(p->weights);
        tn_free(p->grads);
        tn_free(p->words);
        tn_arena_free(p->arena); /* and with it, p */
    }
}

const tn_param_slice *tn_params_find(const tn_params *p, const char *name)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (strcmp(p->slice[i].name, name) == 0) {
            return &p->slice[i];
        }
    }
    return NULL;
}

uint32_t tn_params_add(tn_params *p, const char *name, uint32_t rows, uint32_t cols, bool train,
                       tn_init init)
{
    const tn_param_slice *old = tn_params_find(p, name);
    if (old != NULL) {
        TN_ASSERT(old->rows == rows && old->cols == cols);
        return (uint32_t)(old - p->slice);
    }
    TN_ASSERT(p->weights == NULL && p->n < SLICES_MAX && rows > 0 && cols > 0);
    size_t size = strlen(name) + 1;
    char *copy = tn_arena_alloc(p->arena, size, 1, 1);
    memcpy(copy, name, size);
    p->slice[p->n] = (tn_param_slice){.name = copy,
                                      .rows = rows,
                                      .cols = cols,
                                      .at = p->size,
                                      .train = train,
                                      .state = !train,
                                      .init = init};
    size_t count = (size_t)rows * cols;
    p->size += (count + SLICE_ALIGN - 1) / SLICE_ALIGN * SLICE_ALIGN;
    return p->n++;
}

tn_status tn_params_seal(tn_params *p, tn_error *err)
{
    if (p->weights != NULL) {
        return TN_OK;
    }
    size_t size = p->size > 0 ? p->size : SLICE_ALIGN;
    p->weights = tn_try_alloc(size, sizeof *p->weights, "dense weights", err);
    p->grads = tn_try_alloc(size, sizeof *p->grads, "gradients of dense weights", err);
    if (p->weights == NULL || p->grads == NULL) {
        tn_free(p->weights);
        tn_free(p->grads);
        p->weights = NULL;
        p->grads = NULL;
        return TN_E_MEMORY;
    }
    return TN_OK;
}

void tn_params_init(tn_params *p, uint64_t seed)
{
    TN_ASSERT(p->weights != NULL);
    for (uint32_t k = 0; k < p->n; k++) {
        const tn_param_slice *s = &p->slice[k];
        uint64_t stream = tn_stream2(seed, TN_RNG_DENSE, tn_name64(s->name));
        size_t count = (size_t)s->rows * s->cols;
        for (size_t i = 0; i < count; i++) {
            p->weights[s->at + i] = (tn_real)tn_init_value(&s->init, stream, i, s->rows, s->cols);
        }
    }
}

uint32_t tn_params_count(const tn_params *p)
{
    return p->n;
}

const tn_param_slice *tn_params_get(const tn_params *p, uint32_t i)
{
    TN_ASSERT(i < p->n);
    return &p->slice[i];
}

size_t tn_params_size(const tn_params *p)
{
    return p->size;
}

uint64_t tn_params_trained(const tn_params *p)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        total += p->slice[i].state ? 0 : (uint64_t)p->slice[i].rows * p->slice[i].cols;
    }
    return total;
}

tn_real *tn_params_weights(tn_params *p)
{
    TN_ASSERT(p->weights != NULL);
    return p->weights;
}

tn_real *tn_params_grads(tn_params *p)
{
    TN_ASSERT(p->grads != NULL);
    return p->grads;
}

void tn_params_freeze(tn_params *p, uint32_t slice)
{
    TN_ASSERT(slice < p->n);
    p->slice[slice].train = false;
}

void tn_params_hold(tn_params *p, uint32_t slice)
{
    TN_ASSERT(slice < p->n);
    p->slice[slice].held = true;
}

static bool is_matrix(const tn_param_slice *s)
{
    return s->rows > 1 && s->cols > 1;
}

tn_status tn_params_round(tn_params *p, tn_error *err)
{
    size_t size = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        p->slice[i].words_at = size;
        size += is_matrix(&p->slice[i]) ? tn_words_size(p->slice[i].rows, p->slice[i].cols) : 0;
    }
    TN_TRY(TN_ALLOC(p->words, size + SLICE_ALIGN, "weights of 16 bits", err));
    for (uint32_t i = 0; i < p->n; i++) {
        const tn_param_slice *s = &p->slice[i];
        if (is_matrix(s)) {
            tn_words_round(s->rows, s->cols, p->weights + s->at, p->words + s->words_at);
        }
    }
    return TN_OK;
}

const tn_real *tn_params_words(const tn_params *p, uint32_t slice)
{
    const bool has = p->words != NULL && is_matrix(&p->slice[slice]);
    return has ? p->words + p->slice[slice].words_at : NULL;
}
