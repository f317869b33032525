/* filetree.c - folders: make, list, rename, sync, remove. */
#include "base/file/file.h"
#include "base/file/fileio.h"

#include "base/core/alloc.h"
#include "base/core/failpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    DEPTH_MAX = 8,         /* levels of a tree that is removed */
    NAMES_MAX = 1 << 20,   /* names in one folder */
    NAMES_BYTES = 64 << 20 /* bytes of all these names together */
};

bool tn_path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

tn_status tn_path_join(const char *dir, const char *name, char out[TN_PATH_SIZE], tn_error *err)
{
    int length = snprintf(out, TN_PATH_SIZE, "%s/%s", dir, name);
    if (length < 0 || length >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s../%.64s'",
                       TN_PATH_SIZE - 1, dir, name);
    }
    return TN_OK;
}

tn_status tn_path_check(const char *path, size_t more, tn_status code, tn_error *err)
{
    size_t most = TN_PATH_SIZE - 1 - more;
    return strlen(path) <= most
               ? TN_OK
               : tn_fail(err, code, "path longer than %zu bytes: '%.64s..'", most, path);
}

tn_status tn_path_parent(const char *path, char out[TN_PATH_SIZE], tn_error *err)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    while (size > 0 && path[size - 1] != '/') {
        size--;
    }
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    TN_TRY(tn_path_check(path, 0, TN_E_LIMIT, err));
    memcpy(out, size > 0 ? path : ".", size > 0 ? size : 1);
    out[size > 0 ? size : 1] = '\0';
    return TN_OK;
}

tn_status tn_dir_sync(const char *path, tn_error *err)
{
    int fd;
    TN_TRY(tn_io_open(path, O_RDONLY | O_DIRECTORY, 0, &fd, err));
    tn_status status = tn_io_fsync(fd, path, err);
    tn_error later = {0};
    tn_status closed = tn_io_close(fd, path, status == TN_OK ? err : &later);
    return status == TN_OK ? closed : status;
}

bool tn_path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static tn_status make(const char *path, mode_t mode, tn_error *err)
{
    int failure = tn_io_injected("io.mkdir");
    if (failure == 0 && mkdir(path, mode) != 0) {
        failure = errno;
    }
    return tn_io_ended(failure, "make folder", (tn_file_op){.kind = TN_DIR_MADE, .path = path},
                       err);
}

tn_status tn_dir_make_new(const char *path, tn_error *err)
{
    return make(path, 0777, err);
}

tn_status tn_dir_make_private(const char *path, tn_error *err)
{
    struct stat st;
    tn_status status = make(path, 0700, err);
    if (status == TN_OK || lstat(path, &st) != 0) {
        return status;
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return tn_fail(err, TN_E_IO, "'%s' is there already, and not a folder of this user's alone",
                       path);
    }
    return TN_OK;
}

/* Makes one level and syncs it. Another process may have made it meanwhile. */
static tn_status make_level(const char *path, tn_error *err)
{
    if (tn_path_is_dir(path)) {
        return TN_OK;
    }
    tn_status status = make(path, 0777, err);
    if (status != TN_OK) {
        return tn_path_is_dir(path) ? TN_OK : status;
    }
    char parent[TN_PATH_SIZE];
    TN_TRY(tn_path_parent(path, parent, err));
    return tn_dir_sync(parent, err);
}

/* Refuses names that no disk can take. */
static tn_status check_name(const char *path, tn_error *err)
{
    size_t longest = 0;
    for (const char *at = path; *at != '\0'; at += *at == '/') {
        size_t part = strcspn(at, "/");
        longest = part > longest ? part : longest;
        at += part;
    }
    if (path[0] == '\0' || longest > NAME_MAX || strlen(path) >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_USAGE,
                       "cannot make folder '%.64s': its name has not 1 to %d bytes", path,
                       longest > NAME_MAX ? NAME_MAX : TN_PATH_SIZE - 1);
    }
    return TN_OK;
}

tn_status tn_dir_make(const char *path, tn_error *err)
{
    char level[TN_PATH_SIZE];
    size_t size = strlen(path);
    TN_TRY(check_name(path, err));
    for (size_t i = 1; i < size; i++) {
        if (path[i] == '/' && path[i - 1] != '/') {
            memcpy(level, path, i);
            level[i] = '\0';
            TN_TRY(make_level(level, err));
        }
    }
    return make_level(path, err);
}

tn_status tn_rename(const char *from, const char *to, tn_error *err)
{
    char from_parent[TN_PATH_SIZE];
    char to_parent[TN_PATH_SIZE];
    TN_TRY(tn_path_parent(from, from_parent, err));
    TN_TRY(tn_path_parent(to, to_parent, err));
    int failure = tn_io_injected("io.rename");
    if (failure == 0 && rename(from, to) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        return tn_fail(err, TN_E_IO, "cannot rename '%s' to '%s': %s", from, to,
                       strerrordesc_np(failure));
    }
    TN_TRY(tn_io_ended(0, "", (tn_file_op){.kind = TN_FILE_RENAMED, .path = from, .to = to}, err));
    TN_TRY(tn_dir_sync(to_parent, err));
    return strcmp(from_parent, to_parent) == 0 ? TN_OK : tn_dir_sync(from_parent, err);
}

/* Removes a file or an empty folder. One that is gone already counts as removed. */
static tn_status remove_entry(const char *path, bool folder, tn_error *err)
{
    int failure = tn_io_injected(folder ? "io.rmdir" : "io.unlink");
    if (failure == 0 && (folder ? rmdir(path) : unlink(path)) != 0) {
        failure = errno;
    }
    const tn_file_op done = {.kind = folder ? TN_DIR_REMOVED : TN_FILE_UNLINKED, .path = path};
    return failure == ENOENT ? TN_OK
                             : tn_io_ended(failure, folder ? "remove folder" : "remove", done, err);
}

tn_status tn_remove_file(const char *path, tn_error *err)
{
    return remove_entry(path, false, err);
}

void tn_remove_in_handler(const char *path)
{
    (void)unlink(path);
}

static tn_status remove_tree(const char *path, uint32_t depth, tn_error *err)
{
    TN_ASSERT(depth <= DEPTH_MAX);
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return tn_remove_file(path, err);
    }
    if (depth == DEPTH_MAX) {
        return tn_fail(err, TN_E_IO, "cannot remove '%s': more than %d folders deep", path,
                       DEPTH_MAX);
    }
    tn_text names = {0};
    uint32_t n = 0;
    tn_status status = tn_dir_list(path, &names, &n, err);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        char inner[TN_PATH_SIZE];
        status = tn_path_join(path, name, inner, err);
        if (status == TN_OK) {
            status = remove_tree(inner, depth + 1, err);
        }
        name += strlen(name) + 1;
    }
    TN_ASSERT(name <= tn_text_str(&names) + names.size);
    tn_text_done(&names);
    return status == TN_OK ? remove_entry(path, true, err) : status;
}

tn_status tn_remove_tree(const char *path, tn_error *err)
{
    return remove_tree(path, 0, err);
}

static int compare_names(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

/* Appends the names to `out` in bytewise order. */
static tn_status add_sorted(const tn_text *names, uint32_t n, tn_text *out, tn_error *err)
{
    const char **at = NULL;
    TN_TRY(TN_ALLOC(at, n, "the names of a folder", err));
    const char *name = tn_text_str(names);
    for (uint32_t i = 0; i < n; i++) {
        at[i] = name;
        name += strlen(name) + 1;
    }
    TN_ASSERT(name == tn_text_str(names) + names->size);
    qsort(at, n, sizeof *at, compare_names);
    for (uint32_t i = 0; i < n; i++) {
        tn_text_add(out, at[i], strlen(at[i]) + 1);
    }
    tn_free(at);
    return tn_text_check(out, "the names of a folder", err);
}

/* Reads all names but "." and "..", in the order the system gives. */
static tn_status read_names(DIR *dir, const char *path, tn_text *names, uint32_t *n, tn_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir); // NOLINT(concurrency-mt-unsafe): own stream
        if (entry == NULL) {
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (*n == NAMES_MAX) {
            return tn_fail(err, TN_E_LIMIT, "more than %d files in '%s'", NAMES_MAX, path);
        }
        tn_text_add(names, entry->d_name, strlen(entry->d_name) + 1);
        ++*n;
    }
    if (errno != 0) {
        return tn_fail(err, TN_E_IO, "cannot list '%s': %s", path, strerrordesc_np(errno));
    }
    return tn_text_check(names, "the names of a folder", err);
}

tn_status tn_dir_list(const char *path, tn_text *out, uint32_t *n, tn_error *err)
{
    int fd;
    TN_TRY(tn_io_open(path, O_RDONLY | O_DIRECTORY, 0, &fd, err));
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int failure = errno;
        tn_io_drop(fd, path);
        return tn_fail(err, TN_E_IO, "cannot list '%s': %s", path, strerrordesc_np(failure));
    }
    tn_text names = {.size_max = NAMES_BYTES};
    uint32_t count = 0;
    tn_status status = read_names(dir, path, &names, &count, err);
    (void)closedir(dir); /* nothing was written through it */
    if (status == TN_OK) {
        status = add_sorted(&names, count, out, err);
    }
    if (status == TN_OK) {
        *n = count;
    }
    tn_text_done(&names);
    return status;
}

tn_status tn_disk_free(const char *path, uint64_t *bytes, tn_error *err)
{
    struct statvfs st;
    if (statvfs(path, &st) != 0) {
        return tn_fail(err, TN_E_IO, "cannot ask for free space at '%s': %s", path,
                       strerrordesc_np(errno));
    }
    *bytes = tn_failpoint("disk.full") == 0 ? (uint64_t)st.f_bavail * st.f_frsize : 0;
    return TN_OK;
}

tn_status tn_disk_need(const char *path, uint64_t bytes, tn_error *err)
{
    uint64_t room = 0;
    TN_TRY(tn_disk_free(path, &room, err));
    if (room < bytes) {
        return tn_fail(err, TN_E_IO, "no room for '%s': %llu bytes free, about %llu needed", path,
                       (unsigned long long)room, (unsigned long long)bytes);
    }
    return TN_OK;
}

/* ---- copies ---- */

static tn_status copy_file(const char *from, const char *to, tn_error *err)
{
    enum { PIECE = 1 << 20 };
    tn_infile *in = NULL;
    tn_file *out = NULL;
    char *piece = NULL;
    TN_TRY(tn_infile_open(&in, from, err));
    const uint64_t size = tn_infile_size(in);
    tn_status status = TN_ALLOC(piece, PIECE, "a copy of a file", err);
    status = status == TN_OK ? tn_file_create(&out, to, err) : status;
    for (uint64_t at = 0; at < size && status == TN_OK; at += PIECE) {
        const size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;
        status = tn_infile_read(in, at, piece, n, err);
        status = status == TN_OK ? tn_file_write(out, piece, n, err) : status;
    }
    tn_infile_close(in);
    tn_free(piece);
    if (status != TN_OK) {
        tn_file_abandon(out);
        return status;
    }
    return tn_file_commit(out, err);
}

typedef struct copying {
    bool (*takes)(const char *name); /* NULL: all */
    uint32_t depth;
} copying;

static tn_status copy_folder(const copying *c, const char *from, const char *to, tn_error *err);

static tn_status copy_entry(const copying *c, const char *from, const char *to, const char *name,
                            tn_error *err)
{
    struct stat st;
    char source[TN_PATH_SIZE];
    char target[TN_PATH_SIZE];
    TN_TRY(tn_path_join(from, name, source, err));
    TN_TRY(tn_path_join(to, name, target, err));
    if ((c->takes != NULL && !c->takes(name)) || lstat(source, &st) != 0) {
        return TN_OK;
    }
    if (S_ISDIR(st.st_mode)) {
        const copying inner = {c->takes, c->depth + 1};
        return copy_folder(&inner, source, target, err);
    }
    return S_ISREG(st.st_mode) ? copy_file(source, target, err) : TN_OK;
}

static tn_status copy_folder(const copying *c, const char *from, const char *to, tn_error *err)
{
    tn_text names = {0};
    uint32_t n = 0;
    if (c->depth > DEPTH_MAX) {
        return tn_fail(err, TN_E_LIMIT, "'%s' is nested deeper than %d", from, DEPTH_MAX);
    }
    TN_TRY(tn_dir_make_new(to, err));
    tn_status status = tn_dir_list(from, &names, &n, err);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n && status == TN_OK; i++, name += strlen(name) + 1) {
        status = copy_entry(c, from, to, name, err);
    }
    tn_text_done(&names);
    return status == TN_OK ? tn_dir_sync(to, err) : status;
}

tn_status tn_copy_tree(const char *from, const char *to, bool (*takes)(const char *name),
                       tn_error *err)
{
    char unfinished[TN_PATH_SIZE];
    const copying c = {.takes = takes};
    TN_TRY(tn_path_check(to, TN_UNFINISHED_TAIL, TN_E_LIMIT, err));
    if (tn_path_exists(to)) {
        return tn_fail(err, TN_E_USAGE, "'%s' is there already\nhint: name a folder that is not",
                       to);
    }
    (void)snprintf(unfinished, sizeof unfinished, "%s.%016llx.tmp", to,
                   (unsigned long long)tn_random_id());
    tn_status status = copy_folder(&c, from, unfinished, err);
    status = status == TN_OK ? tn_rename(unfinished, to, err) : status;
    if (status != TN_OK) {
        const tn_status removed = tn_remove_tree(unfinished, NULL);
        (void)removed; /* the name says that it is not finished */
    }
    return status;
}
