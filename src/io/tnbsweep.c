/* tnbsweep.c - what killed writers of caches leave, and how to tell it from what is being written.
 *
 *     0123456789abcdef.tnb.fedcba9876543210.tmp
 *
 * A writer holds flock on its file, and loses it when it dies, however it dies. Where locks do not
 * work nothing is removed.
 */
#include "io/tnb.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { HEX = 16 };

int tn_tnb_hold(const char *tmp)
{
    int fd = open(tmp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

void tn_tnb_let_go(int held)
{
    if (held >= 0) {
        (void)close(held);
    }
}

/* As reader_cache.c and tnbwrite.c name it. */
static bool is_unfinished(const char *name)
{
    static const char hex[] = "0123456789abcdef";
    static const char middle[] = ".tnb.";
    const char *at = name;
    if (strspn(at, hex) != HEX || strncmp(at + HEX, middle, sizeof middle - 1) != 0) {
        return false;
    }
    at += HEX + sizeof middle - 1;
    return strspn(at, hex) == HEX && strcmp(at + HEX, ".tmp") == 0;
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
        if (!is_unfinished(name) || tn_path_join(folder, name, path, NULL) != TN_OK) {
            continue;
        }
        int held = tn_tnb_hold(path);
        if (held >= 0) { /* nobody writes it */
            tn_status removed = tn_remove_file(path, NULL);
            (void)removed;
        }
        tn_tnb_let_go(held);
    }
    tn_text_done(&names);
}
