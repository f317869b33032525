/* page_arena.c - extents cut up in order. An extent is a private mapping, aligned to huge pages. */
#include "ps/table/page_arena.h"

#include "base/core/alloc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FIRST_SIZE = 1 << 20,
    LAST_SIZE = 64 << 20,
    HUGE_FROM = 4 << 20, /* smaller extents are touched page by page */
    HUGE_PAGE = 2 << 20,
};

struct tn_page_extent {
    tn_page_extent *older;
    void *mapping;
    size_t size;
};

void tn_page_arena_init(tn_page_arena *e, bool huge_pages)
{
    *e = (tn_page_arena){.next_size = FIRST_SIZE, .huge_pages = huge_pages};
    int failure = pthread_mutex_init(&e->lock, NULL);
    TN_ASSERT(failure == 0);
}

void tn_page_arena_clear(tn_page_arena *e)
{
    while (e->newest != NULL) {
        tn_page_extent *x = e->newest;
        e->newest = x->older;
        int failure = munmap(x->mapping, x->size);
        TN_ASSERT(failure == 0);
        tn_free(x);
    }
    memset(e->spare, 0, sizeof e->spare);
    e->at = NULL;
    e->left = 0;
    e->next_size = FIRST_SIZE;
    atomic_store(&e->used, 0);
}

void tn_page_arena_done(tn_page_arena *e)
{
    tn_page_arena_clear(e);
    pthread_mutex_destroy(&e->lock);
}

/* Not more than the table may still grow by: address space may be limited, too. Locked. */
static size_t next_size(const tn_page_arena *e)
{
    const uint64_t used = atomic_load(&e->used);
    const uint64_t left = e->limit > used ? e->limit - used : 0;
    if (e->limit == 0 || e->next_size <= left) {
        return e->next_size;
    }
    return left > FIRST_SIZE ? left / TN_CACHE_LINE * TN_CACHE_LINE : FIRST_SIZE;
}

/* One more extent that holds `bytes`. The rest of the one before stays unused. */
static tn_status grow(tn_page_arena *e, size_t bytes, tn_error *err)
{
    size_t size = next_size(e);
    size = size > bytes ? size : bytes;
    bool huge = e->huge_pages && size >= HUGE_FROM;
    size_t slack = huge ? HUGE_PAGE : 0;
    tn_page_extent *x = NULL;
    TN_TRY(TN_ALLOC(x, 1, "an extent of the table", err));
    x->size = size + slack;
    x->mapping = mmap(NULL, x->size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x->mapping == MAP_FAILED) {
        tn_status status =
            tn_fail(err, TN_E_MEMORY, "out of memory: %zu bytes for rows of the table: %s", x->size,
                    strerrordesc_np(errno));
        tn_free(x);
        return status;
    }
    char *start = x->mapping;
    if (huge) {
        start += (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
        (void)madvise(start, size, MADV_HUGEPAGE); /* may fail: rows are only slower then */
    }
    x->older = e->newest;
    e->newest = x;
    e->at = start;
    e->left = size;
    e->next_size = e->next_size < LAST_SIZE ? 2 * e->next_size : LAST_SIZE;
    return TN_OK;
}

size_t tn_page_arena_next(tn_page_arena *e)
{
    pthread_mutex_lock(&e->lock);
    const size_t size = next_size(e);
    pthread_mutex_unlock(&e->lock);
    return size;
}

void tn_page_arena_charge(tn_page_arena *e, uint64_t bytes)
{
    (void)atomic_fetch_add(&e->used, bytes);
}

void tn_page_arena_refund(tn_page_arena *e, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub(&e->used, bytes);
    TN_ASSERT(before >= bytes);
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + TN_CACHE_LINE - 1) / TN_CACHE_LINE * TN_CACHE_LINE;
}

/* The list of spare pieces of a size, or the place of a new one; NULL: there are too many. Locked.
 */
static tn_page_spare *spare_of(tn_page_arena *e, size_t size)
{
    uint32_t i = 0;
    while (i < TN_PAGE_SIZES_MAX && e->spare[i].size != size && e->spare[i].size != 0) {
        i++;
    }
    return i < TN_PAGE_SIZES_MAX ? &e->spare[i] : NULL;
}

void tn_page_arena_give(tn_page_arena *e, size_t bytes, void *piece)
{
    const size_t size = whole_lines(bytes);
    pthread_mutex_lock(&e->lock);
    tn_page_spare *spare = spare_of(e, size);
    if (spare != NULL) {
        spare->size = size;
        memcpy(piece, &spare->first, sizeof spare->first);
        spare->first = piece;
    }
    pthread_mutex_unlock(&e->lock);
    tn_page_arena_refund(e, spare != NULL ? size : 0);
}

/* A spare piece, or NULL. Locked. */
static void *take_spare(tn_page_arena *e, size_t size)
{
    tn_page_spare *spare = spare_of(e, size);
    void *piece = spare != NULL && spare->size == size ? spare->first : NULL;
    if (piece != NULL) {
        memcpy(&spare->first, piece, sizeof spare->first);
    }
    return piece;
}

tn_status tn_page_arena_take(tn_page_arena *e, size_t bytes, void **out, tn_error *err)
{
    const size_t size = whole_lines(bytes);
    tn_page_arena_charge(e, size);
    pthread_mutex_lock(&e->lock);
    void *spare = take_spare(e, size);
    tn_status status = spare != NULL || e->left >= size ? TN_OK : grow(e, size, err);
    if (spare != NULL) {
        *out = spare;
    } else if (status == TN_OK) {
        TN_ASSERT(e->left >= size);
        *out = e->at;
        e->at += size;
        e->left -= size;
    }
    pthread_mutex_unlock(&e->lock);
    if (spare != NULL) {
        memset(spare, 0, size);
    } else if (status != TN_OK) {
        tn_page_arena_refund(e, size);
    }
    return status;
}
