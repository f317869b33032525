/* filelock.c - one owner per run directory.
 *
 * The lock is on the file LOCK, which is never removed. OWNER beside it names the holder, for the
 * message of the next process that asks.
 */
#include "base/file/file.h"
#include "base/file/fileio.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWNER_BYTES_MAX = 4096 };

struct tn_lock {
    int fd;
    struct timespec
        taken; /* the time of OWNER when tn_lock_take wrote it, by the clock of that file system */
    char path[TN_PATH_SIZE];
};

/* Fails with "pid P on host H", as far as OWNER can be read. */
static tn_status held_by_another(const char *dir, tn_error *err)
{
    uint64_t pid = 0;
    const char *host = NULL;
    char path[TN_PATH_SIZE];
    tn_text text = {0};
    tn_arena *arena = tn_arena_new(OWNER_BYTES_MAX);
    const tn_json *owner = NULL;
    if (tn_path_join(dir, "OWNER", path, NULL) == TN_OK &&
        tn_file_read_all(path, OWNER_BYTES_MAX, &text, NULL) == TN_OK &&
        tn_json_parse(&owner, tn_text_str(&text), text.size, arena, path, NULL) == TN_OK) {
        host = tn_json_as_str(tn_json_get(owner, "host"));
    }
    if (host != NULL && tn_json_as_u64(tn_json_get(owner, "pid"), &pid)) {
        (void)tn_fail(err, TN_E_CKPT, "run directory '%s' is in use by pid %llu on host '%.64s'",
                      dir, (unsigned long long)pid, host);
    } else {
        (void)tn_fail(err, TN_E_CKPT, "run directory '%s' is in use by another process", dir);
    }
    tn_arena_free(arena);
    tn_text_done(&text);
    return TN_E_CKPT;
}

/* Locks by `kind`, LOCK_EX or LOCK_SH. *held: another process has the lock. */
static tn_status flock_now(const tn_lock *lock, int kind, bool *held, tn_error *err)
{
    int failure = tn_io_flock(lock->fd, kind);
    *held = failure == EWOULDBLOCK;
    return failure == 0 ? TN_OK
                        : tn_fail(err, TN_E_IO, "cannot lock '%s': %s", lock->path,
                                  strerrordesc_np(failure));
}

/* Writes OWNER; *at is its time by the clock of the file system. */
static tn_status write_owner(const char *dir, uint64_t session, struct timespec *at, tn_error *err)
{
    char path[TN_PATH_SIZE];
    TN_TRY(tn_path_join(dir, "OWNER", path, err));
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof host - 1) != 0) {
        host[0] = '\0';
    }
    tn_text text = {0};
    tn_json_open(&text, '{');
    tn_json_hex64(&text, "session", session);
    tn_json_str(&text, "host", host);
    tn_json_u64(&text, "pid", (uint64_t)getpid());
    tn_json_close(&text, '}');
    tn_text_addc(&text, '\n');
    tn_status status = tn_text_check(&text, "OWNER", err);
    if (status == TN_OK) {
        status = tn_file_replace(path, text.data, text.size, err);
    }
    tn_text_done(&text);
    struct stat st;
    if (status == TN_OK && stat(path, &st) == 0) {
        *at = st.st_mtim;
    }
    return status;
}

/* Opens dir/name with these flags and locks it. *held: another process has the lock. */
static tn_status take(tn_lock **out, const char *dir, const char *name, int flags, bool *held,
                      tn_error *err)
{
    *out = NULL;
    *held = false;
    tn_lock *lock = NULL;
    TN_TRY(TN_ALLOC(lock, 1, "a lock", err));
    lock->fd = -1;
    tn_status status = tn_path_join(dir, name, lock->path, err);
    if (status == TN_OK) {
        status = tn_io_open(lock->path, flags, 0644, &lock->fd, err);
    }
    if (status == TN_OK) {
        status = flock_now(lock, LOCK_EX, held, err);
    }
    if (status != TN_OK) {
        tn_lock_release(lock);
        return status;
    }
    *out = lock;
    return TN_OK;
}

tn_status tn_lock_take(tn_lock **out, const char *dir, uint64_t session, tn_error *err)
{
    bool held = false;
    tn_lock *lock = NULL;
    *out = NULL;
    tn_status status = take(&lock, dir, "LOCK", O_RDWR | O_CREAT, &held, err);
    if (held) {
        status = held_by_another(dir, err);
    }
    if (status == TN_OK) {
        status = write_owner(dir, session, &lock->taken, err);
    }
    if (status != TN_OK) {
        tn_lock_release(lock);
        return status;
    }
    *out = lock;
    return TN_OK;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

tn_status tn_lock_sweep(const tn_lock *lock, const char *dir, bool (*is_ours)(const char *name),
                        tn_error *err)
{
    TN_ASSERT(lock->fd >= 0 && is_ours != NULL);
    tn_text names = {0};
    uint32_t n = 0;
    tn_status status = tn_dir_list(dir, &names, &n, err);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n && status == TN_OK; i++, name += strlen(name) + 1) {
        char path[TN_PATH_SIZE];
        struct stat st;
        if (!is_ours(name)) {
            continue;
        }
        status = tn_path_join(dir, name, path, err);
        if (status == TN_OK && lstat(path, &st) == 0 && !is_later(&st.st_mtim, &lock->taken)) {
            status = tn_remove_tree(path, err);
        }
    }
    TN_ASSERT(name <= tn_text_str(&names) + names.size);
    tn_text_done(&names);
    return status;
}

tn_status tn_lock_folder(tn_lock **out, const char *dir, tn_error *err)
{
    bool held = false;
    const tn_status status = take(out, dir, ".", O_RDONLY | O_DIRECTORY, &held, err);
    return held ? tn_fail(err, TN_E_CKPT, "'%s' is locked by another process", dir) : status;
}

tn_status tn_lock_name(tn_lock **out, const char *dir, const char *name, tn_error *err)
{
    bool held = false;
    tn_status status = take(out, dir, name, O_RDWR | O_CREAT, &held, err);
    return held ? tn_fail(err, TN_E_CKPT, "'%s/%s' is locked by another process", dir, name)
                : status;
}

bool tn_lock_is_held(const char *dir, const char *name)
{
    bool held = false;
    tn_lock look = {.fd = -1};
    if (tn_path_join(dir, name, look.path, NULL) == TN_OK && tn_path_exists(look.path) &&
        tn_io_open(look.path, O_RDONLY, 0, &look.fd, NULL) == TN_OK) {
        tn_status status = flock_now(&look, LOCK_SH, &held, NULL);
        (void)status; /* nobody holds a lock that cannot be taken at all */
        tn_io_drop(look.fd, look.path);
    }
    return held;
}

tn_status tn_lock_look(const char *dir, tn_error *err)
{
    return tn_lock_is_held(dir, "LOCK") ? held_by_another(dir, err) : TN_OK;
}

void tn_lock_release(tn_lock *lock)
{
    if (lock == NULL) {
        return;
    }
    if (lock->fd >= 0) {
        tn_io_drop(lock->fd, lock->path); /* and so unlocked */
    }
    tn_free(lock);
}
