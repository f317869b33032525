/* arena.c - a list of chunks, filled front to back. */
#include "base/core/arena.h"

#include "base/core/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct chunk {
    struct chunk *next;
    size_t size;
    size_t used;
    _Alignas(TN_CACHE_LINE) unsigned char bytes[];
} chunk;

struct tn_arena {
    chunk *first;
    chunk *current; /* the chunk being filled; those after it are empty */
    size_t chunk_bytes;
    size_t promised; /* bytes that fit the rest of `current`, or the chunk after it */
    bool strict;     /* callers take only what was promised */
};

static chunk *chunk_new(size_t bytes)
{
    TN_ASSERT(bytes <= SIZE_MAX - sizeof(chunk));
    chunk *c = tn_alloc(1, sizeof *c + bytes, "an arena");
    c->size = bytes;
    return c;
}

tn_arena *tn_arena_new(size_t chunk_bytes)
{
    tn_arena *a = tn_alloc(1, sizeof *a, "an arena");
    a->first = a->current = chunk_new(chunk_bytes);
    a->chunk_bytes = chunk_bytes;
    return a;
}

static chunk *chunk_try(size_t bytes, const char *what, tn_error *err)
{
    TN_ASSERT(bytes <= SIZE_MAX - sizeof(chunk));
    chunk *c = tn_try_alloc(1, sizeof *c + bytes, what, err);
    if (c != NULL) {
        c->size = bytes;
    }
    return c;
}

tn_status tn_arena_open(tn_arena **out, size_t bytes, const char *what, tn_error *err)
{
    *out = NULL;
    tn_arena *a = NULL;
    TN_TRY(TN_ALLOC(a, 1, what, err));
    a->first = a->current = chunk_try(bytes, what, err);
    if (a->first == NULL) {
        tn_free(a);
        return TN_E_MEMORY;
    }
    a->chunk_bytes = a->promised = bytes;
    a->strict = true;
    *out = a;
    return TN_OK;
}

void tn_arena_free(tn_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    for (chunk *c = arena->first; c != NULL;) {
        chunk *next = c->next;
        tn_free(c);
        c = next;
    }
    tn_free(arena);
}

/* Returns the offset in `c` at which `bytes` fit with `align`, or SIZE_MAX. */
static size_t chunk_room(const chunk *c, size_t bytes, size_t align)
{
    size_t at = (c->used + align - 1) & ~(align - 1);
    return at <= c->size && bytes <= c->size - at ? at : SIZE_MAX;
}

static void keep_promise(tn_arena *arena, size_t bytes)
{
    if (arena->strict) {
#if defined(TN_FAILPOINTS)
        TN_ASSERT(bytes <= arena->promised);
#endif
        arena->promised -= bytes <= arena->promised ? bytes : arena->promised;
    }
}

void *tn_arena_alloc(tn_arena *arena, size_t count, size_t size, size_t align)
{
    TN_ASSERT(size == 0 || count <= SIZE_MAX / size);
    TN_ASSERT(align > 0 && align <= TN_CACHE_LINE && (align & (align - 1)) == 0);
    size_t bytes = count * size;
    keep_promise(arena, bytes + align - 1);

    chunk *c = arena->current;
    size_t at = chunk_room(c, bytes, align);
    while (at == SIZE_MAX) {
        if (c->next == NULL) {
            c->next = chunk_new(bytes > arena->chunk_bytes ? bytes : arena->chunk_bytes);
        }
        arena->current = c = c->next;
        at = chunk_room(c, bytes, align);
    }
    c->used = at + bytes;
    return memset(c->bytes + at, 0, bytes);
}

tn_status tn_arena_reserve(tn_arena *arena, size_t bytes, const char *what, tn_error *err)
{
    chunk *current = arena->current;
    TN_ASSERT(current->used <= current->size);
    TN_ASSERT(bytes <= SIZE_MAX - arena->promised);
    bytes += arena->promised;
    bool here = current->size - current->used >= bytes;
    bool next = arena->strict && current->next != NULL && current->next->size >= bytes;
    if (!here && !next) {
        bool small = arena->strict && bytes < arena->chunk_bytes;
        chunk *c = chunk_try(small ? arena->chunk_bytes : bytes, what, err);
        if (c == NULL) {
            return TN_E_MEMORY;
        }
        c->next = current->next;
        /* an allocation that does not fit into the rest of `current` goes here */
        current->next = c;
    }
    arena->promised = arena->strict ? bytes : 0;
    return TN_OK;
}
