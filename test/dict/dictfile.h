/* dictfile.h - the fixture of tests that write a dictionary: a folder, a file in it, and rows. */
#pragma once

#include "dictrows.h"

typedef struct tn_dictfile {
    char dir[256];
    char path[300];
    tn_dictrows *rows;
} tn_dictfile;

void tn_dictfile_open(tn_dictfile *f);
void tn_dictfile_close(tn_dictfile *f);

/* For cmocka: *state is a tn_dictfile. */
int tn_dictfile_set_up(void **state);
int tn_dictfile_tear_down(void **state);
