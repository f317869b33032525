/* spare.h - memory that a library keeps for the time when the system has none left.
 *
 *     tn_spare_open(&r, 16 << 20, &err)      address space alone, until it is needed
 *     tn_embedder mine = {.., .spare = r}    what a run of this thread takes it from
 *
 * A program ends where there is no memory for a small thing (alloc.h). A library may not end its
 * host: small things then come from spare memory of its embedder, which is short from there on. All
 * that can be refused is refused now, so that the work ends in the usual way, and its caller says
 * that memory ran out. Any number of threads.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tn_spare tn_spare;

/* On failure *out is NULL. */
tn_status tn_spare_open(tn_spare **out, size_t bytes, tn_error *err) TN_MUST_USE;
void tn_spare_close(tn_spare *r); /* nothing of it is in use any more; NULL is fine */

/* Begins anew: it is not short, and whole if nothing of it is in use. */
void tn_spare_clear(tn_spare *r);

/* Says that `bytes` were refused for `what`, a text that is never freed. */
void tn_spare_set_short(tn_spare *r, size_t bytes, const char *what);
bool tn_spare_is_short(tn_spare *r);
/* TN_E_MEMORY: memory was refused since it was cleared; the sentence is of the first time. */
tn_status tn_spare_check(tn_spare *r, tn_error *err) TN_MUST_USE;

/* Takes `bytes`, a multiple of a cache line. The memory is not zeroed. NULL: it is used up. */
void *tn_spare_take(tn_spare *r, size_t bytes);
void tn_spare_give(tn_spare *r, void *block, size_t bytes);
