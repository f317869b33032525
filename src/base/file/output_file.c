/* output_file.c - writes outputs: files beside their place until they are whole, streams at once.
 *
 * Where the name of an output leads, and whether it may be written there:
 *
 *     pred.tsv -> /data/pred.tsv         OUT_FILE, "/data/pred.tsv", there or not
 *     pipe                               OUT_FIFO, "pipe"
 *     /dev/stdout -> /proc/self/fd/1     OUT_DESCRIPTOR, 1
 *
 * Links are followed one by one, so that the last one may lead to what is not there yet.
 */
#include "base/file/output_file.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/file/fileio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

typedef enum out_kind {
    OUT_FILE,
    OUT_DEVICE,
    OUT_FIFO,
    OUT_SOCKET,
    OUT_DESCRIPTOR, /* a descriptor that this process has open */
} out_kind;

typedef struct out_place {
    out_kind kind;
    int fd; /* for OUT_DESCRIPTOR */
    char path[TN_PATH_SIZE];
} out_place;

enum { LINKS_MAX = 40 };

/* Before each path in a list of inputs, which ends with NUL. */
typedef struct file_id {
    dev_t dev;
    ino_t ino;
} file_id;

/* ---- what a run reads ---- */

tn_status tn_inputs_add(tn_inputs *in, const char *path, tn_error *err)
{
    struct stat st;
    bool piped = strcmp(path, "-") == 0;
    if ((piped ? fstat(STDIN_FILENO, &st) : stat(path, &st)) != 0 || S_ISCHR(st.st_mode) ||
        S_ISSOCK(st.st_mode)) {
        return TN_OK;
    }
    const file_id id = {st.st_dev, st.st_ino};
    const char *name = piped ? "standard input" : path;
    tn_text_add(&in->list, &id, sizeof id);
    tn_text_add(&in->list, name, strlen(name) + 1);
    return tn_text_check(&in->list, "the inputs of a run", err);
}

void tn_inputs_done(tn_inputs *in)
{
    tn_text_done(&in->list);
}

static tn_status check_inputs(const char *asked, const struct stat *st, const tn_inputs *in,
                              tn_error *err)
{
    static const char hint[] = "and an output may not replace it\nhint: name another file";
    if (in == NULL || S_ISCHR(st->st_mode) || S_ISSOCK(st->st_mode)) {
        return TN_OK;
    }
    file_id id;
    const char *at = tn_text_str(&in->list);
    const char *end = at + in->list.size;
    while (at < end) {
        memcpy(&id, at, sizeof id);
        const char *path = at + sizeof id;
        at = path + strlen(path) + 1;
        if (id.dev != st->st_dev || id.ino != st->st_ino) {
            continue;
        }
        return strcmp(path, asked) == 0
                   ? tn_fail(err, TN_E_USAGE, "'%s' is read by this run, %s", asked, hint)
                   : tn_fail(err, TN_E_USAGE, "'%s' is '%s', which is read by this run, %s", asked,
                             path, hint);
    }
    return TN_OK;
}

/* ---- checkpoints and exports ---- */

static bool holds(const char *dir, const char *name)
{
    char path[TN_PATH_SIZE];
    return tn_path_join(dir, name, path, NULL) == TN_OK && tn_path_exists(path);
}

/* Returns whether a folder is called as a checkpoint is, whole, damaged or unfinished. */
static bool is_named_ckpt(const char *dir)
{
    const char *name = strrchr(dir, '/');
    return name != NULL && strncmp(name, "/ckpt-", 6) == 0 && name[6] >= '0' && name[6] <= '9';
}

/* Checks the folders of `real`, an absolute path, which is used up. */
static tn_status check_folders(const char *asked, char *real, tn_error *err)
{
    TN_ASSERT(real[0] == '/');
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

/* Checks the parent of an output. A path that cannot be resolved yet is made later; if that fails,
 * the failure is reported then. */
static tn_status check_parent(const char *asked, const char *path, tn_error *err)
{
    char parent[TN_PATH_SIZE];
    char real[PATH_MAX];
    TN_TRY(tn_path_parent(path, parent, err));
    return realpath(parent, real) != NULL ? check_folders(asked, real, err) : TN_OK;
}

tn_status tn_output_check_folder(const char *path, tn_error *err)
{
    char real[PATH_MAX];
    TN_TRY(tn_path_check(path, 0, TN_E_USAGE, err));
    return realpath(path, real) != NULL ? check_folders(path, real, err)
                                        : check_parent(path, path, err);
}

/* ---- where a name leads ---- */

static tn_status cannot(const char *path, int failure, tn_error *err)
{
    return tn_fail(err, TN_E_IO, "cannot write '%s': %s", path, strerrordesc_np(failure));
}

/* Returns whether `path` is a link of procfs: its text need not be a path. */
static bool is_magic(const char *path)
{
    struct stat st;
    struct stat proc;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && lstat("/proc/self", &proc) == 0 &&
           st.st_dev == proc.st_dev;
}

/* Recognizes "/proc/self/fd/7", by whatever folder's name. */
static bool is_own_descriptor(const char *path, int *fd)
{
    char parent[TN_PATH_SIZE];
    char real[PATH_MAX];
    char own[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL || strlen(slash + 1) > 9 ||
        slash[1 + strspn(slash + 1, "0123456789")] != '\0') {
        return false;
    }
    *fd = (int)strtol(slash + 1, NULL, 10);
    return tn_path_parent(path, parent, NULL) == TN_OK && realpath(parent, real) != NULL &&
           realpath("/proc/self/fd", own) != NULL && strcmp(real, own) == 0;
}

/* Replaces `path` by the target of the link at its end, in place. */
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

/* Follows all links; *magic: the last one is a link of procfs. */
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

static out_kind kind_of(const struct stat *st)
{
    return S_ISFIFO(st->st_mode) ? OUT_FIFO : S_ISSOCK(st->st_mode) ? OUT_SOCKET : OUT_DEVICE;
}

/* Finds the place of an output. TN_E_USAGE: an output may not be there. TN_E_IO: it cannot be
 * looked at, or is a folder. */
static tn_status place_find(out_place *out, const char *path, const tn_inputs *inputs,
                            tn_error *err)
{
    struct stat st = {0};
    bool magic = false;
    *out = (out_place){.kind = OUT_FILE, .fd = STDOUT_FILENO};
    if (path[0] == '\0') {
        return tn_fail(err, TN_E_USAGE, "an output without a name");
    }
    TN_TRY(tn_path_check(path, 0, TN_E_USAGE, err));
    memcpy(out->path, path, strlen(path) + 1);
    bool own = strcmp(path, "-") == 0;
    if (own) {
        (void)snprintf(out->path, sizeof out->path, "stdout");
    } else {
        TN_TRY(follow(path, out->path, &magic, err));
        own = magic && is_own_descriptor(out->path, &out->fd);
    }
    if (own) {
        out->kind = OUT_DESCRIPTOR;
        return fstat(out->fd, &st) == 0 ? check_inputs(path, &st, inputs, err)
                                        : cannot(path, errno, err);
    }
    if (stat(out->path, &st) != 0) {
        return errno == ENOENT && !magic ? check_parent(path, out->path, err)
                                         : cannot(path, errno, err);
    }
    if (S_ISDIR(st.st_mode)) {
        return tn_fail(err, TN_E_IO, "cannot write '%s': it is a folder", path);
    }
    out->kind = S_ISREG(st.st_mode) && !magic ? OUT_FILE : kind_of(&st);
    TN_TRY(check_inputs(path, &st, inputs, err));
    return out->kind == OUT_SOCKET ? TN_OK : check_parent(path, out->path, err);
}

enum { ATTEMPTS = 8, POLL_MS = 20, ID_DIGITS = 16 };

struct tn_output {
    tn_file *file; /* NULL once it is finished */
    uint64_t size; /* size of the finished file */
    bool stream;
    bool tell;
    bool leads; /* its lock stays until it has its name */
    int held;   /* the locked descriptor, a copy of the file's; -1: none */
    char *path; /* path after all links were followed; owned */
    /* path.<id>.tmp, in the memory of `path`; NULL: a stream, or renamed */
    char *tmp;
    char id[ID_DIGITS + 1];
};

/* ---- unfinished files ---- */

/* Opens a file for its lock; -1: another process holds it, or it cannot be locked. */
static int lock_path(const char *path)
{
    int fd = -1;
    struct stat st;
    if (tn_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &fd, NULL) != TN_OK) {
        return -1;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || tn_io_flock(fd, LOCK_EX) != 0) {
        tn_io_drop(fd, path);
        return -1;
    }
    return fd;
}

void tn_unfinished_remove(const char *path)
{
    int fd = lock_path(path);
    if (fd >= 0) {
        tn_status removed = tn_remove_file(path, NULL);
        (void)removed;
        tn_io_drop(fd, path);
    }
}

/* Returns whether the first of the outputs that were to appear together is still being written. */
static bool lead_lives(const tn_output *lead, const char *id)
{
    char path[TN_PATH_SIZE + ID_DIGITS + 8];
    (void)snprintf(path, sizeof path, "%s.%.*s.tmp", lead->path, (int)ID_DIGITS, id);
    int fd = tn_path_exists(path) ? lock_path(path) : -1;
    if (fd >= 0) {
        tn_io_drop(fd, path);
        return false;
    }
    return tn_path_exists(path);
}

/* Removes files that killed writers of the same output left. They do no harm, so a failure to
 * remove them is none. */
static void sweep(const char *of, const tn_output *lead)
{
    char folder[TN_PATH_SIZE];
    const char *slash = strrchr(of, '/');
    const char *base = slash != NULL ? slash + 1 : of;
    if (tn_path_parent(of, folder, NULL) != TN_OK) {
        return;
    }
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) { // NOLINT(concurrency-mt-unsafe): own
        char path[TN_PATH_SIZE];
        const char *name = entry->d_name;
        if (tn_is_unfinished(name, base) && tn_path_join(folder, name, path, NULL) == TN_OK &&
            (lead == NULL || !lead_lives(lead, name + strlen(base) + 1))) {
            tn_unfinished_remove(path);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* ---- opening ---- */

static tn_status set_name(tn_output *o, const char *path, tn_error *err)
{
    size_t size = strlen(path);
    TN_TRY(tn_path_check(path, TN_UNFINISHED_TAIL, TN_E_USAGE, err));
    TN_TRY(TN_ALLOC(o->path, 2 * (size + 1) + TN_UNFINISHED_TAIL, "an output", err));
    memcpy(o->path, path, size + 1);
    return TN_OK;
}

/* Composes the name of the unfinished file: with a new id each time, or the id of the lead. */
static void name_tmp(tn_output *o, const tn_output *lead)
{
    TN_ASSERT(lead == NULL || strlen(lead->id) == ID_DIGITS);
    size_t size = strlen(o->path);
    if (lead != NULL) {
        memcpy(o->id, lead->id, sizeof o->id);
    } else {
        (void)snprintf(o->id, sizeof o->id, "%016llx", (unsigned long long)tn_random_id());
    }
    o->tmp = o->path + size + 1;
    memcpy(o->tmp, o->path, size);
    (void)snprintf(o->tmp + size, TN_UNFINISHED_TAIL + 1, ".%s.tmp", o->id);
}

/* Gives a file the rights of the one it replaces: its mode, owner and group as far as they may be
 * given, and no more to a group that is another. */
static void take_rights(int fd, const struct stat *old)
{
    const mode_t mode = old->st_mode & 0777;
    const bool same =
        fchown(fd, old->st_uid, old->st_gid) == 0 || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    const mode_t group = same ? mode & 070 : mode & (mode << 3) & 070;
    const int failed = fchmod(fd, (mode & 0707) | group);
    (void)failed; /* then it stays the writer's alone */
}

/* Makes a new file and locks it. Another writer may remove the file before it is locked; then this
 * tries once more. */
static tn_status open_file(tn_output *o, const tn_output_with *with, int *fd, tn_error *err)
{
    struct stat old;
    TN_ASSERT(o->held < 0 && o->path != NULL);
    const bool replaces = stat(o->path, &old) == 0;
    const mode_t mode = replaces ? 0600 : 0644;
    for (uint32_t i = 0;; i++) {
        struct stat st;
        name_tmp(o, with->lead);
        if (with->announce != NULL) {
            with->announce(o->tmp);
        }
        TN_TRY(tn_io_open(o->tmp, O_WRONLY | O_CREAT | O_EXCL, mode, fd, err));
        int failure = tn_io_flock(*fd, LOCK_EX);
        bool lost = failure == EWOULDBLOCK || (fstat(*fd, &st) == 0 && st.st_nlink == 0);
        if (!lost || i == ATTEMPTS) {
            if (replaces) {
                take_rights(*fd, &old);
            }
            o->held = failure == 0 ? fcntl(*fd, F_DUPFD_CLOEXEC, 3) : -1;
            return TN_OK;
        }
        tn_io_drop(*fd, o->tmp);
    }
}

/* Reports a failed open by errno; `fd` may be -1. */
static tn_status cannot_open(const char *verb, const char *path, int fd, tn_error *err)
{
    int failure = errno;
    if (fd >= 0) {
        tn_io_drop(fd, path);
    }
    return tn_fail(err, TN_E_IO, "cannot %s '%s': %s", verb, path, strerrordesc_np(failure));
}

/* Opens a FIFO. Without a reader open(2) waits for ever; here a signal ends the wait. */
static tn_status open_fifo(const char *path, const atomic_bool *stop, int *fd, tn_error *err)
{
    while ((*fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 &&
           (errno == ENXIO || errno == EINTR)) {
        if (stop != NULL && atomic_load(stop)) {
            return tn_fail(err, TN_E_STOPPED, "stopped by a signal: nobody reads '%s'", path);
        }
        (void)poll(NULL, 0, POLL_MS);
    }
    int flags = *fd >= 0 ? fcntl(*fd, F_GETFL) : -1;
    if (flags >= 0 && fcntl(*fd, F_SETFL, flags & ~O_NONBLOCK) == 0) {
        return TN_OK;
    }
    return cannot_open("open", path, *fd, err);
}

static tn_status open_socket(const char *path, int *fd, tn_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path) {
        return tn_fail(err, TN_E_USAGE, "the path of a socket is longer than %zu bytes: '%s'",
                       sizeof address.sun_path - 1, path);
    }
    memcpy(address.sun_path, path, size);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0 && connect(*fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        return TN_OK;
    }
    return cannot_open("connect to", path, *fd, err);
}

static tn_status open_place(tn_output *o, const out_place *p, const tn_output_with *with, int *fd,
                            tn_error *err)
{
    switch (p->kind) {
    case OUT_FILE:
        sweep(p->path, with->lead);
        return open_file(o, with, fd, err);
    case OUT_FIFO:
        return open_fifo(p->path, with->stop, fd, err);
    case OUT_SOCKET:
        return open_socket(p->path, fd, err);
    case OUT_DESCRIPTOR:
        *fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
        return *fd >= 0 ? TN_OK : cannot(p->path, errno, err);
    case OUT_DEVICE:
        break;
    }
    return tn_io_open(p->path, O_WRONLY | O_NOCTTY, 0, fd, err);
}

tn_status tn_output_open(tn_output **out, const char *path, const tn_output_with *with,
                         tn_error *err)
{
    static const tn_output_with nothing = {0};
    *out = NULL;
    with = with != NULL ? with : &nothing;
    tn_output *o = NULL;
    TN_TRY(TN_ALLOC(o, 1, "an output", err));
    int fd = -1;
    o->held = -1;
    o->leads = with->lead == NULL;
    o->tell = with->tell;
    out_place place;
    tn_status status = place_find(&place, path, with->inputs, err);
    if (status == TN_OK) {
        status = set_name(o, place.path, err);
    }
    if (status == TN_OK) {
        o->stream = place.kind != OUT_FILE;
        status = open_place(o, &place, with, &fd, err);
    }
    if (status == TN_OK) {
        status = tn_file_take(&o->file, fd, o->stream ? o->path : o->tmp, o->stream, err);
    }
    if (status != TN_OK) {
        tn_output_abandon(o);
        return status;
    }
    TN_ASSERT(o->stream == (o->tmp == NULL));
    *out = o;
    return TN_OK;
}

/* ---- looking beforehand ---- */

tn_status tn_output_check(const char *path, const tn_inputs *inputs, tn_error *err)
{
    out_place place;
    return place_find(&place, path, inputs, err);
}

tn_status tn_output_try(const char *path, const tn_inputs *inputs, tn_error *err)
{
    out_place place;
    tn_output *o = NULL;
    TN_TRY(place_find(&place, path, inputs, err));
    if (place.kind == OUT_FILE) { /* the reader of a stream would see that it was opened */
        TN_TRY(tn_output_open(&o, path, NULL, err));
    }
    tn_output_abandon(o);
    return TN_OK;
}

bool tn_output_is_stdout(const char *path)
{
    out_place place;
    return path != NULL && place_find(&place, path, NULL, NULL) == TN_OK &&
           place.kind == OUT_DESCRIPTOR && place.fd == STDOUT_FILENO;
}

/* ---- writing ---- */

tn_status tn_output_expect(const tn_output *o, uint64_t bytes, tn_error *err)
{
    TN_ASSERT(o->stream || o->tmp != NULL);
    return o->stream ? TN_OK : tn_disk_need(o->tmp, bytes, err);
}

tn_status tn_output_write(tn_output *o, const void *data, size_t size, tn_error *err)
{
    TN_ASSERT(o->file != NULL);
    return tn_file_write(o->file, data, size, err);
}

uint64_t tn_output_size(const tn_output *o)
{
    return o->file != NULL ? tn_file_size(o->file) : o->size;
}

bool tn_output_is_stream(const tn_output *o)
{
    return o->stream;
}

const char *tn_output_tmp(const tn_output *o)
{
    return o->tmp;
}

static void let_go(tn_output *o)
{
    if (o->held >= 0) {
        tn_io_drop(o->held, o->path);
        o->held = -1;
    }
}

tn_status tn_output_finish(tn_output *o, tn_error *err)
{
    TN_ASSERT(o->file != NULL);
    tn_file *file = o->file;
    o->size = tn_file_size(file);
    o->file = NULL; /* gone either way */
    tn_status status = tn_file_commit(file, err);
    if (status != TN_OK) {
        o->tmp = NULL; /* removed */
    }
    if (!o->leads) {
        let_go(o); /* thousands of them would be too many descriptors */
    }
    return status;
}

tn_status tn_output_commit(tn_output *o, tn_error *err)
{
    tn_status status = o->file != NULL ? tn_output_finish(o, err) : TN_OK;
    if (status == TN_OK && !o->stream) {
        TN_ASSERT(o->tmp != NULL);
        const bool replaces = o->tell && tn_path_exists(o->path);
        status = tn_rename(o->tmp, o->path, err);
        if (status == TN_OK) {
            o->tmp = NULL;
        }
        if (status == TN_OK && replaces) {
            tn_log(TN_LOG_INFO, "replaced '%s'", o->path);
        }
    }
    tn_output_abandon(o);
    return status;
}

void tn_output_abandon(tn_output *o)
{
    if (o == NULL) {
        return;
    }
    tn_file_abandon(o->file);
    if (o->file == NULL && o->tmp != NULL) {
        tn_status removed = tn_remove_file(o->tmp, NULL);
        (void)removed; /* the next writer of this output removes it */
    }
    let_go(o);
    tn_free(o->path);
    tn_free(o);
}

tn_status tn_output_put(const char *path, const void *data, size_t size, const tn_output_with *with,
                        tn_error *err)
{
    enum { TWICE = 2 };
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < TWICE; i++) {
        tn_output *o = NULL;
        TN_TRY(tn_output_open(&o, path, with, err));
        bool stream = o->stream;
        status = tn_output_write(o, data, size, err);
        if (status != TN_OK) {
            tn_output_abandon(o);
        } else {
            status = tn_output_commit(o, err);
        }
        if (status != TN_E_IO || stream) {
            break;
        }
    }
    return status;
}
