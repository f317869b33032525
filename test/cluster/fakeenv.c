/* fakeenv.c - see fakeenv.h. */
#include "cluster/fakeenv.h"

#include "support/test.h"

static tn_arena *arena;

static bool lists(const char *const *variables, const char *name)
{
    while (*variables != NULL && strcmp(*variables, name) != 0) {
        variables++;
    }
    return *variables != NULL;
}

/* A launcher that reads a variable it does not name would not be hidden from children
 * (cluster/launch/children.c). */
static void assert_named(const char *name)
{
    static const char *const own[] = {"TNET_PEERS", "TNET_PEER_LIST",  "TNET_ROOT", "TNET_BIND",
                                      "TNET_JOB",   "XDG_RUNTIME_DIR", NULL};
    bool named = lists(own, name);
    for (const tn_launcher *const *at = tn_launchers; *at != NULL; at++) {
        named = named || lists((*at)->variables, name);
    }
    fail_if(!named, "no launcher names '%s', which is read", name);
}

static const char *get(void *ctx, const char *name)
{
    assert_named(name);
    const fakeenv *const *e = ctx;
    const size_t size = strlen(name);
    for (const char *const *w = (*e)->words; w != NULL && *w != NULL; w++) {
        const bool is_pair = strchr(*w, '=') == NULL;
        if (strncmp(*w, name, size) == 0 && (*w)[size] == (is_pair ? '\0' : '=')) {
            return is_pair ? w[1] : *w + size + 1;
        }
        w += is_pair;
    }
    return NULL;
}

static bool is_local(void *ctx, const char *host)
{
    const fakeenv *const *e = ctx;
    return (*e)->local != NULL && strcmp((*e)->local, host) == 0;
}

static tn_status find(const fakeenv *e, tn_membership *out, tn_error *err)
{
    if (arena == NULL) {
        arena = tn_arena_new(1 << 16);
    }
    const tn_membership_in in = {.env = {get, &e, e->host != NULL ? e->host : "here"},
                                 .is_local = is_local,
                                 .peers = e->peers,
                                 .run_dir = e->run_dir == NULL      ? "runs/x"
                                            : e->run_dir[0] != '\0' ? e->run_dir
                                                                    : NULL,
                                 .uid = 1000};
    return tn_membership_find(out, &in, arena, err);
}

tn_membership fakeenv_membership(const fakeenv *e)
{
    tn_membership r;
    tn_error err = {0};
    assert_ok(find(e, &r, &err), err.text);
    return r;
}

void fakeenv_refused(const fakeenv *e, const char *want)
{
    tn_membership r = {.size = 77};
    tn_error err = {0};
    assert_int_equal(find(e, &r, &err), TN_E_CONFIG);
    assert_int_equal(r.size, 77);
    assert_says(err.text, want);
}

void fakeenv_done(void)
{
    tn_arena_free(arena);
    arena = NULL;
}
