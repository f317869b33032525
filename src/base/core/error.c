/* error.c - fills errors, adds context, and ends the process on a bug. */
#include "base/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tn_status tn_fail(tn_error *err, tn_status code, const char *fmt, ...)
{
    TN_ASSERT(code != TN_OK && code != TN_END); /* neither is a failure */
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

void tn_error_context(tn_error *err, const char *fmt, ...)
{
    if (err == NULL) {
        return;
    }
    char inner[sizeof err->text];
    memcpy(inner, err->text, sizeof inner);

    va_list args;
    va_start(args, fmt);
    int used = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->text) {
        int rest = snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s", inner);
        TN_ASSERT(rest >= 0); /* a text too long is cut, not refused */
    }
}

_Noreturn void tn_assert_failed(const char *file, int line, const char *func, const char *cond)
{
    (void)fprintf(stderr, "tnet: bug at %s:%d in %s(): '%s' is false\n", file, line, func, cond);
    abort();
}
