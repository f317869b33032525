/* absent.c - the list of absent.def, which CMake writes. */
#include "config/absent.h"

#include <stddef.h>
#include <string.h>

static const char *const absent[] = {
#define TN_ABSENT(word) #word,
#include "config/absent.def"
#undef TN_ABSENT
    NULL,
};

bool tn_is_absent(const char *word)
{
    size_t i = 0;
    while (absent[i] != NULL && strcmp(absent[i], word) != 0) {
        i++;
    }
    return absent[i] != NULL;
}

tn_status tn_absent_check(const char *word, tn_status status, tn_error *err)
{
    return tn_is_absent(word) ? tn_fail(err, status, TN_ABSENT_FORM, word) : TN_OK;
}
