/* model_set.c - names, the versions that are published, and the thread that watches folders. */
#include "extra/http/model_set.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/thread/threads.h"
#include "serve/exported_model.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { RETRY_S = 60, WORD_BYTES_MAX = 4096, ID_DIGITS_MIN = 8 };

/* A version, and the folder that it was opened from. */
typedef struct opened {
    tn_model_version version; /* first: callers hold a pointer to it */
    char dir[TN_PATH_SIZE];
    bool current;
    struct opened *next;
} opened;

typedef struct model {
    char name[TN_MODEL_NAME_MAX];
    char path[TN_PATH_SIZE];
    opened *now;
    tn_swap_counts swaps;
    char refused[TN_PATH_SIZE]; /* the folder that stayed out at last; "": none */
    double retry_s;             /* tn_clock_s from which on that is tried again */
    char fault[256];            /* the last line about this folder, which is said once */
} model;

struct tn_model_set {
    tn_model_set_opts opts;
    tn_judge_fn *judge; /* NULL: before versions are watched */
    void *judge_arg;
    uint32_t n;
    model *model;
    pthread_mutex_t lock;    /* guards `now`, `in_use`, `list` and counts */
    opened *list;            /* all versions that are open */
    tn_thread *watcher;      /* NULL: nothing is watched */
    int wake;                /* an eventfd; -1: none */
    int changes;             /* a descriptor of inotify; -1: folders are only polled */
    atomic_bool stop, again; /* again: what was refused is tried, too */
};

/* ---- names ---- */

static bool is_name(const char *name)
{
    bool good = name[0] != '\0' && name[0] != '.' && strlen(name) < TN_MODEL_NAME_MAX;
    for (const char *c = name; *c != '\0' && good; c++) {
        good = isalnum((unsigned char)*c) || strchr("._-", *c) != NULL;
    }
    return good;
}

/* Names a model after its folder, an export after the folder that it lies in. */
static void name_of_path(const char *path, char out[TN_MODEL_NAME_MAX])
{
    char parent[TN_PATH_SIZE];
    char index[TN_PATH_SIZE];
    size_t size = strlen(path);
    const bool is_export =
        tn_path_join(path, "EXPORT.json", index, NULL) == TN_OK && tn_path_exists(index);
    if (is_export && tn_path_parent(path, parent, NULL) == TN_OK) {
        path = parent;
        size = strlen(parent);
    }
    while (size > 0 && path[size - 1] == '/') {
        size--;
    }
    size_t from = size;
    while (from > 0 && path[from - 1] != '/') {
        from--;
    }
    (void)snprintf(out, TN_MODEL_NAME_MAX, "%.*s", (int)(size - from), path + from);
    if (!is_name(out)) {
        (void)snprintf(out, TN_MODEL_NAME_MAX, "model");
    }
}

static tn_status name_models(tn_model_set *set, tn_error *err)
{
    const tn_strs *names = &set->opts.names;
    if (names->n > set->n) {
        return tn_fail(err, TN_E_USAGE, "%u names for %u exports", names->n, set->n);
    }
    for (uint32_t i = 0; i < set->n; i++) {
        model *m = &set->model[i];
        (void)snprintf(m->path, sizeof m->path, "%s", set->opts.paths.item[i]);
        if (i < names->n && !is_name(names->item[i])) {
            return tn_fail(err, TN_E_USAGE,
                           "the name '%.64s' of a model is none: letters, digits, '.', '_' and "
                           "'-', fewer than %d",
                           names->item[i], TN_MODEL_NAME_MAX);
        }
        if (i < names->n) {
            (void)snprintf(m->name, sizeof m->name, "%s", names->item[i]);
        } else {
            name_of_path(m->path, m->name);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(set->model[k].name, m->name) == 0) {
                return tn_fail(err, TN_E_USAGE,
                               "two models are called '%s'\nhint: --name gives each another",
                               m->name);
            }
        }
    }
    return TN_OK;
}

/* ---- which version ---- */

/* Reads the version that the file PIN of a folder names, if there is one. */
static tn_status read_pin(const char *path, char out[TN_PATH_SIZE], bool *found, tn_error *err)
{
    char pin[TN_PATH_SIZE];
    tn_text text = {0};
    *found = false;
    TN_TRY(tn_path_join(path, "PIN", pin, err));
    if (!tn_path_exists(pin)) {
        return TN_OK;
    }
    tn_status status = tn_file_read_all(pin, WORD_BYTES_MAX, &text, err);
    if (status == TN_OK && text.size > 0) {
        text.data[strcspn(text.data, " \r\n")] = '\0';
        *found = true;
        status = text.data[0] == '\0' || text.data[0] == '.' || strchr(text.data, '/') != NULL
                     ? tn_fail(err, TN_E_CKPT, "'%s' names no export of its folder", pin)
                     : tn_path_join(path, text.data, out, err);
    }
    tn_text_done(&text);
    return status;
}

static tn_status find_target(const char *path, char out[TN_PATH_SIZE], tn_error *err)
{
    bool pinned = false;
    TN_TRY(read_pin(path, out, &pinned, err));
    return pinned ? TN_OK : tn_export_find(path, out, err);
}

/* Opens a version and puts it in the place of the one before. */
static tn_status publish(tn_model_set *set, uint32_t at, const char *dir, tn_error *err)
{
    model *m = &set->model[at];
    opened *one = NULL;
    const double before_s = tn_clock_s();
    TN_TRY(TN_ALLOC(one, 1, "a version of a model", err));
    one->version.model = at;
    tn_status status = tn_served_open(&one->version.served, dir, &set->opts.served, err);
    if (status == TN_OK && set->judge != NULL) {
        status = set->judge(set->judge_arg, &one->version, err);
    }
    if (status != TN_OK) {
        tn_served_close(one->version.served);
        tn_free(one);
        return status;
    }
    one->version.since_s = tn_wall_s();
    one->current = true;
    (void)snprintf(one->dir, sizeof one->dir, "%s", dir);
    (void)pthread_mutex_lock(&set->lock);
    m->swaps.done += m->now != NULL;
    if (m->now != NULL) {
        m->now->current = false;
    }
    m->now = one;
    one->next = set->list;
    set->list = one;
    (void)pthread_mutex_unlock(&set->lock);
    tn_log(TN_LOG_INFO, "model '%s': version %s, opened in %.1f s", m->name,
           tn_served_version(one->version.served), tn_clock_s() - before_s);
    return TN_OK;
}

/* ---- opening ---- */

static tn_status open_models(tn_model_set *set, tn_error *err)
{
    TN_TRY(TN_ALLOC(set->model, set->n, "models", err));
    TN_TRY(name_models(set, err));
    set->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (set->wake < 0) {
        return tn_fail(err, TN_E_IO, "cannot make an event: %s", strerrordesc_np(errno));
    }
    for (uint32_t i = 0; i < set->n; i++) {
        char dir[TN_PATH_SIZE];
        TN_TRY(find_target(set->model[i].path, dir, err));
        TN_TRY(publish(set, i, dir, err));
    }
    return TN_OK;
}

tn_status tn_model_set_open(tn_model_set **out, const tn_model_set_opts *opts, tn_error *err)
{
    tn_model_set *set = NULL;
    *out = NULL;
    if (opts->paths.n == 0 || opts->paths.n > TN_MODELS_MAX) {
        return tn_fail(err, TN_E_USAGE, "%u models, 1 to %d can be served", opts->paths.n,
                       TN_MODELS_MAX);
    }
    TN_TRY(TN_ALLOC(set, 1, "models", err));
    set->opts = *opts;
    set->n = opts->paths.n;
    set->wake = set->changes = -1;
    (void)pthread_mutex_init(&set->lock, NULL);
    const tn_status status = open_models(set, err);
    if (status != TN_OK) {
        tn_model_set_close(set);
        return status;
    }
    *out = set;
    return TN_OK;
}

/* Closes the versions that were replaced and are given back; with `all`, every one. */
static void close_versions(tn_model_set *set, bool all)
{
    opened *closing = NULL;
    (void)pthread_mutex_lock(&set->lock);
    for (opened **at = &set->list; *at != NULL;) {
        opened *one = *at;
        if (all || (!one->current && one->version.in_use == 0)) {
            TN_ASSERT(one->version.in_use == 0);
            *at = one->next;
            one->next = closing;
            closing = one;
        } else {
            at = &one->next;
        }
    }
    (void)pthread_mutex_unlock(&set->lock);
    while (closing != NULL) {
        opened *one = closing;
        closing = one->next;
        if (!all) {
            tn_log(TN_LOG_DEBUG, "model '%s': version %s is closed",
                   set->model[one->version.model].name, tn_served_version(one->version.served));
        }
        tn_served_close(one->version.served);
        tn_free(one);
    }
}

static void wake_watcher(const tn_model_set *set)
{
    if (set->wake >= 0) {
        (void)eventfd_write(set->wake, 1);
    }
}

void tn_model_set_look(tn_model_set *set)
{
    atomic_store(&set->again, true);
    wake_watcher(set);
}

void tn_model_set_close(tn_model_set *set)
{
    if (set == NULL) {
        return;
    }
    atomic_store(&set->stop, true);
    wake_watcher(set);
    const tn_status ended = tn_thread_join(set->watcher, NULL);
    TN_ASSERT(ended == TN_OK);
    close_versions(set, true);
    if (set->changes >= 0) {
        (void)close(set->changes);
    }
    if (set->wake >= 0) {
        (void)close(set->wake);
    }
    tn_free(set->model);
    (void)pthread_mutex_destroy(&set->lock);
    tn_free(set);
}

/* ---- watching ---- */

/* Says what is wrong with a folder, once for each fault, and counts it. */
static void refuse(tn_model_set *set, model *m, const char *dir, const tn_error *err)
{
    char line[sizeof m->fault];
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(err->text, "\n"), err->text);
    (void)snprintf(m->refused, sizeof m->refused, "%s", dir);
    m->retry_s = tn_clock_s() + RETRY_S;
    if (strcmp(line, m->fault) == 0) {
        return;
    }
    memcpy(m->fault, line, sizeof line);
    (void)pthread_mutex_lock(&set->lock);
    m->swaps.failed++;
    (void)pthread_mutex_unlock(&set->lock);
    tn_log(TN_LOG_WARN, "model '%s' stays at version %s: %s", m->name,
           tn_served_version(m->now->version.served), line);
}

/* Looks whether the folder of a model names another version, and publishes it. */
static void look_at(tn_model_set *set, uint32_t at)
{
    model *m = &set->model[at];
    tn_error err = {0};
    char dir[TN_PATH_SIZE] = "";
    tn_status status = find_target(m->path, dir, &err);
    if (status == TN_OK && strcmp(dir, m->now->dir) == 0) {
        m->refused[0] = m->fault[0] = '\0';
        return;
    }
    if (status == TN_OK && strcmp(dir, m->refused) == 0 && tn_clock_s() < m->retry_s) {
        return;
    }
    if (status == TN_OK) {
        if (strcmp(dir, m->refused) != 0) {
            m->fault[0] = '\0'; /* a fault of another version is said, too */
        }
        status = publish(set, at, dir, &err);
    }
    if (status != TN_OK) {
        refuse(set, m, dir, &err);
        return;
    }
    m->refused[0] = m->fault[0] = '\0';
}

/* Empties what woke the watcher. */
static void drain(int fd)
{
    char bytes[4096] __attribute__((aligned(8)));
    while (fd >= 0 && read(fd, bytes, sizeof bytes) > 0) {
    }
}

static tn_status watch(void *arg, tn_error *err)
{
    tn_model_set *set = arg;
    (void)err;
    tn_thread_step_back(10);
    while (!atomic_load(&set->stop)) {
        struct pollfd on[] = {{.fd = set->wake, .events = POLLIN},
                              {.fd = set->changes, .events = POLLIN}};
        (void)poll(on, set->changes >= 0 ? 2 : 1, (int)(set->opts.poll_s * 1e3));
        drain(set->wake);
        drain(set->changes);
        const bool again = atomic_exchange(&set->again, false);
        for (uint32_t i = 0; i < set->n && !atomic_load(&set->stop); i++) {
            set->model[i].retry_s = again ? 0 : set->model[i].retry_s;
            look_at(set, i);
        }
        close_versions(set, false);
    }
    return TN_OK;
}

tn_status tn_model_set_watch(tn_model_set *set, tn_judge_fn *judge, void *arg, tn_error *err)
{
    set->judge = judge;
    set->judge_arg = arg;
    set->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    for (uint32_t i = 0; i < set->n && set->changes >= 0; i++) { /* else it is polled */
        (void)inotify_add_watch(set->changes, set->model[i].path,
                                IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_ONLYDIR);
    }
    return tn_thread_start(&set->watcher, "tn-watch", watch, set, err);
}

/* ---- for workers ---- */

/* Whether a request for this version means the one that is open. */
static bool is_version(const tn_served *served, tn_bytes version)
{
    const char *id = tn_served_version(served);
    return version.size == 0 || (version.size >= ID_DIGITS_MIN && version.size <= strlen(id) &&
                                 memcmp(id, version.data, version.size) == 0);
}

tn_model_version *tn_model_set_take(tn_model_set *set, tn_bytes name, tn_bytes version, bool *found)
{
    tn_model_version *taken = NULL;
    uint32_t at = 0;
    while (at < set->n && name.size > 0 &&
           (strlen(set->model[at].name) != name.size ||
            memcmp(set->model[at].name, name.data, name.size) != 0)) {
        at++;
    }
    *found = at < set->n;
    if (!*found) {
        return NULL;
    }
    (void)pthread_mutex_lock(&set->lock);
    opened *now = set->model[at].now;
    if (is_version(now->version.served, version)) {
        taken = &now->version;
        taken->in_use++;
    }
    (void)pthread_mutex_unlock(&set->lock);
    return taken;
}

void tn_model_set_give(tn_model_set *set, tn_model_version *v)
{
    opened *one = (opened *)(void *)v;
    (void)pthread_mutex_lock(&set->lock);
    TN_ASSERT(v->in_use > 0);
    const bool last = --v->in_use == 0 && !one->current;
    (void)pthread_mutex_unlock(&set->lock);
    if (last) {
        wake_watcher(set);
    }
}

uint32_t tn_model_set_count(const tn_model_set *set)
{
    return set->n;
}

const char *tn_model_set_name(const tn_model_set *set, uint32_t at)
{
    TN_ASSERT(at < set->n);
    return set->model[at].name;
}

tn_swap_counts tn_model_set_swaps(tn_model_set *set, uint32_t at)
{
    (void)pthread_mutex_lock(&set->lock);
    const tn_swap_counts swaps = set->model[at].swaps;
    (void)pthread_mutex_unlock(&set->lock);
    return swaps;
}
