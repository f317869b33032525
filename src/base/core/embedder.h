/* embedder.h - what a program that has TNet within it as a library gives to a run of it.
 *
 *     const tn_embedder mine = {.line = keep, .stop = &asked, .producers = &rows};
 *     const tn_embedder *before = tn_embedder_enter(&mine);
 *     .. a run: its lines go to keep(), it ends when `asked` turns true ..
 *     tn_embedder_enter(before);
 *
 * It belongs to a thread, and to those that the thread starts (base/thread/threads.h), so that
 * several runs may go on side by side in a process. A thread without one has what the process has:
 * the sink of base/core/log.h, the flag of base/core/stop.h.
 */
#pragma once

#include <stdatomic.h>

typedef struct tn_embedder {
    /* Gets every line of any level, a tn_log_level; from any thread of the run, also from two at
     * once. NULL: they vanish. */
    void (*line)(void *arg, int level, const char *line);
    void *arg;
    const atomic_bool *stop; /* true: waits end, as tn_stop_is says; NULL: nobody asks */
    struct tn_spare *spare;  /* for small things when memory has run out; NULL: none */
    const struct tn_producers *producers; /* sources in memory (io/source/producer.h); NULL: none */
} tn_embedder;

/* Makes it the calling thread's, for which it must live until another is entered and all threads
 * that were started meanwhile have ended. NULL: none. Returns the one before. */
const tn_embedder *tn_embedder_enter(const tn_embedder *embedder);

const tn_embedder *tn_embedder_here(void); /* the calling thread's; NULL: none */
