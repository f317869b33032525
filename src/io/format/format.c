/* format.c - the list of formats. */
#include "io/format/format.h"

#include <string.h>

#define TN_FORMAT(name) extern const tn_format tn_format_##name;
#include "io/format/formats.def"
#undef TN_FORMAT

const tn_format *const tn_all_formats[] = {
#define TN_FORMAT(name) &tn_format_##name,
#include "io/format/formats.def"
#undef TN_FORMAT
    NULL,
};

const tn_format *tn_format_find(const char *name)
{
    for (uint32_t i = 0; tn_all_formats[i] != NULL; i++) {
        if (strcmp(tn_all_formats[i]->name, name) == 0) {
            return tn_all_formats[i];
        }
    }
    return NULL;
}
