/* keys.c - see keys.h. */
#include "cluster/keys.h"

#include "support/test.h"

#include <sys/stat.h>

const tn_zmq *keys_zmq(void)
{
    static tn_zmq z;
    tn_error err = {0};
    assert_ok(tn_zmq_load(&z, &err), err.text);
    return &z;
}

const char *keys_path(const char *dir, const char *name)
{
    static char paths[8][TN_PATH_SIZE];
    static uint32_t next;
    char *path = paths[next++ % 8];
    assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
    return path;
}

tn_curve_pair keys_make(const char *dir, const char *name)
{
    tn_curve_pair pair;
    tn_error err = {0};
    char file[80];
    char open[80];
    (void)snprintf(file, sizeof file, "%s.key", name);
    (void)snprintf(open, sizeof open, "%s.pub", name);
    fail_if(tn_curve_make(keys_zmq(), &pair, &err) != TN_OK ||
                tn_curve_write(keys_zmq(), &pair, keys_path(dir, file), keys_path(dir, open),
                               &err) != TN_OK,
            "%s", err.text);
    return pair;
}

void keys_put(const char *path, const char *text, unsigned mode)
{
    assert_int_equal(tn_file_replace(path, text, strlen(text), NULL), TN_OK);
    assert_int_equal(chmod(path, mode), 0);
}
