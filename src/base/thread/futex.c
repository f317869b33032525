/* futex.c - waiting for a word: spin, yield, then futex(2). */
#include "base/thread/futex.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { YIELDS = 20 };

void tn_word_sleep(_Atomic uint32_t *word, uint32_t seen)
{
    /* After EAGAIN or EINTR the caller looks at the word again, as it always does. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void tn_word_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

bool tn_word_changes(_Atomic uint32_t *word, uint32_t seen, uint32_t spins)
{
    for (uint32_t i = 0; i < spins + YIELDS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) {
            return true;
        }
        if (i < spins) {
            pause_briefly();
        } else {
            (void)sched_yield();
        }
    }
    return false;
}
