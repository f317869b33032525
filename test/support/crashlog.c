/* crashlog.c - see crashlog.h. */
#include "support/crashlog.h"

#include "support/test.h"

#include "base/file/fileio.h"
#include "base/math/key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPS_MAX = 1 << 16,
    INODES_MAX = 1 << 12,
    NAMES_MAX = 256, /* in one folder */
    ROOT = 0,
    NOBODY = UINT16_MAX
};

/* What one operation did, in inodes. */
typedef struct op {
    tn_file_op_kind kind;
    bool mark;
    uint32_t inode; /* written or synced file or folder; the one that a name is about */
    uint32_t from;  /* the folder that loses a name */
    uint32_t to;    /* the folder that gains one */
    char *name;     /* lost in `from`, or gained in `to` when only that */
    char *new_name;
    uint64_t at; /* also a mark's number */
    char *data;
    size_t size;
} op;

typedef struct entry {
    const char *name; /* NULL: free */
    uint32_t inode;
} entry;

typedef struct inode {
    bool folder;
    entry *entry; /* of a folder: NAMES_MAX */
    char *data;   /* of a file */
    size_t size;
} inode;

typedef struct tree {
    inode inode[INODES_MAX];
    uint32_t n;
} tree;

struct tn_crashlog {
    char dir[256];
    tree *live; /* names only; what the protocol sees */
    op *ops;
    uint32_t n;
};

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    assert_non_null(memory);
    return memory;
}

static char *copy_of(const void *data, size_t size)
{
    char *copy = zeroed(1, size + 1);
    memcpy(copy, data, size);
    return copy;
}

static uint32_t inode_new(tree *t, bool folder)
{
    assert_true(t->n < INODES_MAX);
    inode *i = &t->inode[t->n];
    i->folder = folder;
    i->entry = folder ? zeroed(NAMES_MAX, sizeof *i->entry) : NULL;
    return t->n++;
}

static tree *tree_new(void)
{
    tree *t = zeroed(1, sizeof *t);
    (void)inode_new(t, true);
    return t;
}

static void tree_free(tree *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        free(t->inode[i].entry);
        free(t->inode[i].data);
    }
    free(t);
}

/* The entry called so, else (when `make`) a free one, else NULL. */
static entry *find(tree *t, uint32_t folder, const char *name, bool make)
{
    entry *unused = NULL;
    assert_true(t->inode[folder].folder);
    for (uint32_t i = 0; i < NAMES_MAX; i++) {
        entry *e = &t->inode[folder].entry[i];
        if (e->name != NULL && strcmp(e->name, name) == 0) {
            return e;
        }
        unused = unused == NULL && e->name == NULL ? e : unused;
    }
    assert_true(!make || unused != NULL);
    return make ? unused : NULL;
}

static void name_add(tree *t, uint32_t folder, const char *name, uint32_t which)
{
    *find(t, folder, name, true) = (entry){name, which};
}

static void name_remove(tree *t, uint32_t folder, const char *name)
{
    entry *e = find(t, folder, name, false);
    if (e != NULL) {
        e->name = NULL;
    }
}

/* The path below the logged folder; NULL when it lies elsewhere. */
static const char *below(const tn_crashlog *log, const char *path)
{
    size_t size = strlen(log->dir);
    if (strncmp(path, log->dir, size) != 0 || (path[size] != '/' && path[size] != '\0')) {
        return NULL;
    }
    path += size;
    return path + strspn(path, "/");
}

/* The folder of a path in the live tree; *name is what stands behind the last slash. */
static uint32_t folder_of(tn_crashlog *log, const char *path, const char **name)
{
    uint32_t folder = ROOT;
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(path, '/')) {
        char *part = copy_of(path, (size_t)(slash - path));
        const entry *e = find(log->live, folder, part, false);
        TN_ASSERT(e != NULL);
        folder = e->inode;
        free(part);
        path = slash + strspn(slash, "/");
    }
    *name = path;
    return folder;
}

static uint32_t inode_of(tn_crashlog *log, const char *path)
{
    const char *name;
    uint32_t folder = folder_of(log, path, &name);
    if (*name == '\0') {
        return folder;
    }
    const entry *e = find(log->live, folder, name, false);
    TN_ASSERT(e != NULL); /* cmocka's own does not tell the compiler that it ends here */
    return e->inode;
}

static op *op_add(tn_crashlog *log, tn_file_op_kind kind)
{
    assert_true(log->n < OPS_MAX);
    op *o = &log->ops[log->n++];
    *o = (op){.kind = kind, .from = NOBODY, .to = NOBODY};
    return o;
}

/* A name appears, goes or moves: logged, and done in the live tree. */
static void log_name(tn_crashlog *log, const tn_file_op *seen, op *o)
{
    const char *name;
    uint32_t folder = folder_of(log, below(log, seen->path), &name);
    o->name = copy_of(name, strlen(name));
    if (seen->kind == TN_FILE_CREATED || seen->kind == TN_DIR_MADE) {
        o->to = folder;
        o->inode = inode_new(log->live, seen->kind == TN_DIR_MADE);
        name_add(log->live, folder, o->name, o->inode);
        return;
    }
    o->from = folder;
    o->inode = inode_of(log, below(log, seen->path));
    name_remove(log->live, folder, o->name);
    if (seen->kind == TN_FILE_RENAMED) {
        o->to = folder_of(log, below(log, seen->to), &name);
        o->new_name = copy_of(name, strlen(name));
        name_add(log->live, o->to, o->new_name, o->inode);
    }
}

static void watch(void *ctx, const tn_file_op *seen)
{
    tn_crashlog *log = ctx;
    const char *path = below(log, seen->path);
    if (path == NULL) {
        return;
    }
    op *o = op_add(log, seen->kind);
    if (seen->kind == TN_FILE_WRITTEN || seen->kind == TN_FILE_TRUNCATED ||
        seen->kind == TN_FILE_SYNCED) {
        o->inode = inode_of(log, path);
        o->at = seen->at;
        o->data = seen->size > 0 ? copy_of(seen->data, seen->size) : NULL;
        o->size = seen->size;
    } else {
        log_name(log, seen, o);
    }
}

tn_crashlog *tn_crashlog_start(const char *dir)
{
    tn_crashlog *log = zeroed(1, sizeof *log);
    assert_true(strlen(dir) < sizeof log->dir);
    memcpy(log->dir, dir, strlen(dir) + 1);
    log->live = tree_new();
    log->ops = zeroed(OPS_MAX, sizeof *log->ops);
    tn_file_watch(watch, log);
    return log;
}

void tn_crashlog_stop(tn_crashlog *log)
{
    assert_non_null(log);
    tn_file_watch(NULL, NULL);
}

void tn_crashlog_free(tn_crashlog *log)
{
    for (uint32_t i = 0; i < log->n; i++) {
        free(log->ops[i].name);
        free(log->ops[i].new_name);
        free(log->ops[i].data);
    }
    free(log->ops);
    tree_free(log->live);
    free(log);
}

void tn_crashlog_mark(tn_crashlog *log, uint64_t saved)
{
    op *o = op_add(log, TN_FILE_SYNCED);
    o->mark = true;
    o->at = saved;
}

uint32_t tn_crashlog_count(const tn_crashlog *log)
{
    return log->n;
}

/* Was `inode` synced after operation i and before the cut? */
static bool synced(const tn_crashlog *log, uint32_t i, uint32_t which, uint32_t cut)
{
    for (uint32_t k = i + 1; k < cut; k++) {
        const op *o = &log->ops[k];
        if (o->kind == TN_FILE_SYNCED && !o->mark && o->inode == which) {
            return true;
        }
    }
    return false;
}

static bool covered(const tn_crashlog *log, uint32_t i, uint32_t cut)
{
    const op *o = &log->ops[i];
    if (o->from == NOBODY && o->to == NOBODY) {
        return synced(log, i, o->inode, cut);
    }
    return (o->from == NOBODY || synced(log, i, o->from, cut)) &&
           (o->to == NOBODY || synced(log, i, o->to, cut));
}

static void file_resize(inode *file, size_t size)
{
    file->data = realloc(file->data, size + 1);
    assert_non_null(file->data);
    if (size > file->size) {
        memset(file->data + file->size, 0, size - file->size);
    }
    file->size = size;
}

/* Does `size` bytes of a write, or all of another operation. */
static void apply(tree *t, const op *o, size_t size)
{
    inode *file = &t->inode[o->inode];
    if (o->kind == TN_FILE_WRITTEN && size > 0) {
        if (o->at + size > file->size) {
            file_resize(file, o->at + size);
        }
        memcpy(file->data + o->at, o->data, size);
    } else if (o->kind == TN_FILE_TRUNCATED) {
        file_resize(file, o->at);
    }
    if (o->from != NOBODY) {
        name_remove(t, o->from, o->name);
    }
    if (o->to != NOBODY) {
        name_add(t, o->to, o->new_name != NULL ? o->new_name : o->name, o->inode);
    }
}

static void write_out(const tree *t, uint32_t folder, const char *dir)
{
    for (uint32_t i = 0; i < NAMES_MAX; i++) {
        const entry *e = &t->inode[folder].entry[i];
        if (e->name == NULL) {
            continue;
        }
        char path[1024];
        assert_in_range(snprintf(path, sizeof path, "%s/%s", dir, e->name), 1, sizeof path - 1);
        const inode *in = &t->inode[e->inode];
        if (in->folder) {
            assert_int_equal(mkdir(path, 0777), 0);
            write_out(t, e->inode, path);
            continue;
        }
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_true(write(fd, in->data, in->size) == (ssize_t)in->size);
        assert_int_equal(close(fd), 0);
    }
}

uint64_t tn_crashlog_replay(const tn_crashlog *log, const tn_crash_cut *cut, const char *dir)
{
    tree *t = tree_new();
    for (uint32_t i = 1; i < log->live->n; i++) {
        (void)inode_new(t, log->live->inode[i].folder);
    }
    uint64_t saved = 0;
    for (uint32_t i = 0; i < cut->at; i++) {
        const op *o = &log->ops[i];
        uint64_t dice = tn_mix(cut->seed + i);
        if (o->mark) {
            saved = o->at;
        } else if (covered(log, i, cut->at) || dice % 8 < cut->keep_of_8) {
            apply(t, o, o->size);
        } else if (o->kind == TN_FILE_WRITTEN && (dice >> 8) % 4 == 0) {
            apply(t, o, (dice >> 16) % (o->size + 1)); /* cut short */
        }
    }
    write_out(t, ROOT, dir);
    tree_free(t);
    return saved;
}
