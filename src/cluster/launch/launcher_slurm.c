/* launcher_slurm.c - tasks of a Slurm step, started by srun.
 *
 * A batch script has SLURM_PROCID too, but it is one process, not a task of a group: only what srun
 * sets, SLURM_STEP_NODELIST, makes a step. Which task is on which node follows from the list of
 * nodes, the tasks on each and the distribution; rank 0 is on the first node in all of them but
 * "arbitrary", whose order is not in the environment.
 *
 * Slurm has short ways of writing many hosts and many numbers:
 *
 *     n[01-03,7],gpu5            n01 n02 n03 n7 gpu5
 *     r[1-2]n[0-1]-ib            r1n0-ib r1n1-ib r2n0-ib r2n1-ib
 *     2(x3),1                    2 2 2 1
 *
 * Digits keep the width of the first number. Order is kept, nothing is sorted. A host is a chain of
 * literal pieces and bracketed sets; it is expanded from the left, the prefix in a buffer that
 * every piece extends. Brackets do not nest, so the depth is the number of sets.
 */
#include "base/core/number.h"
#include "base/math/rng.h"
#include "cluster/launch/launcher.h"

#include <stdio.h>
#include <string.h>

enum {
    PORT_FIRST = 20000,
    PORT_COUNT = 12000
}; /* below what systems give to outgoing connections */

enum { HOSTS_MAX = 65536, HOST_MAX = 255, SETS_MAX = 8, DIGITS_MAX = 9 };

typedef struct listing {
    const char *text; /* all of it, for messages */
    tn_arena *arena;
    const char **host; /* HOSTS_MAX */
    uint32_t n;
    uint32_t sets; /* brackets open around the piece that is being expanded */
    char name[HOST_MAX + 1];
    tn_error *err;
} listing;

static tn_status unreadable(const listing *l)
{
    return tn_fail(l->err, TN_E_CONFIG, "cannot read the list of hosts '%.300s'", l->text);
}

static tn_status add_host(listing *l, size_t size)
{
    if (size == 0) {
        return unreadable(l);
    }
    if (l->n == HOSTS_MAX) {
        return tn_fail(l->err, TN_E_CONFIG, "more than %d hosts in '%.300s'", HOSTS_MAX, l->text);
    }
    l->host[l->n++] = tn_arena_text(l->arena, "%.*s", (int)size, l->name);
    return TN_OK;
}

static tn_status expand(listing *l, size_t size, const char *at, const char *end);

/* Expands "01-03" or "7" of a set that is followed by what is at `rest`. */
static tn_status expand_range(listing *l, size_t size, const char *at, const char *to,
                              const char *rest, const char *end)
{
    const char *dash = memchr(at, '-', (size_t)(to - at));
    size_t width = (size_t)((dash != NULL ? dash : to) - at);
    const char *second = dash != NULL ? dash + 1 : at;
    uint64_t first = 0;
    uint64_t last = 0;
    if (width > DIGITS_MAX || to - second > DIGITS_MAX ||
        tn_read_u64(at, width, &first) != TN_NUM_OK ||
        tn_read_u64(second, (size_t)(to - second), &last) != TN_NUM_OK || last < first) {
        return unreadable(l);
    }
    for (uint64_t i = first; i <= last; i++) {
        int digits =
            snprintf(l->name + size, sizeof l->name - size, "%0*u", (int)width, (unsigned)i);
        if (digits < 0 || (size_t)digits >= sizeof l->name - size) {
            return unreadable(l);
        }
        TN_TRY(expand(l, size + (size_t)digits, rest, end));
    }
    return TN_OK;
}

/* Expands the set that begins with '[' at `at`, then the text after its ']'. */
static tn_status expand_set(listing *l, size_t size, const char *at, const char *end)
{
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (close == NULL || l->sets == SETS_MAX) {
        return unreadable(l);
    }
    l->sets++;
    while (at <= close) {
        const char *comma = memchr(at, ',', (size_t)(close - at));
        const char *to = comma != NULL ? comma : close;
        TN_TRY(expand_range(l, size, at, to, close + 1, end));
        at = to + 1;
    }
    l->sets--;
    return TN_OK;
}

/* Expands the names that begin with l->name[0 .. size) and go on as at..end says. */
static tn_status expand(listing *l, size_t size, const char *at, const char *end)
{
    TN_ASSERT(size <= HOST_MAX && at <= end);
    const char *open = memchr(at, '[', (size_t)(end - at));
    size_t literal = (size_t)((open != NULL ? open : end) - at);
    if (literal > HOST_MAX - size || memchr(at, ']', literal) != NULL) {
        return unreadable(l);
    }
    memcpy(l->name + size, at, literal);
    size += literal;
    return open != NULL ? expand_set(l, size, open + 1, end) : add_host(l, size);
}

/* Returns the end of the item at `at`: a comma outside of brackets, or the end of the text. */
static const char *item_end(const char *at)
{
    bool inside = false;
    for (; *at != '\0' && (inside || *at != ','); at++) {
        inside = *at == '[' || (inside && *at != ']');
    }
    return at;
}

static tn_status read_hosts(const char *text, tn_arena *arena, const char *const **out, uint32_t *n,
                            tn_error *err)
{
    listing l = {.text = text, .arena = arena, .err = err};
    l.host = TN_NEW_ARRAY(arena, const char *, HOSTS_MAX);
    const char *at = text;
    const char *end;
    do {
        end = item_end(at);
        TN_TRY(expand(&l, 0, at, end));
        at = end + 1;
    } while (*end != '\0');
    TN_ASSERT(l.sets == 0 && l.n > 0);
    *out = l.host;
    *n = l.n;
    return TN_OK;
}

/* Reads one item of counts, "2" or "2(x3)", from at to end: returns how often it counts; 0: it
 * cannot be read. */
static uint64_t read_count(const char *at, const char *end, uint32_t *count)
{
    const char *open = memchr(at, '(', (size_t)(end - at));
    uint64_t value = 0;
    uint64_t times = 1;
    if (open != NULL &&
        (end - open < 4 || open[1] != 'x' || end[-1] != ')' ||
         tn_read_u64(open + 2, (size_t)(end - 1 - (open + 2)), &times) != TN_NUM_OK)) {
        return 0;
    }
    const char *digits = open != NULL ? open : end;
    if (tn_read_u64(at, (size_t)(digits - at), &value) != TN_NUM_OK || value == 0 ||
        value > HOSTS_MAX) {
        return 0;
    }
    *count = (uint32_t)value;
    return times;
}

/* Reads from 1 to HOSTS_MAX counts, each at least 1. */
static tn_status read_counts(const char *text, tn_arena *arena, const uint32_t **out, uint32_t *n,
                             tn_error *err)
{
    uint32_t *counts = TN_NEW_ARRAY(arena, uint32_t, HOSTS_MAX);
    uint32_t total = 0;
    const char *at = text;
    const char *end;
    do {
        uint32_t count = 0;
        end = at + strcspn(at, ",");
        uint64_t times = read_count(at, end, &count);
        if (times == 0 || times > HOSTS_MAX - total) {
            return tn_fail(err, TN_E_CONFIG, "cannot read the counts '%.300s'", text);
        }
        for (; times > 0; times--) {
            counts[total++] = count;
        }
        at = end + 1;
    } while (*end != '\0');
    *out = counts;
    *n = total;
    return TN_OK;
}

typedef struct step {
    const char *const *node;
    uint32_t n_nodes;
    const uint32_t *tasks; /* n_nodes: on each node */
    uint32_t size;
} step;

static const char *either(const tn_launch_env *env, const char *first, const char *second)
{
    const char *value = tn_env(env, first);
    return value != NULL ? value : tn_env(env, second);
}

static tn_status read_step(const tn_launch_env *env, uint32_t size, tn_arena *arena, step *out,
                           tn_error *err)
{
    const char *tasks = either(env, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
    uint32_t n = 0;
    uint32_t total = 0;
    out->size = size;
    TN_TRY(read_hosts(tn_env(env, "SLURM_STEP_NODELIST"), arena, &out->node, &out->n_nodes, err));
    if (tasks == NULL) {
        return tn_fail(err, TN_E_CONFIG, "Slurm sets no SLURM_STEP_TASKS_PER_NODE");
    }
    TN_TRY(read_counts(tasks, arena, &out->tasks, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        total += out->tasks[i];
    }
    if (n != out->n_nodes || total != size) {
        return tn_fail(err, TN_E_CONFIG,
                       "Slurm contradicts itself: %u nodes with %u tasks, but '%s' are %u on %u",
                       out->n_nodes, size, tasks, total, n);
    }
    return TN_OK;
}

/* Deals the tasks one after another, `run` of them on a node before it is the next one's turn. */
static void deal(const step *s, uint32_t run, tn_arena *arena, const char **host)
{
    TN_ASSERT(run > 0 && s->tasks != NULL); /* else it never ends */
    uint32_t *left = TN_NEW_ARRAY(arena, uint32_t, s->n_nodes);
    memcpy(left, s->tasks, s->n_nodes * sizeof *left);
    for (uint32_t rank = 0, i = 0; rank < s->size; i = (i + 1) % s->n_nodes) {
        for (uint32_t k = 0; k < run && left[i] > 0; k++, left[i]--) {
            TN_ASSERT(rank < s->size);
            host[rank++] = s->node[i];
        }
    }
}

/* Reads *run: the tasks that a node gets before it is the next one's turn; 0: it is not known. */
static tn_status read_run(const tn_launch_env *env, uint32_t *run, tn_error *err)
{
    const char *how = tn_env(env, "SLURM_DISTRIBUTION");
    how = how != NULL ? how : "block";
    *run = 0;
    if (strncmp(how, "block", 5) == 0) {
        *run = TN_PEERS_MAX;
    } else if (strncmp(how, "cyclic", 6) == 0) {
        *run = 1;
    } else if (strncmp(how, "plane", 5) == 0) {
        return tn_env_u32(env, "SLURM_DIST_PLANESIZE", HOSTS_MAX, run, err);
    }
    return TN_OK;
}

/* Finds the nodes of all tasks. NULL where they are not in the environment, or where this task is
 * on another node than they say: then only names in messages are missing. */
static tn_status find_hosts(const tn_launch_env *env, const step *s, tn_arena *arena,
                            tn_launched *out, tn_error *err)
{
    uint32_t run = 0;
    uint32_t own = TN_UNSET_U32;
    TN_TRY(read_run(env, &run, err));
    TN_TRY(tn_env_u32(env, "SLURM_NODEID", HOSTS_MAX, &own, err));
    if (run == 0 || out->rank >= s->size) {
        return TN_OK;
    }
    const char **host = TN_NEW_ARRAY(arena, const char *, s->size);
    deal(s, run, arena, host);
    bool fits =
        own == TN_UNSET_U32 || (own < s->n_nodes && strcmp(s->node[own], host[out->rank]) == 0);
    out->host = fits ? host : NULL;
    return TN_OK;
}

static tn_status find_root(const tn_launch_env *env, const step *s, tn_arena *arena,
                           tn_launched *out, tn_error *err)
{
    const char *how = tn_env(env, "SLURM_DISTRIBUTION");
    uint32_t port = TN_UNSET_U32;
    uint32_t own = 0;
    if (s->n_nodes == 1 || (how != NULL && strncmp(how, "arbitrary", 9) == 0)) {
        return TN_OK;
    }
    TN_TRY(tn_env_u32(env, "SLURM_NODEID", HOSTS_MAX, &own, err));
    if (out->rank == 0 && own != 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "Slurm runs rank 0 on node %u of '%s', not on the first\n"
                       "hint: set TNET_ROOT=host:port of rank 0",
                       own, tn_env(env, "SLURM_STEP_NODELIST"));
    }
    TN_TRY(tn_env_u32(env, "TNET_PORT", UINT16_MAX + 1, &port, err));
    if (port == TN_UNSET_U32) {
        /* two steps of one job may run side by side on the same nodes */
        port = PORT_FIRST + (uint32_t)(tn_mix(tn_name64(out->job)) % PORT_COUNT);
    }
    out->root = tn_arena_text(arena, "%s:%u", s->node[0], port);
    return TN_OK;
}

static tn_status find(const tn_launch_env *env, uint32_t size, tn_arena *arena, tn_launched *out,
                      tn_error *err)
{
    step s = {0};
    (void)size;
    if (tn_env(env, "SLURM_STEP_NODELIST") == NULL) {
        const char *tasks = tn_env(env, "SLURM_NTASKS");
        out->note = tasks != NULL && strcmp(tasks, "1") != 0
                        ? "in a Slurm job of several tasks, but not started by srun"
                        : NULL;
        return TN_OK;
    }
    TN_TRY(tn_env_u32(env, "SLURM_PROCID", TN_PEERS_MAX, &out->rank, err));
    TN_TRY(tn_env_u32(env, "SLURM_NTASKS", TN_PEERS_MAX + 1, &out->size, err));
    TN_TRY(tn_env_u32(env, "SLURM_STEP_NUM_TASKS", TN_PEERS_MAX + 1, &out->size, err));
    if (out->rank == TN_UNSET_U32 || out->size == TN_UNSET_U32) {
        return tn_fail(err, TN_E_CONFIG, "Slurm sets no %s",
                       out->rank == TN_UNSET_U32 ? "SLURM_PROCID" : "SLURM_STEP_NUM_TASKS");
    }
    out->is_here = true;
    const char *job = either(env, "SLURM_JOB_ID", "SLURM_JOBID");
    const char *number = either(env, "SLURM_STEP_ID", "SLURM_STEPID");
    out->job =
        tn_arena_text(arena, "%s.%s", job != NULL ? job : "?", number != NULL ? number : "?");
    TN_TRY(read_step(env, out->size, arena, &s, err));
    out->one_host = s.n_nodes == 1;
    TN_TRY(find_hosts(env, &s, arena, out, err));
    return find_root(env, &s, arena, out, err);
}

static const char *const variables[] = {"SLURM_DISTRIBUTION",
                                        "SLURM_DIST_PLANESIZE",
                                        "SLURM_JOBID",
                                        "SLURM_JOB_ID",
                                        "SLURM_NODEID",
                                        "SLURM_NTASKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEPID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_TASKS_PER_NODE",
                                        "TNET_PORT",
                                        NULL};

const tn_launcher tn_launcher_slurm = {.name = "Slurm", .variables = variables, .find = find};
