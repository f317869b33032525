/* generate_params.c - a bit for every id of every slot, set when a row holds it.
 *
 * Not all parameters that occur are free. A slot that always has exactly one value adds a constant
 * to itself and takes it from the bias, so it has one weight less; the same holds for its vectors,
 * whose constant part moves into the weights of the other slots. And the vectors of fm may be
 * rotated together: k (k - 1) / 2 directions change nothing, k^2 when only two slots meet.
 */
#include "io/synth/generate_params.h"

#include "base/core/alloc.h"
#include "io/synth/generate_world.h"

#include <math.h>
#include <stdatomic.h>

#define BITS_MAX (UINT64_C(1) << 32) /* half a gigabyte */

struct tn_gen_params {
    const tn_generator *g;
    uint64_t *at; /* n_slots + 1: first bit of each slot; NULL: too many ids to count */
    _Atomic uint64_t *bits;
};

static uint64_t ids_of(const tn_gen_slot *slot)
{
    return slot->kind == TN_GEN_NUMBER ? 1 : slot->ids;
}

tn_status tn_gen_params_new(tn_gen_params **out, const tn_generator *g, tn_error *err)
{
    *out = NULL;
    tn_gen_params *p = tn_alloc(1, sizeof *p, "a count of parameters");
    p->g = g;
    uint64_t n = 0;
    for (uint32_t s = 0; s < g->n_slots; s++) {
        n += ids_of(&g->slot[s]);
    }
    if (n > BITS_MAX) {
        *out = p;
        return TN_OK;
    }
    p->at = tn_try_alloc((size_t)g->n_slots + 1, sizeof *p->at, "a count of parameters", err);
    p->bits = tn_try_alloc(n / 64 + 1, sizeof *p->bits, "a count of parameters", err);
    if (p->at == NULL || p->bits == NULL) {
        tn_gen_params_free(p);
        return TN_E_MEMORY;
    }
    for (uint32_t s = 0; s < g->n_slots; s++) {
        p->at[s + 1] = p->at[s] + ids_of(&g->slot[s]);
    }
    *out = p;
    return TN_OK;
}

void tn_gen_params_free(tn_gen_params *p)
{
    if (p != NULL) {
        tn_free(p->at);
        tn_free(p->bits);
        tn_free(p);
    }
}

static void set_bit(tn_gen_params *p, uint64_t i)
{
    _Atomic uint64_t *word = &p->bits[i / 64];
    uint64_t bit = UINT64_C(1) << (i % 64);
    if ((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0) {
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    }
}

void tn_gen_params_see(tn_gen_params *p, const tn_gen_row *row)
{
    if (p->at == NULL) {
        return;
    }
    for (uint32_t s = 0; s < p->g->n_slots; s++) {
        for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
            set_bit(p, p->at[s] + row->id[i]);
        }
        if (p->g->slot[s].kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
            set_bit(p, p->at[s]);
        }
    }
}

static uint64_t count_slot(const tn_gen_params *p, uint32_t s)
{
    uint64_t n = 0;
    for (uint64_t i = p->at[s]; i < p->at[s + 1]; i++) {
        uint64_t word = atomic_load_explicit(&p->bits[i / 64], memory_order_relaxed);
        n += (word >> (i % 64)) & 1;
    }
    return n;
}

static bool always_one(const tn_gen_slot *slot)
{
    return slot->kind != TN_GEN_NUMBER && slot->values_max == 1 && slot->missing <= 0;
}

uint64_t tn_gen_params_count(const tn_gen_params *p, uint64_t *distinguishable)
{
    *distinguishable = 0;
    if (p->at == NULL) {
        return 0;
    }
    uint64_t dim = p->g->opts.model == TN_GEN_LR ? 0 : p->g->opts.dim;
    uint64_t occurring = 0;
    uint64_t apart = 0;
    uint32_t slots = 0;
    for (uint32_t s = 0; s < p->g->n_slots; s++) {
        uint64_t n = count_slot(p, s);
        occurring += n;
        apart += n > 0 && always_one(&p->g->slot[s]) ? n - 1 : n;
        slots += n > 0;
    }
    if (p->g->opts.model == TN_GEN_LR || slots < 2) {
        *distinguishable = 1 + apart;
    } else if (p->g->opts.model == TN_GEN_FM) {
        uint64_t turns = slots == 2 ? dim * dim : dim * (dim - 1) / 2;
        *distinguishable = 1 + apart + (apart * dim > turns ? apart * dim - turns : 0);
    }
    return 1 + occurring * (1 + dim);
}
