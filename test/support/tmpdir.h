/* tmpdir.h - a folder for one test. */
#pragma once

#include <stddef.h>

/* A new empty folder below $TMPDIR, else in memory (thousands of syncs), else in /tmp; made without
 * the file module. Fails the test otherwise. */
void tn_tmpdir_make(char path[256]);

/* With all that is in it, folders too. */
void tn_tmpdir_remove(const char *path);
