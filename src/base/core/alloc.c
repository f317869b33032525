/* alloc.c - the heap: allocations that report failure, and those that end the process. */
#include "base/core/alloc.h"

#include "base/core/embedder.h"
#include "base/core/spare.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { EXIT_MEMORY = 7, PAGE = 4 << 10, HUGE_PAGE = 2 << 20, LARGE = HUGE_PAGE };
enum { SMALL = 64 << 10 }; /* bytes of a text, at most, that spare memory is for */

static _Atomic uint64_t calls_to_failure, calls_to_refusal;

/* The cache line before every block. */
typedef struct head {
    _Alignas(TN_CACHE_LINE) void *start; /* address that malloc or mmap returned */
    size_t mapped;                       /* bytes from mmap; 0: the block comes from malloc */
    tn_spare *spare; /* it comes from there, `mapped` bytes; NULL: it does not */
} head;

/* Maps a large array by itself: its pages are zero and take memory only when they are touched. Asks
 * for huge pages: with small ones nearly every random access walks the page tables. */
static void *map_large(size_t bytes)
{
    if (bytes > SIZE_MAX - HUGE_PAGE - PAGE) {
        return NULL;
    }
    const size_t size = bytes + HUGE_PAGE + PAGE;
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    char *memory = (char *)start + PAGE;
    memory += (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
    const head h = {start, size, NULL};
    memcpy(memory - sizeof h, &h, sizeof h);
    (void)madvise(memory, bytes / PAGE * PAGE, MADV_HUGEPAGE);
    return memory;
}

static void *take_small(size_t bytes)
{
    head *start = aligned_alloc(TN_CACHE_LINE, sizeof(head) + bytes);
    if (start == NULL) {
        return NULL;
    }
    *start = (head){start, 0, NULL};
    return memset(start + 1, 0, bytes);
}

/* Whether a test has the system refuse memory from here on. */
static bool is_refused(void)
{
    uint64_t left = atomic_load(&calls_to_refusal);
    while (left > 1 && !atomic_compare_exchange_weak(&calls_to_refusal, &left, left - 1)) {
    }
    return left == 1;
}

/* Returns zeroed memory; NULL when there is none. */
static void *zeroed(size_t count, size_t size)
{
    if (is_refused() || (size != 0 && count > (SIZE_MAX - TN_CACHE_LINE) / size)) {
        return NULL;
    }
    size_t bytes = (count * size + TN_CACHE_LINE - 1) / TN_CACHE_LINE * TN_CACHE_LINE;
    return bytes < LARGE ? take_small(bytes != 0 ? bytes : TN_CACHE_LINE) : map_large(bytes);
}

/* Returns the spare of the thread's embedder; NULL: it has none, and may be ended. */
static tn_spare *spare_here(void)
{
    const tn_embedder *here = tn_embedder_here();
    return here != NULL ? here->spare : NULL;
}

/* Returns zeroed memory of a spare; NULL when it is used up. */
static void *take_spare(tn_spare *spare, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - 2 * sizeof(head)) / size) {
        return NULL;
    }
    const size_t bytes =
        (sizeof(head) + count * size + TN_CACHE_LINE) / TN_CACHE_LINE * TN_CACHE_LINE;
    head *start = tn_spare_take(spare, bytes);
    if (start == NULL) {
        return NULL;
    }
    *start = (head){start, bytes, spare};
    return memset(start + 1, 0, bytes - sizeof *start);
}

static _Noreturn void end(size_t count, size_t size, const char *what)
{
    (void)fprintf(stderr, "tnet: out of memory: %zu x %zu bytes for %s\n", count, size, what);
    exit(EXIT_MEMORY); // NOLINT(concurrency-mt-unsafe): nothing is left to race with
}

void *tn_alloc(size_t count, size_t size, const char *what)
{
    void *memory = zeroed(count, size);
    tn_spare *spare = memory == NULL ? spare_here() : NULL;
    if (spare != NULL) {
        tn_spare_set_short(spare, count * size, what);
        memory = take_spare(spare, count, size);
    }
    if (memory == NULL) {
        end(count, size, what);
    }
    return memory;
}

void *tn_alloc_or_none(size_t count, size_t size, const char *what)
{
    void *memory = zeroed(count, size);
    tn_spare *spare = memory == NULL ? spare_here() : NULL;
    if (spare != NULL) {
        tn_spare_set_short(spare, count * size, what);
    } else if (memory == NULL) {
        end(count, size, what);
    }
    return memory;
}

tn_status tn_alloc_check(tn_error *err)
{
    tn_spare *spare = spare_here();
    return spare != NULL ? tn_spare_check(spare, err) : TN_OK;
}

void *tn_try_alloc(size_t count, size_t size, const char *what, tn_error *err)
{
    bool fail = atomic_load(&calls_to_failure) > 0 && atomic_fetch_sub(&calls_to_failure, 1) == 1;
    tn_spare *spare = spare_here();
    fail = fail || (spare != NULL && tn_spare_is_short(spare));
    void *memory = fail ? NULL : zeroed(count, size);
    if (memory == NULL && err == NULL && spare != NULL) { /* the failure may go untold */
        tn_spare_set_short(spare, count * size, what);
        memory = count <= SMALL / (size + 1) ? take_spare(spare, count, size) : NULL;
    }
    if (memory == NULL) {
        (void)tn_fail(err, TN_E_MEMORY, "out of memory: %zu x %zu bytes for %s", count, size, what);
    }
    return memory;
}

tn_status tn_grow(void *array, size_t size, size_t used, size_t n, const char *what, tn_error *err)
{
    void *old = NULL;
    memcpy(&old, array, sizeof old);
    void *more = tn_try_alloc(n, size, what, err);
    if (more == NULL) {
        return TN_E_MEMORY;
    }
    if (used > 0) {
        memcpy(more, old, used * size);
    }
    tn_free(old);
    memcpy(array, &more, sizeof more);
    return TN_OK;
}

tn_status tn_reserve(void *array, size_t *max, size_t size, size_t n, const char *what,
                     tn_error *err)
{
    void *room = NULL;
    memcpy(&room, array, sizeof room);
    if (room != NULL && n <= *max) {
        return TN_OK;
    }
    tn_free(room);
    room = tn_try_alloc(n + n / 4 + 1, size, what, err);
    *max = room != NULL ? n + n / 4 + 1 : 0;
    memcpy(array, &room, sizeof room);
    return room != NULL ? TN_OK : TN_E_MEMORY;
}

void tn_free(void *memory)
{
    if (memory == NULL) {
        return;
    }
    const head h = ((const head *)memory)[-1];
    if (h.spare != NULL) {
        tn_spare_give(h.spare, h.start, h.mapped);
        return;
    }
    if (h.mapped == 0) {
        free(h.start);
        return;
    }
    int failure = munmap(h.start, h.mapped);
    TN_ASSERT(failure == 0);
}

void tn_alloc_fail_at(uint64_t nth)
{
    atomic_store(&calls_to_failure, nth);
}

void tn_alloc_refuse_from(uint64_t nth)
{
    atomic_store(&calls_to_refusal, nth);
}

void tn_alloc_share_heap(void)
{
    (void)mallopt(M_ARENA_MAX, 1); // NOLINT(concurrency-mt-unsafe): first thing in main
}
