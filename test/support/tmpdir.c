/* tmpdir.c - see tmpdir.h. Plain libc, so that failpoints and logs of the file module see nothing.
 */
#include "support/tmpdir.h"

#include "support/test.h"

#include <ftw.h>
#include <unistd.h>

/* The address of a socket has at most 107 characters, and tests put sockets in such folders. */
enum { BASE_MAX = 50 };

void tn_tmpdir_make(char path[256])
{
    const char *base = getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (base == NULL || strlen(base) > BASE_MAX) {
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    }
    int length = snprintf(path, 256, "%s/tnet-test-XXXXXX", base);
    assert_in_range(length, 1, 255);
    assert_non_null(mkdtemp(path));
}

void tn_tmpdir_unpack(char path[256], const char *name)
{
    char command[512];
    tn_tmpdir_make(path);
    (void)snprintf(command, sizeof command, "tar xzf test/golden/%s.tar.gz -C %s", name, path);
    assert_int_equal(system(command), 0); /* NOLINT: a fixed command */
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

void tn_tmpdir_remove(const char *path)
{
    int failed = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); // NOLINT(concurrency-mt-unsafe)
    assert_int_equal(failed, 0);
}

void tn_tmpdir_cleanup(char (*path)[256])
{
    tn_tmpdir_remove(*path);
}
