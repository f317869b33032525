/* output_place.c - follows links, and knows what must not be written over. */
#include "base/file/output_place.h"

#include "base/core/alloc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

struct tn_input {
    dev_t dev;
    ino_t ino;
    char *path; /* owned */
};

/* ---- what a run reads ---- */

static tn_status grow(tn_inputs *in, tn_error *err)
{
    uint32_t more = in->capacity == 0 ? 16 : 2 * in->capacity;
    struct tn_input *item = tn_try_alloc(more, sizeof *item, "the inputs of a run", err);
    if (item == NULL) {
        return TN_E_MEMORY;
    }
    if (in->n > 0) {
        memcpy(item, in->item, in->n * sizeof *item);
    }
    tn_free(in->item);
    in->item = item;
    in->capacity = more;
    return TN_OK;
}

tn_status tn_inputs_add(tn_inputs *in, const char *path, tn_error *err)
{
    struct stat st;
    bool piped = strcmp(path, "-") == 0;
    if ((piped ? fstat(STDIN_FILENO, &st) : stat(path, &st)) != 0 || S_ISCHR(st.st_mode) ||
        S_ISSOCK(st.st_mode)) {
        return TN_OK;
    }
    if (in->n == in->capacity) {
        TN_TRY(grow(in, err));
    }
    const char *name = piped ? "standard input" : path;
    char *copy = tn_try_alloc(strlen(name) + 1, 1, "the inputs of a run", err);
    if (copy == NULL) {
        return TN_E_MEMORY;
    }
    memcpy(copy, name, strlen(name) + 1);
    in->item[in->n++] = (struct tn_input){st.st_dev, st.st_ino, copy};
    return TN_OK;
}

void tn_inputs_done(tn_inputs *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        tn_free(in->item[i].path);
    }
    tn_free(in->item);
    *in = (tn_inputs){0};
}

static tn_status check_inputs(const char *asked, const struct stat *st, const tn_inputs *in,
                              tn_error *err)
{
    static const char hint[] = "and an output may not replace it\nhint: name another file";
    if (in == NULL || S_ISCHR(st->st_mode) || S_ISSOCK(st->st_mode)) {
        return TN_OK;
    }
    for (uint32_t i = 0; i < in->n; i++) {
        const struct tn_input *item = &in->item[i];
        if (item->dev != st->st_dev || item->ino != st->st_ino) {
            continue;
        }
        return strcmp(item->path, asked) == 0
                   ? tn_fail(err, TN_E_USAGE, "'%s' is read by this run, %s", asked, hint)
                   : tn_fail(err, TN_E_USAGE, "'%s' is '%s', which is read by this run, %s", asked,
                             item->path, hint);
    }
    return TN_OK;
}

/* ---- checkpoints and exports ---- */

static tn_status too_long(const char *path, tn_error *err)
{
    return tn_fail(err, TN_E_USAGE, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1, path);
}

static bool holds(const char *dir, const char *name)
{
    char path[TN_PATH_SIZE];
    return tn_path_join(dir, name, path, NULL) == TN_OK && tn_path_exists(path);
}

/* Whether a folder is called as a checkpoint is, whole, damaged or unfinished. */
static bool is_named_ckpt(const char *dir)
{
    const char *name = strrchr(dir, '/');
    return name != NULL && strncmp(name, "/ckpt-", 6) == 0 && name[6] >= '0' && name[6] <= '9';
}

/* `real`: an absolute path, which is used up. */
static tn_status check_folders(const char *asked, char *real, tn_error *err)
{
    while (real[0] != '\0') {
        bool ckpt = is_named_ckpt(real) && holds(real, "MANIFEST");
        if (ckpt || holds(real, "EXPORT.json")) {
            return tn_fail(err, TN_E_USAGE,
                           "'%s' lies in the %s '%s', where nothing else is written\nhint: name "
                           "another place",
                           asked, ckpt ? "checkpoint" : "export", real);
        }
        *strrchr(real, '/') = '\0';
    }
    return TN_OK;
}

/* What cannot be found yet is made later, or a failure that is told then. */
static tn_status check_parent(const char *asked, const char *path, tn_error *err)
{
    char parent[TN_PATH_SIZE];
    char real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    memcpy(parent, slash == NULL ? "." : path, size);
    parent[size] = '\0';
    return realpath(parent, real) != NULL ? check_folders(asked, real, err) : TN_OK;
}

tn_status tn_output_check_folder(const char *path, tn_error *err)
{
    char real[PATH_MAX];
    if (strlen(path) >= TN_PATH_SIZE) {
        return too_long(path, err);
    }
    return realpath(path, real) != NULL ? check_folders(path, real, err)
                                        : check_parent(path, path, err);
}

/* ---- where a name leads ---- */

static tn_status cannot(const char *path, int failure, tn_error *err)
{
    return tn_fail(err, TN_E_IO, "cannot write '%s': %s", path, strerrordesc_np(failure));
}

/* A link of procfs: its text need not be a path. */
static bool is_magic(const char *path)
{
    struct stat st;
    struct stat proc;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && lstat("/proc/self", &proc) == 0 &&
           st.st_dev == proc.st_dev;
}

/* "/proc/self/fd/7", by whatever folder's name. */
static bool is_own_descriptor(const char *path, int *fd)
{
    char parent[TN_PATH_SIZE];
    char real[PATH_MAX];
    char own[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path || strlen(slash + 1) > 9 ||
        slash[1 + strspn(slash + 1, "0123456789")] != '\0') {
        return false;
    }
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    *fd = (int)strtol(slash + 1, NULL, 10);
    return realpath(parent, real) != NULL && realpath("/proc/self/fd", own) != NULL &&
           strcmp(real, own) == 0;
}

/* The path behind a link, in place. */
static tn_status step(const char *asked, char path[TN_PATH_SIZE], const char *text, tn_error *err)
{
    char next[2 * TN_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    int base = text[0] == '/' || slash == NULL ? 0 : (int)(slash - path) + 1;
    int size = snprintf(next, sizeof next, "%.*s%s", base, path, text);
    if (size < 0 || size >= TN_PATH_SIZE) {
        return cannot(asked, ENAMETOOLONG, err);
    }
    memcpy(path, next, (size_t)size + 1);
    return TN_OK;
}

/* Behind all links; *magic: at one of procfs. */
static tn_status follow(const char *asked, char path[TN_PATH_SIZE], bool *magic, tn_error *err)
{
    char text[TN_PATH_SIZE];
    for (uint32_t i = 0; i <= LINKS_MAX; i++) {
        *magic = is_magic(path);
        ssize_t size = *magic ? -1 : readlink(path, text, sizeof text - 1);
        if (size < 0) {
            return TN_OK;
        }
        text[size] = '\0';
        TN_TRY(step(asked, path, text, err));
    }
    return cannot(asked, ELOOP, err);
}

static tn_status find_descriptor(tn_out_place *out, const char *asked, struct stat *st,
                                 tn_error *err)
{
    out->kind = TN_OUT_DESCRIPTOR;
    return fstat(out->fd, st) == 0 ? TN_OK : cannot(asked, errno, err);
}

static tn_out_kind kind_of(const struct stat *st)
{
    return S_ISFIFO(st->st_mode)   ? TN_OUT_FIFO
           : S_ISSOCK(st->st_mode) ? TN_OUT_SOCKET
                                   : TN_OUT_DEVICE;
}

tn_status tn_out_place_find(tn_out_place *out, const char *path, const tn_inputs *inputs,
                            tn_error *err)
{
    struct stat st = {0};
    bool magic = false;
    *out = (tn_out_place){.kind = TN_OUT_FILE, .fd = STDOUT_FILENO};
    int size = snprintf(out->path, sizeof out->path, "%s", path);
    if (size <= 0) {
        return tn_fail(err, TN_E_USAGE, "an output without a name");
    }
    if (size >= TN_PATH_SIZE) {
        return too_long(path, err);
    }
    if (strcmp(path, "-") == 0) {
        (void)snprintf(out->path, sizeof out->path, "stdout");
        TN_TRY(find_descriptor(out, path, &st, err));
        return check_inputs(path, &st, inputs, err);
    }
    TN_TRY(follow(path, out->path, &magic, err));
    if (magic && is_own_descriptor(out->path, &out->fd)) {
        TN_TRY(find_descriptor(out, path, &st, err));
        return check_inputs(path, &st, inputs, err);
    }
    if (stat(out->path, &st) != 0) {
        return errno == ENOENT && !magic ? check_parent(path, out->path, err)
                                         : cannot(path, errno, err);
    }
    if (S_ISDIR(st.st_mode)) {
        return tn_fail(err, TN_E_IO, "cannot write '%s': it is a folder", path);
    }
    out->kind = S_ISREG(st.st_mode) && !magic ? TN_OUT_FILE : kind_of(&st);
    TN_TRY(check_inputs(path, &st, inputs, err));
    return out->kind == TN_OUT_SOCKET ? TN_OK : check_parent(path, out->path, err);
}
