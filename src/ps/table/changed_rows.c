/* changed_rows.c - noting the first touch of a row since the cut, copying it aside, and waiting for
 * the writer. */
#include "ps/table/changed_rows.h"

#include "base/core/alloc.h"
#include "ps/table/partition.h"

#include <errno.h>
#include <time.h>

enum {
    LIST_FIRST = 64,
    BYTES_FIRST = 4096,
    PAUSE_NS = 20 << 20, /* 21 ms: the longest a push steps back before copies are too many */
    SECOND_NS = 1000000000,
};

void tn_changed_rows_init(tn_changed_rows *c)
{
    *c = (tn_changed_rows){0};
    int failure = pthread_mutex_init(&c->lock, NULL);
    TN_ASSERT(failure == 0);
    pthread_condattr_t monotonic;
    failure = pthread_condattr_init(&monotonic);
    TN_ASSERT(failure == 0);
    failure = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    TN_ASSERT(failure == 0);
    failure = pthread_cond_init(&c->less, &monotonic);
    TN_ASSERT(failure == 0);
    pthread_condattr_destroy(&monotonic);
}

void tn_changed_rows_forget(tn_changed_rows *c)
{
    TN_ASSERT(!c->open);
    for (uint32_t p = 0; c->part != NULL && p < TN_PARTITIONS; p++) {
        tn_row_list_clear(&c->part[p].touched);
    }
}

void tn_changed_rows_done(tn_changed_rows *c)
{
    for (uint32_t p = 0; c->part != NULL && p < TN_PARTITIONS; p++) {
        tn_free(c->part[p].touched.row);
        tn_free(c->part[p].due.row);
        tn_free(c->part[p].aside.data);
    }
    tn_free(c->part);
    pthread_cond_destroy(&c->less);
    pthread_mutex_destroy(&c->lock);
}

tn_status tn_changed_rows_need(tn_changed_rows *c, tn_error *err)
{
    if (c->part == NULL) {
        c->part = tn_try_alloc(TN_PARTITIONS, sizeof *c->part, "changes of rows", err);
    }
    return c->part != NULL ? TN_OK : TN_E_MEMORY;
}

static bool list_add(tn_row_list *l, tn_row *row, uint32_t size)
{
    if (l->n == l->most) {
        uint32_t most = l->most == 0 ? LIST_FIRST : 2 * l->most;
        tn_row **more = tn_try_alloc(most, sizeof(tn_row *), "rows that changed", NULL);
        if (more == NULL) {
            return false;
        }
        if (l->n > 0) {
            memcpy(more, l->row, l->n * sizeof(tn_row *));
        }
        tn_free(l->row);
        l->row = more;
        l->most = most;
    }
    l->row[l->n++] = row;
    l->bytes += size;
    return true;
}

bool tn_row_bytes_reserve(tn_row_bytes *b, size_t size)
{
    if (size > b->most - b->size) {
        size_t most = b->most == 0 ? BYTES_FIRST : 2 * b->most;
        most = most > b->size + size ? most : b->size + size;
        char *more = tn_try_alloc(most, 1, "copies of rows", NULL);
        if (more == NULL) {
            return false;
        }
        if (b->size > 0) {
            memcpy(more, b->data, b->size);
        }
        tn_free(b->data);
        b->data = more;
        b->most = most;
    }
    return true;
}

bool tn_row_bytes_add(tn_row_bytes *b, const tn_row *row, size_t size)
{
    if (!tn_row_bytes_reserve(b, size)) {
        return false;
    }
    memcpy(b->data + b->size, row, size);
    b->size += size;
    return true;
}

/* Without memory for its copy a row cannot be written as it was: then the cut has failed. */
static void copy_aside(tn_changed_rows *c, tn_partition_changes *part, const tn_row *row,
                       uint32_t size)
{
    if (tn_row_bytes_add(&part->aside, row, size)) {
        atomic_fetch_add_explicit(&c->aside, size, memory_order_relaxed);
    } else {
        part->lost = true;
    }
}

void tn_changed_rows_note(tn_changed_rows *c, uint64_t key, tn_row *row, uint32_t size)
{
    TN_ASSERT(tn_row_stamp(row) != c->stamp);
    tn_partition_changes *part = &c->part[tn_partition_of(key, TN_PARTITIONS)];
    if (part->open && (!c->delta || tn_row_stamp(row) == c->before)) {
        copy_aside(c, part, row, size);
    }
    if (c->tracking && !list_add(&part->touched, row, size)) {
        atomic_store(&c->forgot, true);
    }
    tn_row_set_stamp(row, c->stamp);
}

void tn_changed_rows_note_new(tn_changed_rows *c, uint64_t key, tn_row *row, uint32_t size)
{
    tn_partition_changes *part = &c->part[tn_partition_of(key, TN_PARTITIONS)];
    if (c->tracking && !list_add(&part->touched, row, size)) {
        atomic_store(&c->forgot, true);
    }
    tn_row_set_stamp(row, c->stamp); /* it was not there at the cut */
}

/* Waits until the walker has taken one more partition, or for a short while. Locked. */
static void pause_for_walker(tn_changed_rows *c)
{
    struct timespec until;
    int failure = clock_gettime(CLOCK_MONOTONIC, &until);
    TN_ASSERT(failure == 0);
    long ns = until.tv_nsec + PAUSE_NS;
    until.tv_sec += ns / SECOND_NS;
    until.tv_nsec = ns % SECOND_NS;
    failure = pthread_cond_timedwait(&c->less, &c->lock, &until);
    TN_ASSERT(failure == 0 || failure == ETIMEDOUT);
}

void tn_changed_rows_wait(tn_changed_rows *c, uint64_t need)
{
    pthread_mutex_lock(&c->lock);
    if (c->open && atomic_load(&c->aside) > c->aside_max / 2) {
        pause_for_walker(c);
    }
    for (;;) {
        uint64_t aside = atomic_load(&c->aside);
        bool full = need == UINT64_MAX || (aside > 0 && aside + need > c->aside_max);
        if (!c->open || !full) {
            break;
        }
        pthread_cond_wait(&c->less, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

void tn_changed_rows_refund(tn_changed_rows *c, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub(&c->aside, bytes);
    TN_ASSERT(before >= bytes);
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->less);
    pthread_mutex_unlock(&c->lock);
}
