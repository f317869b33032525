/* error.c - fills errors, adds context, and ends the process on a bug. */
#include "base/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char of_messages[] = "\n\t";

void tn_make_printable(char *text, const char *but)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)text[0];
        const unsigned char next = (unsigned char)text[1];
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) { /* U+0080 to U+009F, in UTF-8 */
            text[0] = text[1] = '?';
        } else if ((c < ' ' || c == 0x7f) && strchr(but, c) == NULL) {
            *text = '?';
        }
    }
}

int tn_exit_code(tn_status status)
{
    static const int codes[] = {
        [TN_OK] = 0,     [TN_END] = 1,        [TN_E_USAGE] = 2, [TN_E_CONFIG] = 3,
        [TN_E_DATA] = 4, [TN_E_CKPT] = 5,     [TN_E_PEER] = 6,  [TN_E_MEMORY] = 7,
        [TN_E_IO] = 8,   [TN_E_DIVERGED] = 9, [TN_E_LIMIT] = 4, [TN_E_STOPPED] = 75,
    };
    TN_ASSERT((size_t)status < sizeof codes / sizeof *codes);
    return codes[status];
}

tn_status tn_fail(tn_error *err, tn_status code, const char *fmt, ...)
{
    TN_ASSERT(code != TN_OK && code != TN_END); /* neither is a failure */
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        tn_make_printable(err->text, of_messages);
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
    tn_make_printable(err->text, of_messages);
}

_Noreturn void tn_assert_failed(const char *file, int line, const char *func, const char *cond)
{
    (void)fprintf(stderr, "tnet: bug at %s:%d in %s(): '%s' is false\n", file, line, func, cond);
    abort();
}
