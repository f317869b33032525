/* tmpdir.h - a folder for one test. */
#pragma once

#include <stddef.h>

/* A new empty folder below $TMPDIR, else in memory (thousands of syncs), else in /tmp; made without
 * the file module. Fails the test otherwise. */
void tn_tmpdir_make(char path[256]);

/* The same with what an archive of golden files (test/golden/pack.sh) holds: `name` is models for
 * test/golden/models.tar.gz. */
void tn_tmpdir_unpack(char path[256], const char *name);

/* With all that is in it, folders too. */
void tn_tmpdir_remove(const char *path);
void tn_tmpdir_cleanup(char (*path)[256]);

/* In a block: declares `dir` as a new folder, which goes with the block. */
#define TMPDIR(dir)                                                                                \
    char dir[256] __attribute__((cleanup(tn_tmpdir_cleanup)));                                     \
    tn_tmpdir_make(dir)

/* In a block: declares `path` as that of a file in `dir`. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a name and a literal that is joined */
#define PATH_IN(path, dir, name)                                                                   \
    char path[300];                                                                                \
    assert_in_range(snprintf(path, sizeof path, "%s/" name, dir), 1, sizeof path - 1)
/* NOLINTEND(bugprone-macro-parentheses) */

/* In a file: declares `dir` as a folder for each of its tests, or one for all of them. */
#define TMPDIR_FIXTURE(dir) TMPDIR_OF(dir, FIXTURE, tn_tmpdir_make(dir))
#define TMPDIR_GROUP(dir) TMPDIR_OF(dir, GROUP, tn_tmpdir_make(dir))
#define TMPDIR_UNPACKED(dir, name) TMPDIR_OF(dir, GROUP, tn_tmpdir_unpack(dir, name))
#define TMPDIR_OF(dir, KIND, make)                                                                 \
    static char dir[256];                                                                          \
    static int make_##dir(void **state)                                                            \
    {                                                                                              \
        (void)state;                                                                               \
        make;                                                                                      \
        return 0;                                                                                  \
    }                                                                                              \
    static int remove_##dir(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        tn_tmpdir_remove(dir);                                                                     \
        return 0;                                                                                  \
    }                                                                                              \
    KIND(make_##dir, remove_##dir)
