/* security.c - the section cluster.security is read, and what it names is loaded: keys, the folder
 * of allowed keys, networks. */
#include "cluster/security/security.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct entry {
    uint8_t key[TN_CURVE_BYTES];
    uint32_t rank;
    char name[64]; /* name of its file, for messages; may be cut */
} entry;

struct tn_allow {
    uint32_t n;
    char dir[TN_PATH_SIZE];
    entry item[]; /* by key */
};

static const char ending[] = ".pub";
static const char prefix[] = "rank-";

/* ---- the folder of allowed keys ---- */

static bool is_key(const char *name)
{
    size_t size = strlen(name);
    return size >= sizeof ending && strcmp(name + size - (sizeof ending - 1), ending) == 0;
}

static tn_status rank_of(const char *dir, const char *name, uint32_t *out, tn_error *err)
{
    uint32_t rank = TN_RANK_ANY;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
        char exact[32]; /* 007 would be a second name of 7 */
        rank = (uint32_t)strtoul(name + sizeof prefix - 1, NULL, 10);
        (void)snprintf(exact, sizeof exact, "%s%u%s", prefix, rank, ending);
        if (rank == TN_RANK_ANY || strcmp(name, exact) != 0) {
            return tn_fail(err, TN_E_CONFIG, "'%s/%s' names no rank, as rank-7.pub does", dir,
                           name);
        }
    }
    *out = rank;
    return TN_OK;
}

static int by_key(const void *a, const void *b)
{
    const entry *x = a;
    const entry *y = b;
    return memcmp(x->key, y->key, sizeof x->key);
}

static tn_status add_key(tn_allow *a, const tn_zmq *z, const char *name, tn_error *err)
{
    char path[TN_PATH_SIZE];
    entry e = {0};
    TN_TRY(rank_of(a->dir, name, &e.rank, err));
    TN_TRY(tn_path_join(a->dir, name, path, err));
    TN_TRY(tn_curve_read_open(z, path, e.key, err));
    size_t size = strlen(name);
    memcpy(e.name, name, size < sizeof e.name ? size : sizeof e.name - 1);
    for (uint32_t i = 0; i < a->n && e.rank == TN_RANK_ANY; i++) {
        if (a->item[i].rank == TN_RANK_ANY) {
            return tn_fail(err, TN_E_CONFIG,
                           "'%s' has two keys without a rank: '%s' and '%s'\n"
                           "hint: name them rank-N.pub, or let all peers share one",
                           a->dir, a->item[i].name, e.name);
        }
    }
    a->item[a->n++] = e;
    return TN_OK;
}

static tn_status check_distinct(const tn_allow *a, tn_error *err)
{
    for (uint32_t i = 1; i < a->n; i++) {
        if (by_key(&a->item[i - 1], &a->item[i]) == 0) {
            return tn_fail(err, TN_E_CONFIG, "'%s' and '%s' of '%s' are the same key",
                           a->item[i - 1].name, a->item[i].name, a->dir);
        }
    }
    return TN_OK;
}

/* Reads the keys in `names`, as tn_dir_list gives them. */
static tn_status read_keys(tn_allow *a, const tn_zmq *z, const char *names, uint32_t n,
                           tn_error *err)
{
    for (uint32_t i = 0; i < n; i++, names += strlen(names) + 1) {
        if (is_key(names)) {
            TN_TRY(add_key(a, z, names, err));
        }
    }
    if (a->n == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "no *.pub in '%s': nobody could come in\n"
                       "hint: tnet-keygen %s rank-0",
                       a->dir, a->dir);
    }
    qsort(a->item, a->n, sizeof *a->item, by_key);
    return check_distinct(a, err);
}

void tn_allow_free(tn_allow *a)
{
    tn_free(a);
}

tn_status tn_allow_open(tn_allow **out, const tn_zmq *z, const char *dir, tn_error *err)
{
    *out = NULL;
    tn_text names = {0};
    tn_allow *a = NULL;
    uint32_t n = 0;
    tn_status status = tn_dir_list(dir, &names, &n, err);
    if (status == TN_E_IO) {
        status = err->code = TN_E_CONFIG;
    }
    uint32_t keys = 0;
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n && status == TN_OK; i++, name += strlen(name) + 1) {
        keys += is_key(name);
    }
    if (keys > TN_ALLOW_MAX) {
        status =
            tn_fail(err, TN_E_CONFIG, "'%s' holds %u keys, more than %d", dir, keys, TN_ALLOW_MAX);
    }
    if (status == TN_OK) {
        a = tn_try_alloc(1, sizeof *a + keys * sizeof *a->item, "allowed keys", err);
        status = a == NULL ? TN_E_MEMORY : TN_OK;
    }
    if (a != NULL) {
        TN_ASSERT(strlen(dir) < sizeof a->dir); /* it was opened */
        memcpy(a->dir, dir, strlen(dir) + 1);
        status = read_keys(a, z, tn_text_str(&names), n, err);
    }
    tn_text_done(&names);
    if (status != TN_OK) {
        tn_allow_free(a);
        return status;
    }
    TN_ASSERT(a->n == keys);
    *out = a;
    return TN_OK;
}

bool tn_allow_find(const tn_allow *a, const uint8_t key[TN_CURVE_BYTES], uint32_t *rank)
{
    entry wanted = {0};
    memcpy(wanted.key, key, sizeof wanted.key);
    const entry *found = bsearch(&wanted, a->item, a->n, sizeof *a->item, by_key);
    if (found == NULL) {
        return false;
    }
    *rank = found->rank;
    return true;
}

tn_status tn_allow_key_of(const tn_allow *a, uint32_t rank, uint8_t out[TN_CURVE_BYTES],
                          tn_error *err)
{
    const entry *best = NULL;
    for (uint32_t i = 0; i < a->n; i++) {
        const entry *e = &a->item[i];
        if (e->rank == rank || (e->rank == TN_RANK_ANY && best == NULL)) {
            best = e;
        }
    }
    if (best == NULL) {
        return tn_fail(err, TN_E_CONFIG, "no public key of rank %u in '%s'", rank, a->dir);
    }
    memcpy(out, best->key, TN_CURVE_BYTES);
    return TN_OK;
}

enum { NETS_MAX = 1024 };

static const tn_field fields[] = {
    TN_FIELD_STR(tn_security_opts, key, "~", "file of this peer's secret key, by tnet-keygen"),
    TN_FIELD_STR(tn_security_opts, allow, "~", "folder of the public keys that are let in"),
    TN_FIELD_STRS(tn_security_opts, trusted_net, "~", "networks that are let in without keys"),
    TN_FIELD_END,
};

static const char *const loopback[] = {"127.0.0.0/8", "::1"};
static const tn_strs loopback_nets = {sizeof loopback / sizeof *loopback, loopback};

/* ---- the section ---- */

static void check(const tn_binder *b, const tn_origin *at, const tn_security_opts *o)
{
    tn_subnet net;
    tn_error err = {0};
    if (o->trusted_net.n > 0 && (o->key != NULL || o->allow != NULL)) {
        tn_diag_error(b->diag, at, "'%s' has both keys and trusted_net", b->path);
        tn_diag_hint(b->diag, "key and allow for CURVE, trusted_net for a network without keys");
    } else if (o->trusted_net.n == 0 && (o->key == NULL || o->allow == NULL)) {
        tn_diag_error(b->diag, at, "'%s' has no '%s'", b->path,
                      o->key != NULL     ? "allow"
                      : o->allow != NULL ? "key"
                                         : "key, nor trusted_net");
        tn_diag_hint(b->diag, "{key: peer.key, allow: peers/}, or {trusted_net: [10.1.0.0/16]}");
    }
    if (o->trusted_net.n > NETS_MAX) {
        tn_diag_error(b->diag, at, "'%s.trusted_net' has %u networks, more than %d", b->path,
                      o->trusted_net.n, NETS_MAX);
    }
    for (uint32_t i = 0; i < o->trusted_net.n; i++) {
        if (tn_net_read(o->trusted_net.item[i], &net, &err) != TN_OK) {
            tn_diag_error(b->diag, at, "'%s.trusted_net': %s", b->path, err.text);
        }
    }
}

void tn_security_bind(const tn_binder *b, const tn_tree *tree, tn_security_opts *out)
{
    tn_binder inner = *b;
    inner.path = b->path != NULL ? b->path : "cluster.security";
    *out = (tn_security_opts){0};
    if (tn_tree_is_null(tree)) {
        return;
    }
    inner.at = &tree->at;
    if (tree->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &tree->at, "'%s' is no map", inner.path);
        tn_diag_hint(b->diag, "{key: peer.key, allow: peers/}, or {trusted_net: [10.1.0.0/16]}");
        return;
    }
    tn_fields_bind(&inner, fields, tree, out);
    check(&inner, &tree->at, out);
}

static tn_status init_nets(tn_security *s, const tn_strs *texts, tn_error *err)
{
    TN_TRY(TN_ALLOC(s->net, texts->n, "trusted networks", err));
    for (uint32_t i = 0; i < texts->n; i++) {
        TN_TRY(tn_net_read(texts->item[i], &s->net[i], err));
    }
    s->n_nets = texts->n;
    return TN_OK;
}

tn_status tn_security_init(tn_security *s, const tn_zmq *z, const tn_security_opts *opts,
                           tn_error *err)
{
    *s = (tn_security){.kind = TN_SECURITY_HOST, .uid = geteuid()};
    if (opts != NULL && opts->trusted_net.n > 0) {
        s->kind = TN_SECURITY_NET;
        return init_nets(s, &opts->trusted_net, err);
    }
    TN_TRY(init_nets(s, &loopback_nets, err));
    if (opts == NULL || opts->key == NULL) {
        return TN_OK;
    }
    TN_ASSERT(opts->allow != NULL); /* tn_security_bind saw to it */
    s->kind = TN_SECURITY_CURVE;
    TN_TRY(tn_curve_read(z, opts->key, &s->pair, err));
    TN_TRY(tn_allow_open(&s->allow, z, opts->allow, err));
    uint32_t rank = 0;
    if (!tn_allow_find(s->allow, s->pair.open, &rank)) {
        return tn_fail(
            err, TN_E_CONFIG,
            "the public half of '%s' is not in '%s': the others would not let this peer in",
            opts->key, opts->allow);
    }
    return TN_OK;
}

void tn_security_done(tn_security *s)
{
    tn_curve_forget(&s->pair);
    tn_allow_free(s->allow);
    tn_free(s->net);
    *s = (tn_security){0};
}
