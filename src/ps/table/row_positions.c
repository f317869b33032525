/* row_positions.c - the positions of the last few keysets, found by address, the oldest replaced.
 */
#include "ps/table/row_positions.h"

#include "base/core/alloc.h"
#include "base/keys/keyset.h"

void tn_row_positions_init(tn_row_positions *h)
{
    int failure = pthread_mutex_init(&h->lock, NULL);
    TN_ASSERT(failure == 0);
}

void tn_row_positions_done(tn_row_positions *h)
{
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        TN_ASSERT(!h->hint[i].busy);
        tn_free(h->hint[i].row);
    }
    pthread_mutex_destroy(&h->lock);
}

void tn_row_positions_forget(tn_row_positions *h)
{
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        TN_ASSERT(!h->hint[i].busy);
        h->hint[i].keys = NULL;
    }
}

static tn_keyset_rows *find(tn_row_positions *h, const tn_keyset *keys)
{
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        if (h->hint[i].keys == keys) {
            return &h->hint[i];
        }
    }
    return NULL;
}

/* The one that was not used for longest, or NULL if all are busy. */
static tn_keyset_rows *oldest(tn_row_positions *h)
{
    tn_keyset_rows *best = NULL;
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        tn_keyset_rows *x = &h->hint[i];
        if (!x->busy && (best == NULL || x->age < best->age)) {
            best = x;
        }
    }
    return best;
}

/* Marks a hint as used now; NULL if another thread has it. */
static tn_keyset_rows *claim(tn_row_positions *h, tn_keyset_rows *x)
{
    if (x == NULL || x->busy) {
        return NULL;
    }
    x->busy = true;
    x->age = ++h->age;
    return x;
}

tn_status tn_row_positions_write(tn_row_positions *h, const tn_keyset *keys, tn_keyset_rows **out,
                                 tn_error *err)
{
    pthread_mutex_lock(&h->lock);
    tn_keyset_rows *known = find(h, keys);
    tn_keyset_rows *x = claim(h, known != NULL ? known : oldest(h));
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
        tn_row_positions_release(h, x, false);
        return TN_E_MEMORY;
    }
    tn_free(x->row);
    x->row = row;
    x->rows_max = most;
    return TN_OK;
}

tn_keyset_rows *tn_row_positions_read(tn_row_positions *h, const tn_keyset *keys)
{
    pthread_mutex_lock(&h->lock);
    tn_keyset_rows *x = find(h, keys);
    x = x != NULL && x->n == keys->n ? claim(h, x) : NULL;
    pthread_mutex_unlock(&h->lock);
    return x;
}

void tn_row_positions_release(tn_row_positions *h, tn_keyset_rows *hint, bool good)
{
    if (hint == NULL) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    TN_ASSERT(hint->busy);
    hint->busy = false;
    hint->keys = good ? hint->keys : NULL;
    pthread_mutex_unlock(&h->lock);
}
