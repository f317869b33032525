/* onetable.c - see onetable.h. */
#include "onetable.h"

#include "base/math/key.h"

onetable onetable_begin(const char *optim, const char *options, uint64_t seed)
{
    onetable f = {.arena = tn_arena_new(1 << 20)};
    tn_rule rule = kit_rule(f.arena, optim, options);
    rule.init = (tn_init){TN_INIT_UNIFORM, -.1, .1};
    f.m = kit_model_plain(f.arena, DIM, rule);
    f.t = kit_table(f.m, seed);
    return f;
}

void onetable_end(onetable *f)
{
    tn_table_free(f->t);
    tn_arena_free(f->arena);
}

kit_keys *keys_of(onetable *f, const uint64_t *key, uint32_t n)
{
    return kit_keys_new(f->arena, &f->m->layout, key, NULL, n);
}

uint64_t *many_keys(onetable *f, uint32_t n, uint64_t salt)
{
    uint64_t *key = TN_NEW_ARRAY(f->arena, uint64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        key[i] = tn_key_of(i, salt);
    }
    return key;
}

float *floats(onetable *f, const kit_keys *k)
{
    return TN_NEW_ARRAY(f->arena, float, k->n_floats + 1);
}
