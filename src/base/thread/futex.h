/* futex.h - waiting for a word of memory to change: spin, then yield, then sleep.
 *
 *     who waits                                   who changes it
 *     asleep = 1;                                 word = next;
 *     while (word == seen)                        if (asleep)
 *         tn_word_sleep(&word, seen);                 tn_word_wake(&word);
 *     asleep = 0;
 *
 * All four accesses are sequentially consistent, so at least one thread sees the write of the
 * other.
 */
#ifndef TN_BASE_FUTEX_H
#define TN_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Waits a bounded while, without sleeping, for *word to differ from `seen`. */
bool tn_word_changes(_Atomic uint32_t *word, uint32_t seen, uint32_t spins);

/* Sleeps while *word is `seen`, until woken; may return early, so the caller looks again. */
void tn_word_sleep(_Atomic uint32_t *word, uint32_t seen);

/* All who sleep on it. */
void tn_word_wake(_Atomic uint32_t *word);

#endif
