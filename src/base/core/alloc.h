/* alloc.h - the only door to the heap.
 *
 * Memory runs out in two ways that deserve different answers:
 *
 *   tn_try_alloc   the size comes from a file, the config or a peer: it may fail
 *                  and is reported like any other failure of the outside world
 *   tn_alloc       small things of fixed size while a program is set up: never
 *                  NULL; the process says what it was for and ends with code 7. Within an
 *                  embedder it comes from spare memory, and the work fails (spare.h)
 *
 *     float *rows = tn_try_alloc(n, sizeof *rows, "embedding rows", err);
 *     if (rows == NULL)
 *         goto fail;
 *
 * Memory is zeroed and starts on a cache line. `what` is a noun for the message.
 */
#pragma once

#include "base/core/error.h"

#include <stddef.h>
#include <stdint.h>

enum { TN_CACHE_LINE = 64 };

void *tn_alloc(size_t count, size_t size, const char *what) TN_MUST_USE;

/* The same for the arrays of a result without a status: NULL within an embedder, whose call fails
 * at its end; the result may be anything. */
void *tn_alloc_or_none(size_t count, size_t size, const char *what) TN_MUST_USE;

/* TN_E_MEMORY: a tn_alloc of this embedder was refused memory. For loops that allocate as much as
 * their input asks for. */
tn_status tn_alloc_check(tn_error *err) TN_MUST_USE;

/* Returns the memory; NULL, and *err filled, when there is none. */
void *tn_try_alloc(size_t count, size_t size, const char *what, tn_error *err) TN_MUST_USE;

/* Does the same for TN_TRY: p becomes an array of n items, or NULL with TN_E_MEMORY. */
#define TN_ALLOC(p, n, what, err)                                                                  \
    (((p) = tn_try_alloc((n), sizeof *(p), (what), (err))) != NULL ? TN_OK : TN_E_MEMORY)

/* Lets an array grow: p, NULL at first, becomes one of n items that begins with its first `used`;
 * on failure it stays what it is. */
#define TN_GROW(p, used, n, what, err) tn_grow(&(p), sizeof *(p), (used), (n), (what), (err))
tn_status tn_grow(void *array, size_t size, size_t used, size_t n, const char *what,
                  tn_error *err) TN_MUST_USE;

/* Reserves scratch memory: p gets room for n items, unless `max` says that it has; its contents are
 * lost. Takes a quarter more than asked, so that it settles soon. On failure p is NULL. */
#define TN_RESERVE(p, max, n, what, err) tn_reserve(&(p), &(max), sizeof *(p), (n), (what), (err))
tn_status tn_reserve(void *array, size_t *max, size_t size, size_t n, const char *what,
                     tn_error *err) TN_MUST_USE;

void tn_free(void *memory); /* NULL is fine */

/* Makes all threads share one heap. In heaps of their own, those that come and go with every epoch,
 * save and export would leave what they have freed in one heap after the other, for none to use;
 * and each reserves 64 MB, which count where the address space is limited. A step that is warm
 * allocates nothing, so nobody waits for the heap. Call it before any thread starts. */
void tn_alloc_share_heap(void);

/* Makes the nth tn_try_alloc from now on fail, once; 0: none. For tests. */
void tn_alloc_fail_at(uint64_t nth);
/* Has the system refuse all memory from the nth allocation of any kind on; 0: none. For tests. */
void tn_alloc_refuse_from(uint64_t nth);
