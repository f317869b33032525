/* dictfile.c - see dictfile.h. */
#include "dictfile.h"

#include "support/test.h"

void tn_dictfile_open(tn_dictfile *f)
{
    f->rows = tn_alloc(1, sizeof *f->rows, "rows");
    tn_tmpdir_make(f->dir);
    (void)snprintf(f->path, sizeof f->path, "%s/dict.tnd", f->dir);
}

void tn_dictfile_close(tn_dictfile *f)
{
    tn_tmpdir_remove(f->dir);
    tn_free(f->rows);
}

int tn_dictfile_set_up(void **state)
{
    tn_dictfile *f = tn_alloc(1, sizeof *f, "a fixture");
    tn_dictfile_open(f);
    *state = f;
    return 0;
}

int tn_dictfile_tear_down(void **state)
{
    tn_dictfile_close(*state);
    tn_free(*state);
    return 0;
}
