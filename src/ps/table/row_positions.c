/* row_positions.c - the positions of the last few keysets, found by address, the oldest replaced.
 */
#include "ps/table/row_positions.h"

#include "base/core/alloc.h"

void tn_hints_init(tn_hints *h)
{
    int failure = pthread_mutex_init(&h->lock, NULL);
    TN_ASSERT(failure == 0);
}

void tn_hints_done(tn_hints *h)
{
    for (uint32_t i = 0; i < TN_HINTS_MAX; i++) {
        tn_free(h->hint[i].row);
    }
    pthread_mutex_destroy(&h->lock);
}

void tn_hints_forget(tn_hints *h)
{
    for (uint32_t i = 0; i < TN_HINTS_MAX; i++) {
        TN_ASSERT(!h->hint[i].busy);
        h->hint[i].keys = NULL;
    }
}

static tn_hint *find(tn_hints *h, const tn_keyset *keys)
{
    for (uint32_t i = 0; i < TN_HINTS_MAX; i++) {
        if (h->hint[i].keys == keys) {
            return &h->hint[i];
        }
    }
    return NULL;
}

/* The one that was not used for longest, or NULL if all are busy. */
static tn_hint *oldest(tn_hints *h)
{
    tn_hint *best = NULL;
    for (uint32_t i = 0; i < TN_HINTS_MAX; i++) {
        tn_hint *x = &h->hint[i];
        if (!x->busy && (best == NULL || x->age < best->age)) {
            best = x;
        }
    }
    return best;
}

/* Marks a hint as used now; NULL if another thread has it. */
static tn_hint *claim(tn_hints *h, tn_hint *x)
{
    if (x == NULL || x->busy) {
        return NULL;
    }
    x->busy = true;
    x->age = ++h->age;
    return x;
}

tn_status tn_hints_write(tn_hints *h, const tn_keyset *keys, tn_hint **out, tn_error *err)
{
    pthread_mutex_lock(&h->lock);
    tn_hint *known = find(h, keys);
    tn_hint *x = claim(h, known != NULL ? known : oldest(h));
    if (x != NULL) {
        x->keys = keys;
        x->n = keys->n;
    }
    pthread_mutex_unlock(&h->lock);
    *out = x;
    if (x == NULL || x->rows_max >= keys->n) {
        return TN_OK;
    }
    uint32_t most = keys->n + keys->n / 4;
    tn_row **row = tn_try_alloc(most, sizeof(void *), "the rows of a batch", err);
    if (row == NULL) {
        *out = NULL;
        tn_hints_release(h, x, false);
        return TN_E_MEMORY;
    }
    tn_free(x->row);
    x->row = row;
    x->rows_max = most;
    return TN_OK;
}

tn_hint *tn_hints_read(tn_hints *h, const tn_keyset *keys)
{
    pthread_mutex_lock(&h->lock);
    tn_hint *x = find(h, keys);
    x = x != NULL && x->n == keys->n ? claim(h, x) : NULL;
    pthread_mutex_unlock(&h->lock);
    return x;
}

void tn_hints_release(tn_hints *h, tn_hint *hint, bool good)
{
    if (hint == NULL) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    hint->busy = false;
    hint->keys = good ? hint->keys : NULL;
    pthread_mutex_unlock(&h->lock);
}
