/* text.h - a string that grows, with a ceiling.
 *
 * Appending never fails on the spot: the first failure (no memory, over the ceiling) is remembered
 * and everything after it is ignored, so a writer appends a whole document and asks once:
 *
 *     tn_text t = {0};                                ceiling TN_TEXT_MAX, memory on first use
 *     tn_text_addf(&t, "{\"step\":%llu", step);
 *     TN_TRY(tn_text_check(&t, "MANIFEST", err));     ... use t.data, t.size ...
 *     tn_text_done(&t);
 *
 * data is always NUL-terminated (once anything was appended); it may hold NULs.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_TEXT_MAX ((size_t)1 << 30)

typedef struct tn_text {
    char *data; /* owned */
    size_t size;
    size_t capacity;
    size_t size_max; /* 0: TN_TEXT_MAX */
    bool failed;
    bool over_max; /* it failed for the ceiling, not for memory */
} tn_text;

void tn_text_done(tn_text *t);  /* frees the memory; t is empty and usable again */
void tn_text_clear(tn_text *t); /* keeps the memory; forgets a failure */

void tn_text_add(tn_text *t, const void *bytes, size_t size);
void tn_text_adds(tn_text *t, const char *text);
void tn_text_addc(tn_text *t, char c);
void tn_text_addf(tn_text *t, const char *fmt, ...) TN_PRINTF(2, 3);
void tn_text_add_u64(tn_text *t, uint64_t value); /* decimal; faster than addf */

/* Little-endian. */
#define TN_DEFINE_TEXT_ADD(name, type)                                                             \
    static inline void tn_text_add_##name(tn_text *t, type value)                                  \
    {                                                                                              \
        tn_text_add(t, &value, sizeof value);                                                      \
    }
TN_DEFINE_TEXT_ADD(u16, uint16_t)
TN_DEFINE_TEXT_ADD(u32le, uint32_t)
TN_DEFINE_TEXT_ADD(u64le, uint64_t)
TN_DEFINE_TEXT_ADD(f32le, float)

/* Makes room for `size` more bytes and returns where they go, already counted; NULL on failure. */
char *tn_text_grow(tn_text *t, size_t size);

/* Returns TN_E_MEMORY or TN_E_LIMIT, naming `what`, when something could not be appended. */
tn_status tn_text_check(const tn_text *t, const char *what, tn_error *err) TN_MUST_USE;

/* Returns the text, or "" when nothing was ever appended. */
const char *tn_text_str(const tn_text *t);
