/* spare.c - a mapping that is filled front to back; what was taken last may be given back. */
#include "base/core/spare.h"

#include <pthread.h>
#include <sys/mman.h>

struct tn_spare {
    pthread_mutex_t lock; /* guards all members but bytes */
    size_t bytes;         /* size of the mapping, this struct included */
    size_t used;          /* likewise: where the next block begins */
    size_t blocks;        /* blocks in use */
    const char *what;     /* purpose of the first refusal; NULL: it is not short */
    size_t refused;       /* bytes */
    _Alignas(64) unsigned char block[];
};

tn_status tn_spare_open(tn_spare **out, size_t bytes, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(bytes > sizeof(tn_spare));
    tn_spare *r = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r == MAP_FAILED) {
        return tn_fail(err, TN_E_MEMORY, "out of memory: %zu bytes for a run's spare memory",
                       bytes);
    }
    *r = (tn_spare){.bytes = bytes, .used = sizeof *r};
    const int failure = pthread_mutex_init(&r->lock, NULL);
    TN_ASSERT(failure == 0);
    *out = r;
    return TN_OK;
}

void tn_spare_close(tn_spare *r)
{
    if (r != NULL) {
        (void)pthread_mutex_destroy(&r->lock);
        const int failure = munmap(r, r->bytes);
        TN_ASSERT(failure == 0);
    }
}

void tn_spare_clear(tn_spare *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->what = NULL;
    (void)pthread_mutex_unlock(&r->lock);
}

bool tn_spare_is_short(tn_spare *r)
{
    (void)pthread_mutex_lock(&r->lock);
    const bool is_short = r->what != NULL;
    (void)pthread_mutex_unlock(&r->lock);
    return is_short;
}

tn_status tn_spare_check(tn_spare *r, tn_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    const char *what = r->what;
    const size_t refused = r->refused;
    (void)pthread_mutex_unlock(&r->lock);
    return what == NULL
               ? TN_OK
               : tn_fail(err, TN_E_MEMORY, "out of memory: %zu bytes for %s", refused, what);
}

void tn_spare_set_short(tn_spare *r, size_t bytes, const char *what)
{
    (void)pthread_mutex_lock(&r->lock);
    if (r->what == NULL) {
        r->what = what;
        r->refused = bytes;
    }
    (void)pthread_mutex_unlock(&r->lock);
}

void *tn_spare_take(tn_spare *r, size_t bytes)
{
    void *block = NULL;
    (void)pthread_mutex_lock(&r->lock);
    if (bytes <= r->bytes - r->used) {
        block = (unsigned char *)r + r->used;
        r->used += bytes;
        r->blocks++;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return block;
}

void tn_spare_give(tn_spare *r, void *block, size_t bytes)
{
    (void)pthread_mutex_lock(&r->lock);
    const size_t at = (size_t)((unsigned char *)block - (unsigned char *)r);
    TN_ASSERT(at >= sizeof *r && at + bytes <= r->used && r->blocks > 0);
    if (at + bytes == r->used) {
        r->used = at;
    }
    if (--r->blocks == 0) {
        r->used = sizeof *r;
    }
    (void)pthread_mutex_unlock(&r->lock);
}
