/* arena.h - memory that is freed all at once.
 *
 * A graph, a model and a batch are each built piece by piece and die together,
 * so each owns one arena and nothing inside is freed by hand.
 *
 *     tn_arena *a = tn_arena_new(1 << 20);
 *     tn_node  *n = TN_NEW(a, tn_node);          zeroed, aligned
 *     tn_arena_free(a);                          n is gone too
 *
 * Pointers stay valid until the free: chunks are linked, never moved.
 * Not thread-safe; one owner at a time.
 *
 * Programs end when there is no memory for small things (alloc.h). A library may not: its arenas
 * come from tn_arena_open. A caller first reserves the bytes of many allocations at once; then none
 * of these allocations can fail:
 *
 *     TN_TRY(tn_arena_open(&a, 1 << 12, "a model", err));         the first 4 kB are promised
 *     TN_TRY(tn_arena_reserve(a, n * ITEM_BYTES, "items", err));  so are these
 *
 * Promises add up until they are used. Test builds assert that nothing is taken without one.
 */
#pragma once

#include "base/core/error.h"

#include <stddef.h>

typedef struct tn_arena tn_arena;

tn_arena *tn_arena_new(size_t chunk_bytes);
void tn_arena_free(tn_arena *arena); /* NULL is fine */

/* Opens an arena that never ends the process and promises `bytes`. TN_E_MEMORY; *out is NULL. */
tn_status tn_arena_open(tn_arena **out, size_t bytes, const char *what, tn_error *err) TN_MUST_USE;

/* Returns zeroed memory for count * size bytes. Never NULL: see tn_alloc. */
void *tn_arena_alloc(tn_arena *arena, size_t count, size_t size, size_t align);

/* Makes room for the next allocations, `bytes` in all, alignment included. For contents whose size
 * comes from a file. TN_E_MEMORY when there is no room. */
tn_status tn_arena_reserve(tn_arena *arena, size_t bytes, const char *what,
                           tn_error *err) TN_MUST_USE;

#define TN_NEW(arena, type) ((type *)tn_arena_alloc((arena), 1, sizeof(type), _Alignof(type)))
#define TN_NEW_ARRAY(arena, type, n)                                                               \
    ((type *)tn_arena_alloc((arena), (n), sizeof(type), _Alignof(type)))
