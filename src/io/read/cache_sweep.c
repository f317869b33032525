/* cache_sweep.c - what killed writers of caches leave in a folder of theirs:
 *
 *     0123456789abcdef.tnb.fedcba9876543210.tmp
 */
#include "io/read/cache.h"

#include "base/file/output_file.h"

#include <string.h>

enum { HEX = 16 };

/* As reader_cache.c names a cache. */
static bool is_unfinished(const char *name)
{
    char cache[HEX + sizeof ".tnb"];
    if (strspn(name, "0123456789abcdef") != HEX || strncmp(name + HEX, ".tnb", 4) != 0) {
        return false;
    }
    memcpy(cache, name, sizeof cache - 1);
    cache[sizeof cache - 1] = '\0';
    return tn_is_unfinished(name, cache);
}

void tn_tnb_sweep(const char *folder)
{
    tn_text names = {0};
    uint32_t n = 0;
    if (tn_dir_list(folder, &names, &n, NULL) != TN_OK) {
        n = 0;
    }
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        char path[TN_PATH_SIZE];
        if (is_unfinished(name) && tn_path_join(folder, name, path, NULL) == TN_OK) {
            tn_unfinished_remove(path);
        }
    }
    tn_text_done(&names);
}
