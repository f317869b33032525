/* limits.c - reads limits of memory from the kernel's files; raises the limit of open files. */
#include "base/machine/limits.h"

#include "base/core/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, LINE_SIZE = 8192, MOUNT_FIELDS = 5 };

/* v1 writes no limit as the largest number of whole pages. */
static const uint64_t no_limit = UINT64_C(1) << 60;

/* ---- files ---- */

typedef bool line_take(void *arg, char *line); /* true: no more are wanted */

/* Passes on each line of a file, without its end, a longer one in pieces; nothing where there is no
 * such file. Without the file module and stdio: a failure here is not reported, memory may be
 * short, and use is asked for again and again. */
static void for_each_line(const char *root, const char *path, line_take *take, void *arg)
{
    char line[LINE_SIZE];
    char piece[LINE_SIZE];
    size_t size = 0;
    ssize_t got;
    bool enough = false;
    int length = snprintf(line, sizeof line, "%s%s", root, path);
    bool fits = length > 0 && (size_t)length < sizeof line;
    int fd = fits ? open(line, O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && !enough && (got = read(fd, piece, sizeof piece)) > 0) {
        for (ssize_t i = 0; i < got && !enough; i++) {
            bool ends = piece[i] == '\n';
            if (ends || size == sizeof line - 1) {
                line[size] = '\0';
                enough = take(arg, line);
                size = 0;
            }
            line[size] = piece[i];
            size += !ends;
        }
    }
    line[size] = '\0';
    if (!enough && size > 0) {
        (void)take(arg, line);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Reads the number that follows `name` and blanks. */
static bool number_behind(const char *line, const char *name, uint64_t *out)
{
    const size_t size = strlen(name);
    if (strncmp(line, name, size) != 0) {
        return false;
    }
    const char *at = line + size + strspn(line + size, " \t");
    return tn_read_u64(at, strspn(at, "0123456789"), out) == TN_NUM_OK;
}

static void keep_least(uint64_t value, const char *by, const char *file, tn_memory_limit *out)
{
    if (value < no_limit && value < out->resident) {
        out->resident = value;
        (void)snprintf(out->by, sizeof out->by, "%s%s", by, file);
    }
}

/* ---- RAM, ulimit ---- */

static bool take_total(void *arg, char *line)
{
    uint64_t kb = 0;
    if (!number_behind(line, "MemTotal:", &kb)) {
        return false;
    }
    keep_least(kb * 1024, "RAM", "", arg);
    return true;
}

static bool take_address_space(void *arg, char *line)
{
    uint64_t *out = arg;
    return number_behind(line, "Max address space", out);
}

/* ---- cgroups ---- */

/* A cgroup hierarchy that limits memory, and the names of its files. */
typedef struct hierarchy {
    bool v2;
    const char *file;      /* name of the file that holds the limit */
    const char *root;      /* prefix of all paths */
    char own[PATH_SIZE];   /* path of this process's cgroup in it */
    char mount[PATH_SIZE]; /* mount point of the hierarchy; "": not mounted */
    char top[PATH_SIZE];   /* the cgroup at the mount point */
    uint64_t limit;        /* limit of the file that is being read */
} hierarchy;

/* Returns whether a list "cpu,memory" names memory. */
static bool has_memory(const char *list)
{
    static const char word[] = "memory";
    const size_t size = sizeof word - 1;
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',' ? 1 : 0;
        if (strncmp(at, word, size) == 0 && (at[size] == '\0' || at[size] == ',')) {
            return true;
        }
    }
    return false;
}

/* Takes our cgroup from "4:memory:/a/b" or "0::/a/b". */
static bool take_own(void *arg, char *line)
{
    hierarchy *h = arg;
    char *list = strchr(line, ':');
    char *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL) {
        return false;
    }
    *path++ = '\0';
    list++;
    if (h->v2 ? *list != '\0' : !has_memory(list)) {
        return false;
    }
    (void)snprintf(h->own, sizeof h->own, "%s", path);
    return true;
}

/* Takes a mount from "36 31 0:32 /top /mount rw,relatime shared:1 - cgroup cgroup rw,memory". */
static bool take_mount(void *arg, char *line)
{
    hierarchy *h = arg;
    const char *field[MOUNT_FIELDS] = {NULL};
    char *rest = strstr(line, " - ");
    if (rest == NULL) {
        return false;
    }
    *rest = '\0';
    rest += 3;
    char *next = line;
    for (int i = 0; i < MOUNT_FIELDS; i++) {
        field[i] = strsep(&next, " ");
        if (field[i] == NULL) {
            return false;
        }
    }
    const char *kind = strsep(&rest, " ");
    const char *options = rest != NULL ? strrchr(rest, ' ') : NULL;
    const bool is_it =
        h->v2 ? strcmp(kind, "cgroup2") == 0
              : strcmp(kind, "cgroup") == 0 && options != NULL && has_memory(options + 1);
    if (is_it) {
        (void)snprintf(h->top, sizeof h->top, "%s", field[3]);
        (void)snprintf(h->mount, sizeof h->mount, "%s", field[4]);
    }
    return is_it;
}

/* Takes a number, or "max". */
static bool take_limit(void *arg, char *line)
{
    hierarchy *h = arg;
    if (!number_behind(line, "", &h->limit)) {
        h->limit = UINT64_MAX;
    }
    return true;
}

/* Returns our cgroup as seen from the mount; in a container it may lie outside the mounted tree. */
static const char *below_top(const hierarchy *h)
{
    const size_t size = strcmp(h->top, "/") == 0 ? 0 : strlen(h->top);
    const char *own = strncmp(h->own, h->top, size) == 0 ? h->own + size : "";
    return strncmp(own, "/..", 3) == 0 || *own != '/' ? "" : own;
}

/* Walks from our cgroup up to the root of the mount: each group limits all groups below it. */
static void walk_up(hierarchy *h, tn_memory_limit *out)
{
    char own[PATH_SIZE];
    char path[2 * PATH_SIZE + 64];
    (void)snprintf(own, sizeof own, "%s", below_top(h));
    for (;;) {
        char *slash = strrchr(own, '/');
        const char *between = strcmp(own, "/") == 0 ? "" : own;
        (void)snprintf(path, sizeof path, "%s%s/%s", h->mount, between, h->file);
        h->limit = UINT64_MAX;
        for_each_line(h->root, path, take_limit, h);
        keep_least(h->limit, "cgroup ", h->file, out);
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

static void ask_hierarchy(const char *root, bool v2, tn_memory_limit *out)
{
    hierarchy h = {.v2 = v2, .file = v2 ? "memory.max" : "memory.limit_in_bytes", .root = root};
    for_each_line(root, "/proc/self/cgroup", take_own, &h);
    for_each_line(root, "/proc/self/mountinfo", take_mount, &h);
    if (h.own[0] != '\0' && h.mount[0] != '\0') {
        walk_up(&h, out);
    }
}

/* ---- what others call ---- */

void tn_memory_limit_of(const char *root, tn_memory_limit *out)
{
    *out = (tn_memory_limit){.resident = UINT64_MAX, .address_space = UINT64_MAX};
    for_each_line(root, "/proc/meminfo", take_total, out);
    ask_hierarchy(root, false, out);
    ask_hierarchy(root, true, out);
    for_each_line(root, "/proc/self/limits", take_address_space, &out->address_space);
}

/* Takes all pages and the resident ones from "1024 512 ..". */
static bool take_pages(void *arg, char *line)
{
    uint64_t *pages = arg;
    return number_behind(line, "", &pages[0]) &&
           number_behind(line + strcspn(line, " "), " ", &pages[1]);
}

void tn_memory_use_of(const char *root, tn_memory_use *out)
{
    uint64_t pages[2] = {0, 0};
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for_each_line(root, "/proc/self/statm", take_pages, pages);
    bool known = pages[1] > 0;
    *out = (tn_memory_use){.resident = known ? pages[1] * page : 0,
                           .address_space = known ? pages[0] * page : 0};
}

/* ---- open files ---- */

tn_status tn_descriptors_need(uint64_t n, const char *what, tn_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return tn_fail(err, TN_E_IO, "cannot ask for the limit of open files: %s",
                       strerrordesc_np(errno));
    }
    if (limit.rlim_cur >= n) { /* RLIM_INFINITY is the greatest number */
        return TN_OK;
    }
    if (limit.rlim_max < n) {
        return tn_fail(err, TN_E_CONFIG,
                       "%s may need %llu open files, the hard limit is %llu\n"
                       "hint: raise it where the process is started: 'ulimit -n %llu' as root, "
                       "LimitNOFILE= of a service, --ulimit of a container",
                       what, (unsigned long long)n, (unsigned long long)limit.rlim_max,
                       (unsigned long long)n);
    }
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0
               ? TN_OK
               : tn_fail(err, TN_E_IO, "cannot raise the limit of open files: %s",
                         strerrordesc_np(errno));
}
