/* unknown_keys.c - see unknown_keys.h. */
#include "train/step/unknown_keys.h"

#include "base/core/alloc.h"

#include <string.h>

struct tn_sieve {
    uint32_t n_slots;
    tn_bag *bag;
    char *block; /* holds the arrays of all bags */
    size_t capacity;
};

tn_status tn_sieve_new(tn_sieve **out, uint32_t n_slots, tn_error *err)
{
    *out = NULL;
    tn_sieve *s = tn_try_alloc(1, sizeof *s, "a sieve", err);
    if (s == NULL) {
        return TN_E_MEMORY;
    }
    s->n_slots = n_slots;
    s->bag = tn_try_alloc(n_slots, sizeof *s->bag, "a sieve", err);
    if (s->bag == NULL) {
        tn_sieve_free(s);
        return TN_E_MEMORY;
    }
    *out = s;
    return TN_OK;
}

void tn_sieve_free(tn_sieve *s)
{
    if (s == NULL) {
        return;
    }
    tn_free(s->bag);
    tn_free(s->block);
    tn_free(s);
}

/* Bytes that all bags together can take. */
static size_t bytes_of(const tn_sieve *s, const tn_sieve_in *in)
{
    size_t words = 0;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        words += in->rows + 1 + 2 * (size_t)in->bag[i].offset[in->rows];
    }
    return words * sizeof(uint32_t);
}

static char *sift(const tn_sieve_in *in, const tn_bag *from, tn_bag *to, char *at)
{
    uint32_t *offset = (void *)at;
    uint32_t *index = offset + in->rows + 1;
    float *weight = (void *)(index + from->offset[in->rows]);
    uint32_t n = 0;
    for (uint32_t r = 0; r < in->rows; r++) {
        offset[r] = n;
        for (uint32_t k = from->offset[r]; k < from->offset[r + 1]; k++) {
            if (!in->missing[from->index[k]]) {
                index[n] = from->index[k];
                weight[n] = from->weight != NULL ? from->weight[k] : 1;
                n++;
            }
        }
    }
    offset[in->rows] = n;
    *to =
        (tn_bag){.offset = offset, .index = index, .weight = from->weight != NULL ? weight : NULL};
    return (char *)(weight + from->offset[in->rows]);
}

tn_status tn_sieve_pass(tn_sieve *s, const tn_sieve_in *in, const tn_bag **out, tn_error *err)
{
    *out = in->bag;
    if (in->n_keys == 0 || memchr(in->missing, 1, in->n_keys * sizeof *in->missing) == NULL) {
        return TN_OK;
    }
    size_t bytes = bytes_of(s, in);
    if (bytes > s->capacity) {
        tn_free(s->block);
        s->capacity = 0;
        s->block = tn_try_alloc(bytes + bytes / 4, 1, "bags", err);
        if (s->block == NULL) {
            return TN_E_MEMORY;
        }
        s->capacity = bytes + bytes / 4;
    }
    char *at = s->block;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        at = sift(in, &in->bag[i], &s->bag[i], at);
    }
    *out = s->bag;
    return TN_OK;
}
